"""`longtail warmup`: compile all kernels ahead, once per machine."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from longtail.cli.options import AsJson, Quiet
from longtail.cli.show import Update, clear_errors, print_json, progress, say

COMPILING = "compiling kernels, once per machine"


def warmup(as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Compile all kernels and keep them on the disk, so that the first fit does not wait for it."""
    with clear_errors():
        start = time.perf_counter()
        with progress(quiet) as update:
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
    """Call all that fit, predict, explain, teach and the readers need, on made-up documents."""
    update(COMPILING, 0, None)
    with tempfile.TemporaryDirectory() as folder:
        calls = list(_list_calls(Path(folder)))
        for i, run in enumerate(calls):
            update(COMPILING, i, len(calls))
            run()
        update(COMPILING, len(calls), len(calls))


def _list_calls(folder: Path) -> Iterator[Callable[[], Any]]:
    """Yield what has to run, in this order."""
    from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
    from longtail.datasets import read_svmlight
    from longtail.datasets.count_chunks import read_count_chunks

    labels = [f"class {i % 12}" for i in range(240)]
    texts = [f"made up text {i % 12} of number {i % 7} and {i % 12 * 5}" for i in range(240)]
    table = folder / "counts.svm"
    lines = (f"{i % 12} {i % 12 + 1}:1 {i % 7 + 13}:2.5\n" for i in range(240))
    table.write_text("".join(lines))
    [counts] = read_count_chunks(table)
    X, y = counts.X, counts.y
    fitted: dict[str, Any] = {}

    def fit_counts() -> None:
        fitted["counts"] = LongTailClassifier(random_state=0, n_jobs=1).fit(X, y)

    def fit_texts() -> None:
        fitted["text"] = TextClassifier(random_state=0, n_jobs=1).fit(texts, labels)

    def fit_paper() -> None:
        fitted["paper"] = DoubleSamplingClassifier(random_state=0, n_jobs=1).fit(X, y)

    yield lambda: read_svmlight(table)
    yield fit_counts
    yield lambda: _use(fitted["counts"], X, y, folder)
    yield lambda: fitted["counts"].partial_fit(X[:5], y[:5] + 50).refine(X, y)
    yield fit_texts
    yield lambda: _use(fitted["text"], texts, labels, folder)
    yield fit_paper
    yield lambda: _use(fitted["paper"], X, y, folder)
    # Counts of other types have kernels of their own.
    yield lambda: _use(fitted["counts"], X.astype("int64"), y, folder)
    yield lambda: fitted["counts"].fit(X.astype("int32"), y)
    for kind in (DoubleSamplingClassifier, LongTailClassifier):
        for single in (X.astype("float32"), (2 * X).astype("float32")):  # with fractions, without
            yield partial(_fit_and_use, kind(random_state=0, n_jobs=1), single, y, folder)
    yield lambda: fitted["text"].set_params(vectorizer__char_ngram_range=(3, 4)).fit(texts, labels)


def _fit_and_use(classifier: Any, X: Any, y: Any, folder: Path) -> None:
    """Fit on counts of another type."""
    _use(classifier.fit(X, y), X, y, folder)


def _use(classifier: Any, documents: Any, labels: Any, folder: Path) -> None:
    """Predict, explain and edit with a classifier, then with the same one from a file."""
    from longtail import load

    path = folder / type(classifier).__name__
    classifier.save(path)
    for model in (classifier, load(path)):
        model.predict_topk(documents[:20], 3)
        if hasattr(model, "predict_proba_topk"):
            model.predict_proba_topk(documents[:20], 3)
        model.predict(documents[:1])
        model.explain(documents[:2])
        model.partial_fit(documents[:2], labels[:2])
        model.predict_topk(documents[:20], 3)
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
            # What is only called by other kernels has no cache.
            if defined_here and stats is not None and stats.cache_path is not None:
                folders.add(str(stats.cache_path))
                n_compiled += sum(stats.cache_misses.values())
    return sorted(folders), n_compiled
