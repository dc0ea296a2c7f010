"""`longtail warmup`: compile all kernels ahead, once per machine."""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from longtail.cli.shared_options import AsJson, Quiet
from longtail.cli.show import Update, clear_errors, print_json, progress, say

COMPILING = "compiling kernels, once per machine"
N_CLASSES = 600  # so many that one document is scored pair by pair
MANY_CLASSES = (1 << 16) + 1


def warmup(as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Compile all kernels and keep them on the disk, so that the first fit does not wait for it."""
    with clear_errors():
        start = time.perf_counter()
        with progress(quiet, compiles=False) as update:
            compile_kernels(update)
        seconds = time.perf_counter() - start
        folders, n_compiled = find_compiled()
        if as_json:
            print_json({"seconds": seconds, "compiled": n_compiled, "folders": folders})
        elif not quiet:
            done = f"{n_compiled} compiled" if n_compiled else "all were compiled already"
            say(
                f"Kernels are ready after {seconds:.1f} s ({done}); cached in {', '.join(folders)}."
            )


def compile_kernels(update: Update) -> None:
    """Run all kernels of fit, predict, explain, teach and the readers on made-up documents."""
    with tempfile.TemporaryDirectory() as folder:
        _run_all(list(_list_calls(Path(folder))), update)


def compile_for_text(update: Update) -> None:
    """Run the kernels that models of texts need: a third of all."""
    from longtail import TextClassifier

    texts, labels = _make_texts(N_CLASSES)
    classifier = TextClassifier(random_state=0, n_jobs=1)
    with tempfile.TemporaryDirectory() as folder:
        calls = [
            lambda: _use(classifier.fit(texts, labels), texts, labels, Path(folder)),
            lambda: classifier.predict_topk(texts, 3),  # so many are scored class by class
            _fit_lists,
        ]
        _run_all(calls, update)


def _run_all(calls: list[Callable[[], Any]], update: Update) -> None:
    """Run calls one by one and report progress."""
    from longtail.exceptions import UncalibratedWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncalibratedWarning)  # these models are thrown away
        for i, run in enumerate(calls):
            update(COMPILING, i, len(calls), "step")
            run()
    update(COMPILING, len(calls), len(calls), "step")


def _make_counts(table: Path) -> tuple[Any, Any]:
    """Return counts of made-up documents, some with fractions, and write them as a table."""
    from longtail.datasets.count_chunks import read_count_chunks

    rows = ((i % N_CLASSES, i % 97 + 1, i % 89 + 98) for i in range(2 * N_CLASSES))
    table.write_text("".join(f"{label} {first}:1 {second}:2.5\n" for label, first, second in rows))
    [counts] = read_count_chunks(table)
    return counts.content, counts.labels


def _make_texts(n_classes: int) -> tuple[list[str], list[str]]:
    """Return made-up texts, twenty or two of each class, and their labels."""
    class_ids = [i % n_classes for i in range(max(240, 2 * n_classes))]
    labels = [f"class {c}" for c in class_ids]
    texts = [f"made up text {c} of number {i % 7} and {c * 5}" for i, c in enumerate(class_ids)]
    return texts, labels


def _list_calls(folder: Path) -> Iterator[Callable[[], Any]]:
    """Yield the calls in the order in which they run.

    Kernels have a version for counts with fractions and one for whole counts, one for single
    documents among many classes, and one for more classes than 16 bits can tell apart.
    """
    from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
    from longtail.datasets import read_svmlight

    table = folder / "counts.svm"
    X, y = _make_counts(table)
    yield lambda: read_svmlight(table)
    for kind in (LongTailClassifier, DoubleSamplingClassifier):
        for matrix in (X, 2 * X):
            yield partial(_fit_and_use, kind(random_state=0, n_jobs=1), matrix, y, folder)
    yield lambda: _search_many_classes(X, y)
    yield _fit_lists
    texts, labels = _make_texts(12)
    fields = {"fields": {"title": "text", "body": "text"}}  # texts are documents of these, too
    for options in ({}, {"vectorizer__char_ngram_range": (3, 4)}, fields):
        classifier = TextClassifier(random_state=0, n_jobs=1).set_params(**options)
        yield partial(_fit_and_use, classifier, texts, labels, folder)


def _fit_and_use(classifier: Any, documents: Any, labels: Any, folder: Path) -> None:
    """Fit, predict, explain and edit, then with the same classifier from a file."""
    _use(classifier.fit(documents, labels), documents, labels, folder)
    if hasattr(classifier, "refine"):
        classifier.partial_fit(documents[:2], labels[:2]).refine(documents, labels)


def _fit_lists() -> None:
    """Learn feature weights and a mixture, and draw negatives: made-up documents are too easy."""
    import numpy as np

    from longtail.training.listwise import fit_feature_weights
    from longtail.training.mixture import MIN_MIXED, N_FEATURES, N_PARTS, PairParts, fit_mixture
    from longtail.training.sampling import draw_uniform_negatives

    draw_uniform_negatives(np.zeros(1, np.int64), np.zeros(1, np.int64), 3, 1, 0)
    fit_feature_weights(np.zeros((1, 2, N_FEATURES), np.float32))
    pairs = (MIN_MIXED, 2)
    parts = PairParts(np.zeros(pairs), np.zeros((*pairs, N_PARTS)), np.zeros(pairs))
    candidates = np.tile(np.arange(2), (MIN_MIXED, 1))
    fit_mixture(parts, candidates == 0, candidates)


def _search_many_classes(X: Any, y: Any) -> None:
    """Search an index whose postings have class ids of 32 bits; classes repeat each other."""
    import numpy as np

    from longtail.model.scorer import LinearScorer
    from longtail.model.statistics import ClassStatistics
    from longtail.model.weighting import weight_documents
    from longtail.paper.features import centroid_scorer, weight_for_cosine
    from longtail.retrieval.index import build_index
    from longtail.retrieval.search import search
    from longtail.sparse import CountMatrix, gather_rows

    counts = CountMatrix.from_matrix(X)
    statistics = ClassStatistics.from_counts(counts, y, N_CLASSES)
    corpus = statistics.corpus
    scorer = centroid_scorer(statistics, corpus)
    sources = np.arange(MANY_CLASSES) % N_CLASSES
    indptr, entries = gather_rows(scorer.indptr, sources)
    for documents in (weight_documents(counts, corpus.idf), weight_for_cosine(counts, corpus.idf)):
        weights = scorer.weights[entries].astype(documents.weights.dtype)
        many = LinearScorer.without_bias(indptr, scorer.indices[entries], weights)
        index = build_index(many, counts.n_terms)
        search(documents, many, index, 1, document_ids=np.arange(1))


def _use(classifier: Any, documents: Any, labels: Any, folder: Path) -> None:
    """Predict, explain and edit with a classifier, then with the same one from a file."""
    from longtail import load

    path = folder / type(classifier).__name__
    classifier.save(path)
    for model in (classifier, load(path)):
        model.predict_topk(documents[:200], 3)
        if hasattr(model, "predict_proba_topk"):
            model.predict_proba_topk(documents[:200], 3)
        model.predict(documents[:1])
        model.explain(documents[:2])
        model.partial_fit(documents[:2], labels[:2])
        model.predict_topk(documents[:200], 3)
        model.explain(documents[:2])
        model.forget(documents[:2], labels[:2])
        model.predict_topk(documents[:2], 3)
        model.save(path)


def find_compiled() -> tuple[list[str], int]:
    """Return the folders of compiled kernels, and how many kernels this process compiled."""
    folders, n_compiled = set(), 0
    modules = [m for name, m in sys.modules.items() if name.startswith("longtail._kernels")]
    for module in modules:
        for kernel in vars(module).values():
            stats = getattr(kernel, "stats", None)
            defined_here = getattr(kernel, "__module__", None) == module.__name__
            # Kernels that only other kernels call have no cache.
            if defined_here and stats is not None and stats.cache_path is not None:
                folders.add(str(stats.cache_path))
                n_compiled += sum(stats.cache_misses.values())
    return sorted(folders), n_compiled
