"""Systems that learn from a stream: ours in seven ways, simple ones, and online learners.

Ours and the simple ones read words and bigrams; the online learners hash them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer

from longtail import LongTailClassifier, TextClassifier
from longtail_bench.baselines.neighbours import count_votes
from longtail_bench.stream import Floats, StreamSystem

HASH_BITS = 20  # of the columns that simple systems hash terms to
REFINE_EVERY = 250  # documents taught before what all classes share is brought up to date
KEPT = 200  # documents of each class that a model with a memory keeps
GIVEN = 5_000  # last documents that a model without a memory is given to learn from
WINDOW = 1000  # documents that the most frequent class and river's neighbours look back on

Labels = NDArray[Any]
Predicted = tuple[Labels, Floats | None]


class TaughtModel:
    """`TextClassifier`: fitted at the start, then taught, fitted again, both or neither.

    Parameters
    ----------
    teach : bool
        Whether each batch is taught with `partial_fit`.
    refine_every : int or None
        Call `refine()`, without documents, after this many; each batch then also corrects the
        probabilities (`recalibrate`) before it is taught.
    memory : int
        Documents of each class that the model keeps; `refine()` then learns from them.
    given : int
        Last documents that `refine` is given instead.
    refit_every : int or None
        Fit again on everything after this many documents.
    refit_by_period : bool
        Fit again on everything when a period ends.
    batch : int
        Documents that will be predicted at once. A model that is refined is told after a fit how
        many of the last documents were of a class that was new in such a batch.
    """

    def __init__(
        self,
        *,
        teach: bool,
        refine_every: int | None = None,
        memory: int = 0,
        given: int = 0,
        refit_every: int | None = None,
        refit_by_period: bool = False,
        batch: int = REFINE_EVERY,
    ) -> None:
        self.teach = teach
        self.refine_every = refine_every
        self.memory = memory
        self.given = given
        self.refit_every = refit_every
        self.refit_by_period = refit_by_period
        self.batch = batch
        self._texts: list[str] = []
        self._labels: list[Any] = []
        self._n_since = self._n_taught = 0

    def start(self, texts: list[str], labels: Labels) -> None:
        """Fit on the documents before the first prediction."""
        self._texts, self._labels = list(texts), labels.tolist()
        self._fit()

    def predict(self, texts: list[str]) -> Predicted:
        """Return the most probable class and its probability."""
        found = self._model.predict_proba_topk(texts, k=1)
        probabilities = np.where(found.valid, found.scores, 0.0)[:, 0]
        return found.classes[:, 0], np.clip(probabilities, 0.0, 1.0)

    def learn(self, texts: list[str], labels: Labels, *, new_period: bool) -> None:
        """Teach the batch, or fit again on everything."""
        self._texts += texts
        self._labels += labels.tolist()
        self._n_since += len(texts)
        due = self.refit_every is not None and self._n_since >= self.refit_every
        if due or (self.refit_by_period and new_period):
            self._fit()
        elif self.teach:
            if self.refine_every is not None:
                self._model.recalibrate(texts, labels)
            self._model.partial_fit(texts, labels)
            self._n_taught += len(texts)
            if self.refine_every is not None and self._n_taught >= self.refine_every:
                self._refine()
                self._n_taught = 0

    def _refine(self) -> None:
        if self.given:
            last = slice(-self.given, None)
            self._model.refine(self._texts[last], np.array(self._labels[last]))
        else:
            self._model.refine()

    def _fit(self) -> None:
        self._n_since = self._n_taught = 0
        counts = LongTailClassifier(memory=self.memory, random_state=0, n_jobs=1)
        model = TextClassifier(counts, random_state=0, n_jobs=1)
        self._model = model.fit(self._texts, np.array(self._labels))
        share = share_of_new_classes(self._labels, self.batch)
        if self.refine_every is not None and np.isfinite(model.calibration_error_):
            model.expect_unknown(min(share, 0.99))


def share_of_new_classes(labels: Sequence[Any], batch: int, n_last: int = WINDOW) -> float:
    """Return how many of the last documents were of a class that was new in their batch."""
    first: dict[Any, int] = {}
    for i, label in enumerate(labels):
        first.setdefault(label, i)
    n_documents = len(labels)
    rows = range(max(n_documents - n_last, 0), n_documents)
    # Batches are counted from the end, where the next one begins.
    begins = [n_documents - batch * (1 + (n_documents - 1 - i) // batch) for i in rows]
    new = [first[labels[i]] >= begin for i, begin in zip(rows, begins, strict=True)]
    return sum(new) / len(new)


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

    def weigh(self, X: sp.csr_array) -> sp.csr_array:
        """Return rows weighted by idf, of length 1."""
        idf = np.log((1 + self._n_documents) / (1 + self._frequencies)) + 1
        weighted = sp.csr_array((X.data * idf[X.indices], X.indices, X.indptr), shape=X.shape)
        norms = np.sqrt(np.asarray(weighted.power(2).sum(axis=1)).ravel())
        weighted.data /= np.repeat(np.where(norms > 0, norms, 1.0), np.diff(weighted.indptr))
        return weighted


class RowsSeen:
    """Documents or classes seen so far as rows; the nearest by cosine are found exactly.

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
        self._classes: list[Any] = []
        self._rows = sp.csr_array((0, 1 << HASH_BITS))
        self._owners = np.zeros(0, np.int64)

    def start(self, texts: list[str], labels: Labels) -> None:
        """Learn the documents before the first prediction."""
        self.learn(texts, labels, new_period=False)

    def learn(self, texts: list[str], labels: Labels, *, new_period: bool) -> None:
        """Add rows, or add to them."""
        X = self._documents.count(texts)
        self._documents.add(X)
        for label in labels.tolist():
            if label not in self._ids:
                self._ids[label] = len(self._classes)
                self._classes.append(label)
        ids = np.array([self._ids[label] for label in labels.tolist()])
        self._owners = np.concatenate([self._owners, ids])
        if not self.by_class:
            self._rows = sp.csr_array(sp.vstack([self._rows, X]))
            return
        shape = (len(self._classes), len(ids))
        members = sp.csr_array((np.ones(len(ids)), (ids, np.arange(len(ids)))), shape=shape)
        new = sp.csr_array((shape[0] - self._rows.shape[0], X.shape[1]))
        self._rows = sp.csr_array(sp.vstack([self._rows, new])) + members @ X

    def predict(self, texts: list[str]) -> Predicted:
        """Return the class of the nearest row, or the one that the nearest rows vote for."""
        queries = self._documents.weigh(self._documents.count(texts))
        cosines = (queries @ self._documents.weigh(self._rows).T).toarray()
        n_nearest = 1 if self.by_class else min(self.n_votes, cosines.shape[1])
        nearest = np.argpartition(-cosines, n_nearest - 1, axis=1)[:, :n_nearest]
        if self.by_class:
            winners = nearest[:, 0]
        else:
            weights = np.take_along_axis(cosines, nearest, axis=1)
            winners = count_votes(self._owners[nearest], weights, 1)[0][:, 0]
        return np.array(self._classes, object)[winners], None


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


def make_systems(
    n_classes: int, refit_every: int, batch: int = REFINE_EVERY
) -> dict[str, Callable[[], StreamSystem]]:
    """Return what makes each system, by name.

    Parameters
    ----------
    n_classes : int
        Classes of the whole stream, which Vowpal Wabbit must be told.
    refit_every : int
        Documents between two fits.
    batch : int
        Documents that are predicted at once.
    """
    refined: dict[str, Any] = {"teach": True, "refine_every": REFINE_EVERY, "batch": batch}
    return {
        "longtail, frozen": lambda: TaughtModel(teach=False),
        "longtail, refitted every period": lambda: TaughtModel(teach=False, refit_by_period=True),
        "longtail, taught": lambda: TaughtModel(teach=True),
        "longtail, taught and refined": lambda: TaughtModel(**refined),
        f"longtail, taught and refined, {KEPT} documents a class kept": lambda: TaughtModel(
            **refined, memory=KEPT
        ),
        f"longtail, taught and refined, given the last {GIVEN:,}": lambda: TaughtModel(
            given=GIVEN, **refined
        ),
        f"longtail, taught and refined, refitted every {refit_every:,}": lambda: TaughtModel(
            **refined, refit_every=refit_every
        ),
        "nearest centroid": lambda: RowsSeen(by_class=True),
        "nearest documents": lambda: RowsSeen(by_class=False),
        "vowpal wabbit, recall tree": lambda: VowpalWabbit("recall_tree", n_classes),
        "vowpal wabbit, one-vs-all": lambda: VowpalWabbit("oaa", n_classes),
        f"river, nearest of the last {WINDOW:,}": RiverNeighbours,
        "class of the last document": lambda: LastClasses(1),
        f"most frequent of the last {WINDOW:,}": lambda: LastClasses(WINDOW),
    }


# The package that a system needs, by the beginning of its name.
PACKAGES = {"vowpal wabbit": "vowpalwabbit", "river": "river"}


def choose_systems(
    n_classes: int, refit_every: int, beginnings: str | None = None, batch: int = REFINE_EVERY
) -> tuple[dict[str, Callable[[], StreamSystem]], dict[str, str]]:
    """Return the systems that are asked for, and the package that each of the others needs.

    Parameters
    ----------
    n_classes, refit_every, batch : int
        As for `make_systems`.
    beginnings : str, optional
        Beginnings of names, separated by semicolons (a name may have a comma).

    Raises
    ------
    ValueError
        If a beginning is no system's.
    """
    systems = make_systems(n_classes, refit_every, batch)
    if beginnings is not None:
        asked = [beginning.strip() for beginning in beginnings.split(";")]
        for beginning in asked:
            if not any(name.startswith(beginning) for name in systems):
                raise ValueError(
                    f"no system begins with {beginning!r}; there are: {'; '.join(systems)}"
                )
        systems = {n: s for n, s in systems.items() if n.startswith(tuple(asked))}
    missing = {
        name: package
        for name in systems
        for prefix, package in PACKAGES.items()
        if name.startswith(prefix) and find_spec(package) is None
    }
    return {name: make for name, make in systems.items() if name not in missing}, missing
