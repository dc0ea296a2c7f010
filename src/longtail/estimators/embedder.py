"""The encoder of a `TextClassifier`: from texts to embeddings in fixed point.

In: a callable of the caller, which takes a list of texts and returns a vector for each. Out:
embeddings as the model sums them up. A file holds no code, so it holds the name of the encoder and
what this made of a fixed sentence, by which it is known again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from longtail._records import Fields, plain_text
from longtail.model.embeddings import ONE, Embeddings, read_embeddings

Encode = Callable[[list[str]], Any]

PROBE = "A class is the sum of its documents."
# Cosine of what the encoder of the fit made of the sentence with what a given one makes of it. Not
# the same bits: they depend on the machine.
MIN_SIMILARITY = 0.995
BATCH = 1024  # texts that are encoded together


@dataclass(frozen=True, eq=False)
class Embedder:
    """An encoder of texts."""

    name: str  # of the callable
    probe: Embeddings  # (n_dimensions,) int16: embedding of `PROBE`
    encode: Encode | None = None  # none in a model that was opened without it

    @classmethod
    def of(cls, encode: Any) -> Embedder:
        """Return the encoder that a callable is."""
        if not callable(encode):
            raise ValueError(
                "embedder must be a callable that takes a list of texts and returns an array of "
                f"shape (n_texts, n_dimensions), or None; got {encode!r:.80}."
            )
        return cls(name_of(encode), _encode(encode, [PROBE], None)[0], encode)

    def with_encoder(self, encode: Any) -> Embedder:
        """Return the same with the callable.

        Raises
        ------
        ValueError
            If it gives other vectors than that of the fit.
        """
        given = Embedder.of(encode)
        same = len(given.probe) == len(self.probe)
        if same:
            product = (given.probe.astype(np.int64) * self.probe.astype(np.int64)).sum()
            same = float(product) / ONE**2 >= MIN_SIMILARITY
        if not same:
            raise ValueError(
                f"embedder {given.name!r} is another encoder than that of the fit, {self.name!r}: "
                "it gives another vector for the same sentence. Give that of the fit."
            )
        return replace(self, encode=encode)

    def embed(self, texts: Sequence[str], fields: Fields | None = None) -> Embeddings:
        """Return the embeddings of texts; of records those of their text fields."""
        if self.encode is None:
            raise ValueError(
                f"this model was fitted with the embeddings of {self.name!r}; open it with that "
                "encoder: load(path, embedder=...), or longtail --embedder MODULE:NAME."
            )
        plain = [plain_text(text, fields) for text in texts]
        batches = [
            _encode(self.encode, plain[start : start + BATCH], len(self.probe))
            for start in range(0, len(plain), BATCH)
        ]
        return np.concatenate([np.zeros((0, len(self.probe)), np.int16), *batches])


def name_of(encode: Any) -> str:
    """Return what a callable is called."""
    named = encode if hasattr(encode, "__qualname__") else type(encode)
    return f"{named.__module__}.{named.__qualname__}"


def _encode(encode: Encode, texts: list[str], n_dimensions: int | None) -> Embeddings:
    """Return the embeddings of a batch."""
    try:
        return read_embeddings(encode(texts), len(texts), n_dimensions)
    except ValueError as error:
        raise ValueError(f"embedder {name_of(encode)!r}: {error}") from error
