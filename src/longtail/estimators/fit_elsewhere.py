"""Seam between an estimator and a fit that runs elsewhere.

`longtail.distributed` runs the stages of a fit; an estimator says what to run, and takes the state.
"""

from __future__ import annotations

from typing import Any

from longtail._columns import as_labels
from longtail._labels import Labels
from longtail.estimators.added_documents import AddedDocuments
from longtail.estimators.base import CountClassifier
from longtail.estimators.class_texts import check_class_texts, read_class_texts
from longtail.estimators.embedder import Embedder
from longtail.estimators.text import TextClassifier
from longtail.estimators.text_state import TextState
from longtail.text import Vocabulary

ONLY_IN_MEMORY = (
    ("time_budget", None, "time_budget is for fit in memory; over partitions leave it at None."),
    ("memory", None, "memory: a fit over partitions keeps no documents; leave it out."),
    ("class_weight", None, "class_weight is for fit in memory; over partitions leave it at None."),
)


def refuse_parameters(estimator: Any) -> None:
    """Refuse parameters that a fit over partitions cannot follow."""
    classifier = estimator._classifier_of_counts()
    for name, neutral, message in ONLY_IN_MEMORY:
        if getattr(classifier, name, neutral) not in (neutral, None, 0):
            raise ValueError(message)


def check_text_form(estimator: Any, class_texts: Any) -> Any:
    """Refuse class texts that `fit` would, as far as that is known before anything is read.

    Returns
    -------
    dict of label to str, or what was given
        For texts those that are not blank; None where there is no text at all.
    """
    if estimator.takes_texts:
        given = check_class_texts(class_texts) or None
        classifier = estimator._new("classifier")
    else:
        given, classifier = class_texts, estimator
    if given is None:
        return None
    if not hasattr(classifier, "set_class_text"):
        classifier._read_class_texts(given, None)  # refuses them
    if estimator.takes_texts:
        as_labels(list(given))  # refuses labels of different types
        return given
    return None if read_class_texts(given, None) is None else given


def new_parts(estimator: TextClassifier) -> tuple[Any, CountClassifier]:
    """Return the vectorizer and the classifier to fit, whose parameters were checked."""
    vectorizer, classifier = estimator._new("vectorizer"), estimator._new("classifier")
    classifier._check_parameters()
    return vectorizer, classifier


def embedder_of(estimator: TextClassifier, classifier: CountClassifier) -> Embedder | None:
    """Return the encoder of a classifier of texts, if it has one that its classifier can use."""
    if estimator.embedder is None:
        return None
    classifier._check_takes_embeddings()
    return Embedder.of(estimator.embedder)


def check_parameters(classifier: CountClassifier) -> None:
    """Refuse parameters that cannot be used with any data."""
    classifier._check_parameters()


def check_takes(classifier: CountClassifier, labels: Labels) -> None:
    """Refuse label sets where the classifier takes one label for each document."""
    if not classifier._takes_label_sets:
        classifier._check_takes(labels)


def config_of(classifier: Any) -> Any:
    """Return the hyperparameters of a fit."""
    return classifier._config()


def sums_sublinear(classifier: CountClassifier) -> bool:
    """Return whether the sums of documents dampen term frequencies."""
    return classifier._sublinear


def adopt_state(classifier: CountClassifier, state: Any) -> None:
    """Make a classifier of counts fitted."""
    classifier._adopt(state)


def adopt_texts(
    estimator: TextClassifier,
    vocabulary: Vocabulary,
    classifier: CountClassifier,
    added: AddedDocuments,
    class_texts: dict[Any, str],
    embedder: Embedder | None,
) -> None:
    """Make a classifier of texts fitted, by a vocabulary and a fitted classifier of counts."""
    more = {"base_texts": class_texts, "embedder": embedder}
    state = TextState.of(vocabulary, classifier, added, **more)
    estimator._adopt(state)
