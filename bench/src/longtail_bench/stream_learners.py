"""Simple systems and online learners on a stream; all hash words and bigrams."""

from __future__ import annotations

from collections import Counter, deque
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

from longtail_bench.baselines.neighbours import count_votes
from longtail_bench.baselines.postings import sum_classes
from longtail_bench.stream import Floats, Integers, Labels, Predicted

HASH_BITS = 20  # of the columns that terms are hashed to
SGD_BITS = 12  # of those whose weights are dense
INDEX_EVERY = 250  # documents learned before rows are stored by term again
WINDOW = 1000  # documents that the most frequent class and river's neighbours look back on


class HashedDocuments:
    """Documents as hashed words and bigrams, with document frequencies that follow the stream."""

    def __init__(self) -> None:
        self._hashing = HashingVectorizer(
            n_features=1 << HASH_BITS, ngram_range=(1, 2), alternate_sign=False, norm="l2"
        )
        self._frequencies = np.zeros(1 << HASH_BITS)
        self._n_documents = 0

    def count(self, texts: list[str]) -> sp.csr_array:
        """Return one row for each text, of length 1."""
        return sp.csr_array(self._hashing.transform(texts))

    def add(self, X: sp.csr_array) -> None:
        """Let documents count in the document frequencies."""
        self._frequencies += np.bincount(X.indices, minlength=len(self._frequencies))
        self._n_documents += X.shape[0]
        self._idf = np.log((1 + self._n_documents) / (1 + self._frequencies)) + 1

    def weigh(self, X: sp.csr_array) -> sp.csr_array:
        """Return rows weighted by idf, of length 1."""
        weighted = X.copy()  # indices too: whoever sorts those of one must not sort the other's
        weighted.data *= self._idf[weighted.indices]
        norms = np.sqrt(np.asarray(weighted.power(2).sum(axis=1)).ravel())
        weighted.data /= np.repeat(np.where(norms > 0, norms, 1.0), np.diff(weighted.indptr))
        return weighted


class RowsSeen:
    """Documents or classes seen so far as rows; the nearest by cosine are found exactly.

    Rows are stored by term. That is done anew, with the document frequencies by then, once
    `INDEX_EVERY` documents were learned; those learned since are compared one by one.

    Parameters
    ----------
    by_class : bool
        Whether rows are sums of the documents of a class (nearest centroid), or documents, of which
        the nearest vote.
    n_votes : int, default=3
        How many documents vote.
    """

    def __init__(self, *, by_class: bool, n_votes: int = 3) -> None:
        self.by_class = by_class
        self.n_votes = n_votes
        self._documents = HashedDocuments()
        self._ids: dict[Any, int] = {}
        self._owners = np.zeros(0, np.int64)
        self._nothing = sp.csr_array((0, 1 << HASH_BITS))
        self._rows = self._nothing.copy()
        self._learned = [self._nothing]  # documents that are not stored by term yet

    def start(self, texts: list[str], labels: Labels) -> None:
        """Learn the documents before the first prediction."""
        self.learn(texts, labels, new_period=False)
        self._store_by_term()

    def learn(self, texts: list[str], labels: Labels, *, new_period: bool) -> None:
        """Add rows, or add to them."""
        ids = [self._ids.setdefault(label, len(self._ids)) for label in labels.tolist()]
        self._owners = np.concatenate([self._owners, np.array(ids, np.int64)])
        self._learned.append(self._documents.count(texts))
        if sum(X.shape[0] for X in self._learned) >= INDEX_EVERY:
            self._store_by_term()

    def predict(self, texts: list[str]) -> Predicted:
        """Return the class of the nearest row, or the one that the nearest rows vote for."""
        queries = self._documents.weigh(self._documents.count(texts))
        cosines = self._cosines(queries)
        classes = np.array([*self._ids], object)
        n_nearest = 1 if self.by_class else min(self.n_votes, cosines.shape[1])
        nearest = np.argpartition(-cosines, n_nearest - 1, axis=1)[:, :n_nearest]
        if self.by_class:
            return classes[nearest[:, 0]], None
        weights = np.take_along_axis(cosines, nearest, axis=1)
        return classes[count_votes(self._owners[nearest], weights, 1)[0][:, 0]], None

    def _store_by_term(self) -> None:
        """Add what was learned to the rows, and store all of them by term."""
        row_ids, X = self._documents_learned()
        self._documents.add(X)
        if self.by_class:
            self._add_empty_rows()
            self._rows = self._rows + sum_classes(X, row_ids, len(self._ids))
        else:
            self._rows = sp.csr_array(sp.vstack([self._rows, X]))
        self._by_term = sp.csr_array(self._documents.weigh(self._rows).T)
        self._learned = [self._nothing]

    def _add_empty_rows(self) -> None:
        """Give each class a row."""
        rows, n_classes = self._rows, len(self._ids)
        indptr = np.pad(rows.indptr, (0, n_classes - rows.shape[0]), mode="edge")
        self._rows = sp.csr_array((rows.data, rows.indices, indptr), (n_classes, rows.shape[1]))

    def _documents_learned(self) -> tuple[Integers, sp.csr_array]:
        """Return the documents that are not stored by term, and the row that each is part of."""
        X = sp.csr_array(sp.vstack(self._learned))
        first = len(self._owners) - X.shape[0]
        return (self._owners if self.by_class else np.arange(len(self._owners)))[first:], X

    def _cosines(self, queries: sp.csr_array) -> Floats:
        """Return the cosines of queries with all rows."""
        row_ids, X = self._documents_learned()
        if self.by_class:
            row_ids, members = np.unique(row_ids, return_inverse=True)
            self._add_empty_rows()
            X = sp.csr_array(self._rows[row_ids] + sum_classes(X, members, len(row_ids)))
        n_stored = self._by_term.shape[1]
        cosines = np.zeros((queries.shape[0], len(self._ids if self.by_class else self._owners)))
        cosines[:, :n_stored] = (queries @ self._by_term).toarray()
        cosines[:, row_ids] = (queries @ self._documents.weigh(X).T).toarray()
        return cosines


class LastClasses:
    """The most frequent class among the last documents; the class of the last one for 1."""

    def __init__(self, window: int) -> None:
        self._window: deque[Any] = deque(maxlen=window)

    def start(self, texts: list[str], labels: Labels) -> None:
        """Remember the last ones."""
        self._window.extend(labels.tolist())

    def predict(self, texts: list[str]) -> Predicted:
        """Return the same class for all."""
        return np.array([Counter(self._window).most_common(1)[0][0]] * len(texts), object), None

    def learn(self, texts: list[str], labels: Labels, *, new_period: bool) -> None:
        """Remember the last ones."""
        self._window.extend(labels.tolist())


class VowpalWabbit:
    """Vowpal Wabbit on hashed words and bigrams, one pass; classes get ids as they come.

    Parameters
    ----------
    reduction : str
        ``recall_tree``, whose cost grows with the logarithm of the classes, or ``oaa``.
    n_classes : int
        The number of classes must be said beforehand.
    """

    def __init__(self, reduction: str, n_classes: int) -> None:
        package = import_module("vowpalwabbit")
        options = f"--{reduction} {n_classes} -b 26 --loss_function logistic --ngram 2 --quiet"
        self._model = package.Workspace(options)
        self._ids: dict[Any, int] = {}
        self._classes: list[Any] = [None]

    def start(self, texts: list[str], labels: Labels) -> None:
        """Learn the documents before the first prediction."""
        self.learn(texts, labels, new_period=False)

    def predict(self, texts: list[str]) -> Predicted:
        """Return the class of each text; an id that no class has yet is no class."""
        ids = [self._model.predict(f"| {_plain_text(text)}") for text in texts]
        known = [self._classes[i] if i < len(self._classes) else None for i in ids]
        return np.array(known, object), None

    def learn(self, texts: list[str], labels: Labels, *, new_period: bool) -> None:
        """Learn one document after the other."""
        for text, label in zip(texts, labels.tolist(), strict=True):
            if label not in self._ids:
                self._ids[label] = len(self._classes)
                self._classes.append(label)
            self._model.learn(f"{self._ids[label]} | {_plain_text(text)}")


class StochasticGradient:
    """scikit-learn's one-vs-all logistic regression, one pass; classes get ids as they come.

    Its weights are dense: with 2^12 columns those of 28,000 classes take 0.9 GB, and each batch
    passes over all of them.

    Parameters
    ----------
    n_classes : int
        The number of classes must be said beforehand.
    """

    def __init__(self, n_classes: int) -> None:
        self._hashing = HashingVectorizer(n_features=1 << SGD_BITS, ngram_range=(1, 2))
        self._model = SGDClassifier(loss="log_loss", random_state=0)
        self._all_ids = np.arange(max(n_classes, 2))
        self._ids: dict[Any, int] = {}

    def start(self, texts: list[str], labels: Labels) -> None:
        """Learn the documents before the first prediction."""
        self.learn(texts, labels, new_period=False)

    def predict(self, texts: list[str]) -> Predicted:
        """Return the class of each text; an id that no class has yet is no class."""
        classes = [*self._ids, *[None] * (len(self._all_ids) - len(self._ids))]
        found = self._model.predict(self._hashing.transform(texts))
        return np.array(classes, object)[found], None

    def learn(self, texts: list[str], labels: Labels, *, new_period: bool) -> None:
        """Go over the documents once."""
        ids = [self._ids.setdefault(label, len(self._ids)) for label in labels.tolist()]
        self._model.partial_fit(self._hashing.transform(texts), ids, classes=self._all_ids)


class RiverNeighbours:
    """river's nearest neighbour among the last documents, by cosine of hashed words and bigrams."""

    def __init__(self) -> None:
        neighbors = import_module("river.neighbors")
        engine = neighbors.LazySearch(window_size=WINDOW, dist_func=_cosine_distance)
        self._model = neighbors.KNNClassifier(n_neighbors=1, engine=engine)
        self._documents = HashedDocuments()

    def start(self, texts: list[str], labels: Labels) -> None:
        """Learn the documents before the first prediction."""
        self.learn(texts, labels, new_period=False)

    def predict(self, texts: list[str]) -> Predicted:
        """Return the class of the nearest document."""
        rows = _dicts(self._documents.weigh(self._documents.count(texts)))
        return np.array([self._model.predict_one(row) for row in rows], object), None

    def learn(self, texts: list[str], labels: Labels, *, new_period: bool) -> None:
        """Let documents enter the window."""
        X = self._documents.count(texts)
        self._documents.add(X)
        rows = _dicts(self._documents.weigh(X))
        for row, label in zip(rows[-WINDOW:], labels.tolist()[-WINDOW:], strict=True):
            self._model.learn_one(row, label)


def _plain_text(text: str) -> str:
    """Return a text without what Vowpal Wabbit's format gives a meaning."""
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def _dicts(X: sp.csr_array) -> list[dict[int, float]]:
    """Return each row as a dict."""
    ends = X.indptr.tolist()
    indices, data = X.indices.tolist(), X.data.tolist()
    return [dict(zip(indices[a:b], data[a:b], strict=True)) for a, b in pairwise(ends)]


def _cosine_distance(x: dict[int, float], y: dict[int, float]) -> float:
    """Return 1 - cosine of two documents of length 1."""
    if len(y) < len(x):
        x, y = y, x
    return 1.0 - sum(weight * y[term] for term, weight in x.items() if term in y)
