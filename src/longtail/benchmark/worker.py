"""One system on one data set, in a process of its own.

    python worker.py SYSTEM DATA.npz N_THREADS SEED OUTPUT.json

In: the arrays that `compare.write_parts` stores; the labels of the test part are not among them.
Out: what fitting and predicting cost, in OUTPUT.json, and the first classes of each test document,
best first, in OUTPUT.npy (-1 where a ranking is shorter).

A peer's environment runs this file too: beside numpy and scipy it imports only the system that it
is asked for, when it is asked for.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

TOP = 5

# The rehearsal: enough documents and classes for every kernel to run, few enough to be over at once
_REHEARSAL_DOCUMENTS, _REHEARSAL_CLASSES, _REHEARSAL_TERMS = 600, 150, 200


class Cost(NamedTuple):
    """Seconds of a step: on the clock, and of the processor over all threads and children."""

    seconds: float
    processor_seconds: float


class Stopwatch:
    """Measures a step from its creation on."""

    def __init__(self) -> None:
        self.start = _now()

    def read(self) -> Cost:
        """Return what the step has cost so far."""
        seconds, processor_seconds = _now()
        return Cost(seconds - self.start.seconds, processor_seconds - self.start.processor_seconds)


class System(Protocol):
    """What is measured: `fit` and `predict` on the clock, `ranking` off it."""

    compiles: bool
    tfidf_processor_seconds: float

    def fit(self, X: Any, y: NDArray[np.int64]) -> None:
        """Learn from counts and class numbers."""

    def predict(self, X: Any) -> Any:
        """Rank classes for each document, in whatever form the system gives them."""

    def ranking(self, answer: Any) -> NDArray[np.int64]:
        """Turn what `predict` returned into class numbers, best first."""


class Ours:
    """A classifier of this library. Its kernels are compiled in a rehearsal, before any clock."""

    compiles = True
    tfidf_processor_seconds = 0.0  # no step of its own

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Any, y: NDArray[np.int64]) -> None:
        """Fit with the classifier's defaults."""
        self.classifier.fit(X, y)

    def predict(self, X: Any) -> Any:
        """Return classes and scores."""
        return self.classifier.predict_topk(X, TOP)

    def ranking(self, answer: Any) -> NDArray[np.int64]:
        """Return the classes; -1 where the ranking is padded."""
        return np.where(np.isneginf(answer.scores), -1, answer.classes)


class Pecos:
    """PECOS XR-Linear with its defaults, on sublinear tf-idf of unit length.

    Label features are PIFA, clusters come from hierarchical k-means with 16 splits and leaves of at
    most 100, prediction keeps a beam of 10. Its `train` and `predict` default to the same values;
    they stand here so that a new version changes nothing.
    """

    compiles = False
    tfidf_processor_seconds = 0.0

    def __init__(self, n_threads: int, seed: int) -> None:
        self.xmc = import_module("pecos.xmc")
        self.xlinear = import_module("pecos.xmc.xlinear")
        weighting = import_module("sklearn.feature_extraction.text")
        self.tfidf = weighting.TfidfTransformer(sublinear_tf=True)
        self.n_threads = n_threads
        self.seed = seed

    def fit(self, X: Any, y: NDArray[np.int64]) -> None:
        """Weight the terms, cluster the classes, train the rankers."""
        stopwatch = Stopwatch()
        counts = X.astype(np.float32)
        weights = sp.csr_matrix(self.tfidf.fit_transform(counts), dtype=np.float32)
        self.tfidf_processor_seconds = stopwatch.read().processor_seconds
        labels = sp.csc_matrix(
            (np.ones(len(y), dtype=np.float32), (np.arange(len(y)), y)),
            shape=(len(y), int(y.max()) + 1),
        )
        features = self.xmc.LabelEmbeddingFactory.create(
            labels, weights, method="pifa", threads=self.n_threads
        )
        clusters = self.xmc.Indexer.gen(
            features, nr_splits=16, max_leaf_size=100, seed=self.seed, threads=self.n_threads
        )
        model = self.xlinear.XLinearModel.train(weights, labels, C=clusters, threads=self.n_threads)
        # A model fresh from training predicts layer by layer, in six times the processor time and
        # 270 MB more at 12,582 classes. The fast predictor is only to be had from a saved model.
        with tempfile.TemporaryDirectory() as folder:
            model.save(folder)
            self.model = self.xlinear.XLinearModel.load(folder, is_predict_only=True)

    def predict(self, X: Any) -> Any:
        """Return a sparse matrix of scores."""
        weights = sp.csr_matrix(self.tfidf.transform(X.astype(np.float32)), dtype=np.float32)
        return self.model.predict(weights, beam_size=10, only_topk=TOP, threads=self.n_threads)

    def ranking(self, answer: Any) -> NDArray[np.int64]:
        """Sort the scores of each document; ties in class order."""
        scores = sp.csr_matrix(answer)
        lengths = np.diff(scores.indptr)
        documents = np.repeat(np.arange(len(lengths)), lengths)
        order = np.lexsort((scores.indices, -scores.data, documents))
        places = np.arange(len(documents)) - np.repeat(scores.indptr[:-1], lengths)
        ranking = np.full((len(lengths), TOP), -1, dtype=np.int64)
        kept = places < TOP
        ranking[documents[kept], places[kept]] = scores.indices[order][kept]
        return ranking


def build_system(name: str, n_threads: int, seed: int) -> System:
    """Return the system of this name, unfitted."""
    if name == "pecos":
        return Pecos(n_threads, seed)
    if name == "centroid":
        baselines = import_module("longtail.baselines")
        return Ours(baselines.NearestCentroid(n_jobs=n_threads))
    classes = {"longtail": "LongTailClassifier", "paper": "DoubleSamplingClassifier"}
    if name not in classes:
        raise ValueError(f"system must be centroid, pecos or one of {list(classes)}; got {name!r}.")
    classifier = getattr(import_module("longtail"), classes[name])
    return Ours(classifier(random_state=seed, n_jobs=n_threads))


def rehearse(name: str, n_threads: int, like: Any) -> float:
    """Fit and predict a small made-up set whose arrays have the types of `like`.

    Kernels are compiled for the types of their arrays; here they all are, so that no compilation
    falls into the measurement. Returns the seconds on the clock.
    """
    stopwatch = Stopwatch()
    rng = np.random.default_rng(0)
    popularity = 1 / np.arange(1, _REHEARSAL_CLASSES + 1)
    y = rng.choice(_REHEARSAL_CLASSES, _REHEARSAL_DOCUMENTS, p=popularity / popularity.sum())
    y[:_REHEARSAL_CLASSES] = np.arange(_REHEARSAL_CLASSES)
    profiles = rng.dirichlet(np.full(_REHEARSAL_TERMS, 0.1), _REHEARSAL_CLASSES)
    X = sp.csr_array(np.array([rng.multinomial(12, profiles[c]) for c in y]).astype(like.dtype))
    X.indices = X.indices.astype(like.indices.dtype)
    X.indptr = X.indptr.astype(like.indptr.dtype)
    system = build_system(name, n_threads, seed=0)
    system.fit(X, y.astype(np.int64))
    system.predict(X)
    return stopwatch.read().seconds


def run(name: str, data: Path, n_threads: int, seed: int, output: Path) -> None:
    """Fit and predict one system, and write what it answered and what that cost."""
    system = build_system(name, n_threads, seed)
    X, y = load_part(data, "train")
    warmup_seconds = rehearse(name, n_threads, X) if system.compiles else 0.0
    stopwatch = Stopwatch()
    system.fit(X, y)
    fit = stopwatch.read()
    del X, y
    X_test, _ = load_part(data, "test")
    stopwatch = Stopwatch()
    answer = system.predict(X_test)
    predict = stopwatch.read()
    np.save(output.with_suffix(".npy"), system.ranking(answer))
    costs = {
        "fit_seconds": fit.seconds,
        "fit_processor_seconds": fit.processor_seconds,
        "tfidf_processor_seconds": system.tfidf_processor_seconds,
        "predict_seconds": predict.seconds,
        "predict_processor_seconds": predict.processor_seconds,
        "warmup_seconds": warmup_seconds,
        "peak_megabytes": peak_megabytes(),
    }
    output.write_text(json.dumps(costs), encoding="utf-8")


def load_part(path: Path, part: str) -> tuple[Any, NDArray[np.int64]]:
    """Return the counts and the class numbers of one part; the test part has no numbers."""
    with np.load(path) as arrays:
        data, indices, indptr = (arrays[f"{part}_{name}"] for name in ("data", "indices", "indptr"))
        X = sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, int(arrays["n_terms"])))
        y = arrays["train_y"] if part == "train" else np.empty(0, dtype=np.int64)
    return X, y


def peak_megabytes() -> float:
    """Return the largest memory that this process has had, in MB.

    Linux lets a child inherit `ru_maxrss` from the process that started it (it survives exec), so
    that a large parent would count; the peak of its own address space stands in /proc.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def _now() -> Cost:
    """Return the clock and the processor time of this process and its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Cost(time.perf_counter(), sum(usage.ru_utime + usage.ru_stime for usage in used))


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
