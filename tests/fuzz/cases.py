"""Cases: mutated files, each from a name or a number, and what is called on what they load to.

A case is a name, a content, and whether a model that loads is also edited and saved ("deep"), or
only asked to predict.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import scipy.sparse as sp

import longtail
from longtail.exceptions import ModelFileError
from longtail.store import open_model
from tests.fuzz.mutations import (
    SYSTEMATIC,
    VALUES,
    Array,
    mutate_array,
    mutate_parameters,
    mutate_sizes,
)
from tests.fuzz.seeds import MORE_PARTS, SEEDS, Content, copy_seed, read_seed

# Parts and parameters that only files of texts have.
TEXT_PARTS = ("vocabulary", "added", "values/text", "values/added", "values/columns", "estimators")
# One in so many cases is in the suite's share: of those that no other seed has, and of the others.
THINNED, THINNED_TWICE = 2, 8
SUITE_PARTS = 2
TEXTS = ["bearish bearlet the the", "owl elk", "", "beeing unseen bearton bearton codous"]
Measured = Callable[[str, Callable[[], Any]], Any]


Case = tuple[str, Content, bool]


def systematic_cases(seed: str, wanted: Callable[[str], bool] | None = None) -> Iterator[Case]:
    """Yield every systematic mutation of every array and value of a seed, or the wanted ones."""
    for name in read_seed(seed).arrays:
        for mutation, change in SYSTEMATIC.items():
            case = f"{name}: {mutation}"
            if wanted is not None and not wanted(case):
                continue
            content = copy_seed(seed)
            try:
                changed = change(content.arrays[name])
            except (ValueError, IndexError):  # not for arrays of these dimensions
                continue
            if changed is None:
                del content.arrays[name]
            else:
                content.arrays[name] = changed
            yield case, content, True
    for path in _paths(read_seed(seed).parameters):
        for value in VALUES[::2]:
            case = f"{'/'.join(path)} = {value!r}"
            if wanted is None or wanted(case):
                content = copy_seed(seed)
                content.parameters = _replace(content.parameters, path, value)
                yield case, content, True


def suite_part(part: int) -> Iterator[Case]:
    """Yield one of the parts of the test suite's share, so that processes run them side by side."""
    return islice(suite_cases(), part, None, SUITE_PARTS)


def suite_cases() -> Iterator[Case]:
    """Yield the test suite's share, a few thousand cases; `make fuzz` runs all of them first.

    A model of an array or value that is in no other seed is edited and saved. Where another seed
    has the same one, the same state comes of it: fewer of these are loaded, and predict.
    """
    for seed in SEEDS:

        def is_own(case: str, seed: str = seed) -> bool:
            return case.startswith(MORE_PARTS.get(seed, TEXT_PARTS if "text_" in seed else ""))

        def wanted(case: str, seed: str = seed, is_own: Callable[[str], bool] = is_own) -> bool:
            if seed in MORE_PARTS and not is_own(case):
                return False
            thinned = THINNED if is_own(case) else THINNED_TWICE
            return crc32(f"{seed} {case}".encode()) % thinned == 0

        for case, content, _ in systematic_cases(seed, wanted):
            yield f"{seed}, {case}", content, is_own(case)


def sample_cases() -> Iterator[Case]:
    """Yield one mutation of every array and value that any seed has; mutations take turns."""

    def subject(case: str) -> str:
        return case.partition(": ")[0].partition(" = ")[0]

    seen: set[str] = set()
    for seed in reversed(SEEDS):  # those of today's format first
        found = systematic_cases(seed, lambda case: subject(case) not in seen)
        for name, group in groupby(found, lambda case: subject(case[0])):
            cases = list(group)
            case, content, deep = cases[len(seen) % len(cases)]
            seen.add(name)
            yield f"{seed}, {case}", content, deep


def file_cases(folder: str) -> Iterator[Case]:
    """Yield the contents of files as they are."""
    for path in sorted(Path(folder).glob("*.longtail")):
        file = open_model(path)
        yield path.name, Content(file.kind, file.parameters, file.arrays), True


def _paths(parameters: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield where values stand in nested parameters."""
    for key, value in parameters.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *rest) for rest in _paths(value))


def _replace(parameters: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    first, *rest = path
    changed = _replace(parameters[first], tuple(rest), value) if rest else value
    return {**parameters, first: changed}


def random_case(number: int) -> Case:
    """Return the mutated file of a number, always the same."""
    random = np.random.default_rng(number)
    name = SEEDS[int(random.integers(len(SEEDS)))]
    content = copy_seed(name)
    for _ in range(int(random.choice([1, 1, 1, 2, 3]))):
        choice = random.random()
        if choice < 0.15 and content.parameters:
            content.parameters = mutate_parameters(content.parameters, random)
        elif choice < 0.25:
            mutate_sizes(content.arrays, random)
        elif content.arrays:
            names = list(content.arrays)
            mutate_array(names[int(random.integers(len(names)))], content.arrays, random)
    if random.random() < 0.02:
        content.kind = str(random.choice(["LongTailClassifier", "TextClassifier", "Toaster"]))
    return f"{number} ({name})", content, True


def run_case(path: Path, deep: bool = True, measured: Measured = lambda what, call: call()) -> str:
    """Load a file and call everything; return "refused" or "works".

    Parameters
    ----------
    path : Path
        The file.
    deep : bool, default=True
        Whether the model is edited and saved, too.
    measured : callable, optional
        Called with "load" or "use" and the function that does it; may refuse what it takes.

    Raises
    ------
    Exception
        Anything that is not documented.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = measured("load", lambda: longtail.load(path))
        except ModelFileError as error:
            assert 0 < len(error.problem) < 1000, error.problem
            return "refused"
        assert model.n_jobs is None
        _give_encoder(model)
        measured("use", lambda: exercise(model, path) if deep else read_only(model))
    return "works"


def read_only(model: Any) -> None:
    """Call what only reads."""
    _give_encoder(model)
    _predict(model, _documents(model), model.classes_)


def exercise(model: Any, path: Path) -> None:
    """Call every public method; only editing and thresholds may say that they cannot."""
    X = _documents(model)
    labels = model.classes_
    assert len(labels) == model.statistics_.n_classes
    _predict(model, X, labels)
    new = labels[0] + 77 if labels.dtype.kind in "iuf" and labels[0] < 50 else labels[0]
    new = "new" if labels.dtype.kind in "UO" else new
    text = "owl elk" if X is TEXTS else X[1]
    edits = [
        lambda: model.recalibrate(X[:2], np.array([labels[0], new], labels.dtype)),
        lambda: model.partial_fit(X[:2], np.array([labels[0], new], labels.dtype)),
        lambda: model.partial_fit(X[1:2], labels[-1:]),
        lambda: model.forget(X[:1], labels[:1]),
        lambda: model.refine(X[1:2], labels[-1:]),
        lambda: model.refine(),
        lambda: model.set_class_text(labels[-1], text),
        lambda: model.rename_class(labels[-1], new),
        lambda: model.merge_classes(labels[0], labels[1]),
        lambda: model.remove_class(labels[2]),
        lambda: model.set_class_text(labels[0], None),
        lambda: model.threshold_for(0.5),
        lambda: model.threshold_for(0.5, unknown=0.2),
    ]
    for edit in edits:
        try:
            edit()
        except (ValueError, AttributeError, TypeError, IndexError) as error:
            _check_refusal(error, model, labels)
    _predict(model, X, model.classes_)
    try:
        model.save(path)
    except ValueError as error:
        assert "cannot be saved" in str(error), error
        return
    loaded = longtail.load(path)
    _give_encoder(loaded)
    loaded.predict(X)


def _give_encoder(model: Any) -> None:
    """Let a model that needs an encoder have one; which one it is is not checked."""
    embedder = getattr(model.state_, "embedder", None)
    if embedder is None:
        return
    n_dimensions = len(embedder.probe)
    model._state = replace(
        model.state_,
        embedder=replace(embedder, encode=lambda texts: np.eye(len(texts), n_dimensions) + 0.1),
    )


def _check_refusal(error: Exception, model: Any, labels: Array) -> None:
    """Let pass what a user is told; an AttributeError only where the method does not exist."""
    if isinstance(error, AttributeError | TypeError):  # `refine` and what only the other one has
        assert _is_the_papers(model), error
    elif isinstance(error, IndexError):
        assert len(labels) < 3, error  # this harness has no third class to remove
    else:
        assert not isinstance(error, UnicodeError), error


def _is_the_papers(model: Any) -> bool:
    """Return whether probabilities and residuals do not exist."""
    return type(model.classifier_).__name__ == "DoubleSamplingClassifier"


def _predict(model: Any, X: Any, labels: Array) -> None:
    """Call what only reads."""
    counts_model = model.classifier_
    predicted = model.predict(X)
    if model.multilabel_:
        _check_sets(predicted, labels)
        _check_sets(model.predict(X, threshold=0.3, max_labels=2), labels)
    else:
        assert predicted.shape == (len(TEXTS),)
        assert np.isin(predicted, labels).all()
    top = model.predict_topk(X, 3)
    assert np.isin(top.classes[np.isfinite(top.scores)], labels).all()
    if not _is_the_papers(model):
        model.predict_proba_topk(X, 3)
        assert model.predict_proba(X).shape == (len(TEXTS), len(labels))
        model.decision_function(X)
        _ = counts_model.self_check_.summary(), counts_model.calibration_error_
        _ = model._repr_html_()
    model.explain(X[:2])
    _ = model.weights_, model.statistics_.n_documents, model.get_params()
    if hasattr(model, "term_weights_"):
        _ = model.term_weights_
    if X is TEXTS:
        assert set(model.class_texts_) <= set(labels.tolist())
        _ = model.columns_


def _check_sets(predicted: Any, labels: Array) -> None:
    """Check that label sets have the labels of the model, in any of their forms."""
    if isinstance(predicted, list):
        assert len(predicted) == len(TEXTS)
        assert {label for found in predicted for label in found} <= set(labels.tolist())
        return
    assert predicted.shape[0] == len(TEXTS)
    assert np.isin(sp.coo_array(predicted).coords[1], labels).all()


def _documents(model: Any) -> Any:
    """Return texts or counts, whatever the model takes."""
    is_text = type(model).__name__ == "TextClassifier"
    return TEXTS if is_text else _counts(model.n_features_in_)


def _counts(n_terms: int) -> Array:
    """Return documents of as many rows as there are texts."""
    X = np.zeros((len(TEXTS), n_terms), np.int64)
    for row, columns in ((0, range(0, n_terms, 7)), (1, range(1, n_terms, 5)), (3, range(n_terms))):
        X[row, list(columns)] = 1 + np.arange(len(columns)) % 3
    return X
