"""Questions that every program asks of a fitted model: command line, service, tools, partitions.

In: an estimator of whatever kind. Out: what it knows (probabilities, texts of classes, a place in a
hierarchy), labels in its own type, and the arguments that limit its classes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from longtail._constants import EXPECTED

if TYPE_CHECKING:
    from longtail.results import TopK


def knows_probabilities(model: Any) -> bool:
    """Return whether a model knows probabilities; the others have scores."""
    return hasattr(model, "predict_proba_topk")


def class_texts(model: Any) -> dict[Any, str]:
    """Return the names or descriptions of classes; models of counts have none."""
    texts: dict[Any, str] = getattr(model, "class_texts_", {})
    return texts


def text_columns(model: Any) -> tuple[str, ...]:
    """Return the columns of a record that make up its text, or all its fields."""
    fields, columns = model.vocabulary_.options.fields, model.columns_
    names: tuple[str, ...] = () if columns is None else columns.text
    return fields.names if fields is not None else names or ("text",)


def check_takes_texts(model: Any, path: str | os.PathLike[str], program: str) -> None:
    """Refuse a model that takes counts, for a program that has texts."""
    if not model.takes_texts:
        raise ValueError(
            f"{os.fspath(path)}: holds a {type(model).__name__}, which takes counts; {program} "
            "a model that takes texts. Fit one with: longtail fit, or TextClassifier."
        )


def read_expected(
    table: Any, calibration_error: float
) -> dict[str, tuple[float, float | None, float | None]]:
    """Return value and interval of what to expect on new documents, of what is known, by name.

    `table` is that of a self-check, with -1 for what is not known. A model that was recalibrated
    has another calibration error than the table, without an interval.
    """
    rows: dict[str, Any] = dict(zip(EXPECTED, table.tolist(), strict=True))
    known = {name: tuple(row) for name, row in rows.items() if row[0] >= 0}
    if "accuracy" in known:
        found, *bounds = rows["calibration_error"]
        is_same = math.isclose(found, calibration_error, abs_tol=1e-5)
        known["calibration_error"] = calibration_error, *(bounds if is_same else (None, None))
    return known


def find_path(model: Any, label: Any) -> list[Any]:
    """Return the nodes from a root to a label; none where it has no place in a hierarchy."""
    from longtail._columns import as_labels

    hierarchy = getattr(model, "hierarchy_", None)
    if hierarchy is None or hierarchy.find(as_labels([label]))[0] < 0:
        return []
    return list(hierarchy.path(label))


def as_label(model: Any, label: str | int) -> Any:
    """Return a label in the type that the classes of a model have.

    Raises
    ------
    ValueError
        If they are numbers and it is none.
    """
    kind = model.classes_.dtype.kind
    if kind not in "iu":
        return str(label) if kind in "UO" else label
    try:
        return int(label)
    except ValueError:
        raise ValueError(f"the classes of this model are whole numbers; got {label!r}.") from None


def read_limits(
    model: Any,
    within: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    branch: Any = None,
) -> dict[str, Any]:
    """Return `within` and `exclude` as the methods of a model take them.

    A branch, the classes at or below a node, limits `within`.
    """
    limits = {"within": within, "exclude": exclude}
    if branch is not None:
        below = model.branch(branch).tolist()
        allowed = set(below if within is None else within)
        limits["within"] = [label for label in below if label in allowed]
    return {name: labels for name, labels in limits.items() if labels is not None}


def rank(model: Any, documents: Any, k: int, **limits: Any) -> TopK:
    """Return the k best classes of each document, with probabilities where the model knows them."""
    method = model.predict_proba_topk if knows_probabilities(model) else model.predict_topk
    found: TopK = method(documents, k, **limits)
    return found


def count_candidates(model: Any) -> int:
    """Return how many classes are found for a document."""
    from longtail._validation import cap_candidates

    classifier = model.classifier_
    factor = getattr(classifier.state_, "candidate_factor", 1)
    return cap_candidates(factor * classifier.candidates, len(model.classes_))


def plain(value: Any) -> Any:
    """Return a value that JSON can hold; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
