"""The parts that every fitted model has, and how they go into a file and come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus
from longtail.store.container import ModelFile
from longtail.store.texts import pack_texts


@dataclass(frozen=True)
class Model:
    """What every fitted classifier has.

    `corpus` holds the global quantities of the last fit; `current_corpus` adds the terms seen
    since.
    """

    classes: NDArray[Any]
    statistics: ClassStatistics
    corpus: Corpus
    current_corpus: Corpus


def current_corpus(corpus: Corpus, statistics: ClassStatistics) -> Corpus:
    """Return the quantities of the last fit, with the terms that these statistics add."""
    now = statistics.corpus
    return corpus.with_new_terms(now.document_frequencies, now.term_counts)


_STATISTICS_ARRAYS = (
    "indptr",
    "indices",
    "counts",
    "centroid_sums",
    "class_sizes",
    "document_frequencies",
)


def pack_model(model: Model) -> dict[str, NDArray[Any]]:
    """Return the parts that every model has as named arrays."""
    arrays = {f"statistics/{name}": getattr(model.statistics, name) for name in _STATISTICS_ARRAYS}
    arrays["corpus/document_frequencies"] = model.corpus.document_frequencies
    arrays["corpus/term_counts"] = model.corpus.term_counts
    return arrays | _pack_labels(model.classes)


def unpack_model(file: ModelFile) -> Model:
    """Rebuild the parts that every model has."""
    arrays: dict[str, Any] = {name: file.array(f"statistics/{name}") for name in _STATISTICS_ARRAYS}
    statistics = ClassStatistics(**arrays, **file.parameters["statistics"])
    corpus = Corpus(
        document_frequencies=file.array("corpus/document_frequencies"),
        term_counts=file.array("corpus/term_counts"),
        **file.parameters["corpus"],
    )
    return Model(
        classes=_unpack_labels(file, statistics.n_classes),
        statistics=statistics,
        corpus=corpus,
        current_corpus=current_corpus(corpus, statistics),
    )


def _pack_labels(classes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the labels as arrays: numbers as they are, strings as UTF-8."""
    if classes.dtype.kind in "iufb":
        return {"classes": classes}
    if not all(isinstance(label, str) for label in classes.tolist()):
        raise TypeError(
            "only string, integer, float and boolean labels can be saved; "
            f"the first label is {classes[0]!r}. Fit with str(label) instead."
        )
    name = "classes.object" if classes.dtype.kind == "O" else "classes.text"
    return pack_texts(name, classes.tolist())


def _unpack_labels(file: ModelFile, n_classes: int) -> NDArray[Any]:
    """Return the labels in the type they were saved from."""
    if "classes" in file.arrays:
        labels = np.array(file.array("classes", ndim=1))
    elif "classes.object.utf8" in file.arrays:
        labels = np.array(file.texts("classes.object"), dtype=object)
    else:
        labels = np.array(file.texts("classes.text"), dtype=np.str_)
    if len(labels) != n_classes or (n_classes > 1 and not np.all(labels[:-1] < labels[1:])):
        raise ValueError("the labels must be sorted, and as many as there are classes")
    return labels


def plain(value: Any) -> Any:
    """Return a numpy scalar as the Python number that JSON knows."""
    return value.item() if isinstance(value, np.generic) else value


def plain_parts(model: Model) -> dict[str, Any]:
    """Return the parts that every model has and that are no arrays."""
    return {
        "statistics": {
            "count_bits": model.statistics.count_bits,
            "sublinear": model.statistics.sublinear,
        },
        "corpus": {
            "n_documents": model.corpus.n_documents,
            "length": model.corpus.length,
            "mean_class_length": model.corpus.mean_class_length,
        },
    }
