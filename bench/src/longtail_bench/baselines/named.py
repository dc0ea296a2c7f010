"""LongTailClassifier with the names of the classes, from counts and the texts of the names."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from longtail import LongTailClassifier
from longtail.training.name_rows import find_similar
from longtail_bench.label_set_data import count_terms, tokenize

NO_NAMES = "the data set has no names of classes (class_names.tsv.xz)."


class NamedLongTail(LongTailClassifier):
    """`LongTailClassifier` on counts, with the names of all classes as `class_texts`."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        class_texts: Any = None,
        hierarchy: Any = None,
        embeddings: Any = None,
    ) -> Self:
        """Refuse data without names: its row would be that of another system."""
        if class_texts is None:
            raise ValueError(NO_NAMES)
        return super().fit(X, y, sample_weight, class_texts, hierarchy, embeddings)

    def fit_sets(
        self,
        X: Any,
        labels: csr_array[Any],
        texts: list[str] | None = None,
        terms: list[str] | None = None,
    ) -> Self:
        """Learn from counts, an indicator matrix and the name of each class, seen or not.

        As in `TextClassifier`, a word of a name stands for the terms that look like it.
        """
        if texts is None or terms is None:
            raise ValueError(NO_NAMES)
        tokens = sorted({token for text in texts for token in tokenize(text)})
        similar = find_similar(tokens, terms, np.arange(len(terms)), self.n_jobs)
        rows = csr_array(count_terms(texts, np.array(tokens, object)) @ similar)
        sets = [row.tolist() for row in np.split(labels.indices, labels.indptr[1:-1])]
        return self.fit(X, sets, class_texts=(np.arange(len(texts)), rows))

    def model_bytes(self) -> int:
        """Return the size of the model when it is stored, which a class of the product is."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            LongTailClassifier.from_state(self._fitted(), **self.get_params()).save(path)
            return path.stat().st_size
