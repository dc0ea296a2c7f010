"""Documents and labels as a caller gives them, checked; and the entry that they make.

In: a fitted model, texts or counts, and labels. Out: an `Entry` of the model's own numbers, and the
documents and labels as plain JSON, to be shown later.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

from longtail._columns import align_labels, as_labels, as_plain, show_label
from longtail._constants import MAX_LABEL
from longtail._labels import LabelSets, are_label_sets, as_sets, replicate
from longtail._records import write_documents
from longtail._words import count
from longtail.estimators import text_state
from longtail.exceptions import DocumentError
from longtail.model.edits import Edit, Forget, Recalibrate, Teach
from longtail.model.embeddings import GivenDocuments
from longtail.model.entry import Changes, Entry
from longtail.sparse import CountMatrix, check_sparse
from longtail.text import Vocabulary

_MAX_PADDING = 1 << 22  # bytes, of the labels of a journal in one array
# What a model says of unfit documents.
UNFIT = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)


class Given(NamedTuple):
    """Documents with one label each, as plain values."""

    documents: Any  # texts, or counts
    labels: list[Any]  # their labels

    @property
    def shown(self) -> dict[str, list[Any]]:
        """Their content as a journal keeps it to show."""
        texts = {"documents": self.documents} if isinstance(self.documents, list) else {}
        return texts | {"labels": self.labels}

    def first(self, n: int) -> Given:
        """Return the first of them."""
        return Given(self.documents[:n], self.labels[:n])


def read_documents(model: Any, documents: Any, labels: Any) -> Given:
    """Return documents and labels, or say what is wrong with them.

    A document with a label set is there once for each of its labels: sums are of such pairs, so
    each can be forgotten by itself.

    Raises
    ------
    ValueError, TypeError
        If they are not what the model takes, or there is not one label for each document.
    """
    if are_label_sets(labels):
        return _read_sets(model, documents, as_sets(labels))
    # A list of strings and numbers would become an array of strings, as wide as the longest.
    named = labels if isinstance(labels, list | tuple) else np.asarray(labels).tolist()
    if not isinstance(named, list | tuple) or any(isinstance(label, list) for label in named):
        raise ValueError(f"labels must be a list with one label for each document; got {labels!r}.")
    checked = _check_documents(model, documents)
    n_documents = len(checked) if isinstance(checked, list) else checked.shape[0]
    if n_documents != len(named) or not n_documents:
        raise ValueError(
            f"labels must have one label for each document, and there must be one at least; got "
            f"{count(n_documents, 'document')} and {count(len(named), 'label')}."
        )
    return Given(checked, [plain_label(label) for label in named])


def change_documents(
    model: Any, action: str, given: Given, change_number: int
) -> tuple[Entry, Any]:
    """Teach or forget documents in a copy of a model, or compare them with what it says.

    Returns
    -------
    entry : Entry
        The change as numbers.
    model : estimator
        With the change.

    Raises
    ------
    DocumentError
        Which of several documents cannot be forgotten, and why.
    """
    try:
        return _change(model, action, given, change_number)
    except UNFIT as error:
        if action != "forget" or len(given.labels) < 2:
            raise
        raise DocumentError(*_find_refused(model, given, change_number, error)) from None


def _find_refused(
    model: Any, given: Given, change_number: int, error: Exception
) -> tuple[int, Exception]:
    """Return the first document that a model does not forget, and why: by bisection.

    What is refused together with fewer documents is refused together with more.
    """
    low, high = 0, len(given.labels)  # the first `low` are accepted, the first `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _change(model, "forget", given.first(middle), change_number)
            low = middle
        except UNFIT as reason:
            high, error = middle, reason
    return low, error


def _change(model: Any, action: str, given: Given, change_number: int) -> tuple[Entry, Any]:
    edit, vocabulary = _make_edit(model, action, given)
    entry = edit.entry(model._classifier_of_counts(), model._arrays, change_number)
    return entry, copy.copy(model)._take_changes(Changes.of(entry), vocabulary)


def _make_edit(model: Any, action: str, given: Given) -> tuple[Edit, Vocabulary | None]:
    """Return the edit, and the vocabulary that has its new terms."""
    labels, state = _as_labels(model, given.labels), model._fitted()
    if not model.takes_texts:
        if getattr(state, "n_dimensions", None) is not None:
            raise ValueError(
                "this model of counts has embeddings, which a journal takes of texts alone: use "
                "its partial_fit and forget, or a TextClassifier with an embedder."
            )
        X, labels = model._without_names()._check_input(given.documents, labels, reset=False)
        if action != "recalibrate":
            X, labels = replicate(X, labels)
        kind = {"teach": Teach, "forget": Forget, "recalibrate": Recalibrate}[action]
        return kind(CountMatrix.from_matrix(X), labels), None
    if action == "teach":
        taught, vocabulary = text_state.teach(state, given.documents, labels, n_jobs=model.n_jobs)
        assert taught is not None  # there is a document
        return taught, vocabulary
    if action == "forget":
        forgotten = text_state.forget(state, given.documents, labels, model.n_jobs)
        assert forgotten is not None
        return forgotten, None
    counted = state.vocabulary.count(given.documents, model.n_jobs)
    counts = GivenDocuments(counted, state.embed(given.documents)).to_counts()
    return Recalibrate(counts, labels), None


def plain_label(label: Any) -> str | int | float:
    """Return a label as JSON knows it."""
    value = as_plain(label)
    if not isinstance(value, str | int | float) or value != value:
        raise TypeError(f"a label must be a string or a number; got {label!r}.")
    if isinstance(value, str) and len(value) > MAX_LABEL:
        raise ValueError(
            f"a label that is taught may have {MAX_LABEL:,} characters; {show_label(value)} has "
            f"{len(value):,}."
        )
    return value


def _read_sets(model: Any, documents: Any, labels: LabelSets) -> Given:
    """Return a document for each (document, label) pair."""
    model._check_takes(labels)
    checked = _check_documents(model, documents)
    n_documents = len(checked) if isinstance(checked, list) else checked.shape[0]
    if n_documents != labels.n_documents or not len(labels.class_ids):
        raise ValueError(
            "labels must have a set for each document, and there must be one label at least; got "
            f"{count(n_documents, 'document')} and {count(labels.n_documents, 'set')}."
        )
    ids = labels.document_ids
    pairs = [checked[i] for i in ids] if isinstance(checked, list) else checked[ids]
    return Given(pairs, [plain_label(label) for label in labels.labels.tolist()])


def _check_documents(model: Any, documents: Any) -> Any:
    """Return texts as a list, counts as a CSR matrix."""
    if not model.takes_texts:
        return _check_counts(model, documents)
    fields = model.vocabulary_.options.fields  # records are kept as texts that hold them whole
    return _check_texts(documents if fields is None else write_documents(documents, fields))


def _check_texts(documents: Any) -> list[str]:
    """Return texts as a list of str."""
    texts = [documents] if isinstance(documents, str) else list(documents)
    if isinstance(documents, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"documents must be a list of texts; got {documents!r:.80}.")
    return [str(text) for text in texts]


def _check_counts(model: Any, documents: Any) -> Any:
    """Return counts as a CSR matrix in canonical form."""
    if isinstance(documents, list | tuple) and any(isinstance(row, str) for row in documents):
        raise TypeError("this model takes a matrix of counts; documents holds texts.")
    check_sparse(documents)
    X = validate_data(model, documents, reset=False, accept_sparse="csr", dtype=np.float64)
    X = sparse.csr_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _as_labels(model: Any, labels: list[str | int | float]) -> NDArray[Any]:
    """Return labels in the type of the model's classes where that holds them exactly."""
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError("labels must be all strings or all numbers")
    kind = model.classes_.dtype
    if labels and isinstance(labels[0], str) and kind.kind == "U":
        return align_labels(as_labels(labels, max_padding=_MAX_PADDING), model.classes_)
    given = np.array(labels, dtype=object if kind.kind == "O" else None)
    if given.dtype.kind in "iufb" and kind.kind in "iufb":
        cast = given.astype(kind)
        return cast if np.array_equal(cast, given) else given
    return given
