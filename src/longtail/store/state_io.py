"""The parts that every fitted model has, and how they go into a file and come back."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.retrieval.index import INDEX_PARTS, InvertedIndex, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.scoring.linear import ClassResiduals, LinearScorer
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus
from longtail.store.container import ModelFile
from longtail.store.texts import pack_texts
from longtail.training.calibration import Calibrator
from longtail.training.double_sampling import DoubleSamplingState, derive_state
from longtail.training.long_tail import LongTailState
from longtail.training.pairwise import PairwiseScorer


@dataclass(frozen=True)
class Model:
    """What every fitted state has.

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


def pack_model(model: Any) -> dict[str, NDArray[Any]]:
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


def plain_parts(model: Any) -> dict[str, Any]:
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


# Attribute -> name in a file.
_LONG_TAIL = {
    "collection_model": "background",
    "term_weights": "term_weights",
    "feature_weights": "feature_weights",
    "stale": "touched",
}
_PARTS: dict[str, dict[str, str]] = {
    "residuals": {
        "indptr": "class_weights/indptr",
        "indices": "class_weights/indices",
        "weights": "class_weights/values",
        "biases": "class_weights/constants",
    },
    "calibrator": {
        name: f"calibrator/{name.replace('_correct', '_right')}"
        for name in (
            "top_log_odds",
            "top_probabilities",
            "other_log_odds",
            "other_probabilities",
            "held_out_log_odds",
            "held_out_correct",
        )
    },
    "scorer": {
        "weights": "score/values",
        "length_weights": "score/slopes",
        "biases": "score/constants",
    },
    "index": {name: f"index/{stored}" for name, stored in INDEX_PARTS.items()},
}


def pack_state(state: LongTailState | DoubleSamplingState) -> dict[str, NDArray[Any]]:
    """Return a state of one segment as named arrays."""
    arrays = pack_model(state)
    if isinstance(state, DoubleSamplingState):
        return arrays | {
            "scorer/weights": state.pairwise.weights,
            "scorer/scales": state.pairwise.scales,
            "centroids": state.centroids.weights,
            "term_scores": state.term_scores.weights,
            **{stored: getattr(state.index, name) for name, stored in _PARTS["index"].items()},
        }
    arrays |= {stored: getattr(state, name) for name, stored in _LONG_TAIL.items()}
    arrays |= {"rare/counts": state.pruning.class_frequencies}
    arrays |= {"rare/most_postings": np.array([state.pruning.posting_budget])}
    for part, names in _PARTS.items():
        arrays |= {stored: getattr(getattr(state, part), name) for name, stored in names.items()}
    return arrays


def unpack_state(kind: str, file: ModelFile) -> LongTailState | DoubleSamplingState:
    """Return the state that a file holds."""
    parts = unpack_model(file)
    if kind == "DoubleSamplingClassifier":
        return _unpack_double_sampling(file, parts)
    return _unpack_long_tail(file, parts)


def _unpack_part(file: ModelFile, part: str) -> dict[str, Any]:
    return {name: file.array(stored) for name, stored in _PARTS[part].items()}


def _unpack_long_tail(file: ModelFile, parts: Model) -> LongTailState:
    scorer = LinearScorer(
        indptr=parts.statistics.indptr,
        indices=parts.statistics.indices,
        **_unpack_part(file, "scorer"),
    )
    if "index/words" in file.arrays:
        index = InvertedIndex(**_unpack_part(file, "index"))
    else:  # an older file has another index, so it is made anew
        index = build_index(scorer, parts.statistics.n_terms)
    if "rare/counts" in file.arrays:
        pruning = QueryPruning(file.array("rare/counts"), int(file.array("rare/most_postings")[0]))
    else:
        pruning = QueryPruning.of(parts.statistics)
    learned: dict[str, Any] = {name: file.array(stored) for name, stored in _LONG_TAIL.items()}
    return LongTailState(
        classes=parts.classes,
        statistics=parts.statistics,
        corpus=parts.corpus,
        current_corpus=parts.current_corpus,
        residuals=ClassResiduals(**_unpack_part(file, "residuals")),
        calibrator=Calibrator(**_unpack_part(file, "calibrator")),
        pruning=pruning,
        scorer=scorer,
        index=index,
        **learned,
    )


def _unpack_double_sampling(file: ModelFile, parts: Model) -> DoubleSamplingState:
    arrays, statistics = file.arrays, parts.statistics
    scorer = PairwiseScorer(arrays["scorer/weights"], arrays["scorer/scales"])
    if "index/words" not in arrays:  # an older file, whose index was another
        return derive_state(parts.classes, statistics, parts.corpus, scorer, None)
    rows = statistics.indptr, statistics.indices
    return DoubleSamplingState(
        classes=parts.classes,
        statistics=statistics,
        corpus=parts.corpus,
        current_corpus=parts.current_corpus,
        pairwise=scorer,
        sample=None,
        centroids=LinearScorer.without_bias(*rows, arrays["centroids"]),
        index=InvertedIndex(**_unpack_part(file, "index")),
        term_scores=LinearScorer.without_bias(*rows, arrays["term_scores"]),
    )


def validate_state(state: LongTailState | DoubleSamplingState) -> None:
    """Check the parts of a state from a file against each other."""
    statistics = state.statistics
    statistics.validate()
    state.index.validate(statistics.n_terms)
    if isinstance(state, DoubleSamplingState):
        scorers = [state.centroids, state.term_scores]
    else:
        scorers = [state.scorer]
        if len(state.pruning.class_frequencies) != statistics.n_terms:
            raise ValueError("the counts of classes do not fit the terms.")
        state.residuals.validate(statistics.n_classes, statistics.n_terms)
    if any(len(scorer.weights) != len(statistics.indices) for scorer in scorers):
        raise ValueError("a scorer does not fit its classes and terms.")


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """Return what a constructor was given, as JSON knows it; a generator's state is left out."""
    parameters = {
        name: plain(value)
        for name, value in estimator.get_params(deep=False).items()
        if name != "classifier"
    }
    if not isinstance(parameters["random_state"], numbers.Integral | None):
        parameters["random_state"] = None
    if isinstance(parameters.get("char_ngrams"), tuple):
        parameters["char_ngrams"] = list(parameters["char_ngrams"])
    return parameters
