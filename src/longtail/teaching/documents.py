"""Documents and labels as a journal holds them, and back.

In: texts or counts, and labels. Out: batches of plain JSON, none larger than a row of the journal
may be; and from those the documents again, as the model takes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

from longtail._columns import align_labels, as_labels, show_label
from longtail._constants import MAX_LABEL
from longtail._labels import LabelSets, as_sets
from longtail._records import write_documents
from longtail._words import count
from longtail.sparse import check_sparse
from longtail.store.changes import pack_counts, unpack_counts

# A character takes at most 12 bytes of JSON, a count 22: a batch has at most 12 MiB, a row 16.
_LARGEST_BATCH = 1 << 19
_MOST_PADDING = 1 << 22  # bytes, of the labels of a journal in one array


def pack(model: Any, documents: Any, labels: Any) -> list[dict[str, Any]]:
    """Return documents and labels in batches, or say what is wrong with them.

    A document with a label set is there once for each of its labels: sums are of such pairs, so
    each can be forgotten by itself.

    Raises
    ------
    ValueError, TypeError
        If they are not what the model takes, or there is not one label for each document.
    """
    if _are_sets(labels):
        return _pack_sets(model, documents, as_sets(labels))
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
    return _batch(checked, [plain_label(label) for label in named])


def _are_sets(labels: Any) -> bool:
    """Return whether labels are lists or an indicator matrix."""
    if isinstance(labels, list | tuple):
        return any(isinstance(label, list | tuple | set | frozenset) for label in labels)
    return len(getattr(labels, "shape", (0,))) == 2


def _pack_sets(model: Any, documents: Any, labels: LabelSets) -> list[dict[str, Any]]:
    """Return a document for each (document, label) pair, in batches."""
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
    return _batch(pairs, [plain_label(label) for label in labels.labels.tolist()])


def _batch(checked: Any, plain: list[Any]) -> list[dict[str, Any]]:
    """Return documents and labels in batches."""
    return [
        {
            "documents": checked[rows] if isinstance(checked, list) else pack_counts(checked[rows]),
            "labels": plain[rows],
        }
        for rows in _slices(checked, plain)
    ]


def unpack(model: Any, batches: Sequence[dict[str, Any]]) -> tuple[Any, NDArray[Any]]:
    """Return the documents and labels of batches together, as the model takes them.

    Raises
    ------
    ValueError
        If the batches do not fit the model, or are not sound.
    """
    packed = [batch["documents"] for batch in batches]
    if any(isinstance(documents, list) != model.takes_texts for documents in packed):
        raise ValueError("it holds texts where the model takes counts, or counts for texts")
    labels = _as_labels(model, [label for batch in batches for label in batch["labels"]])
    if model.takes_texts:
        return [text for texts in packed for text in texts], labels
    return unpack_counts(packed), labels


def plain_label(label: Any) -> str | int | float:
    """Return a label as JSON knows it."""
    value = label.item() if isinstance(label, np.generic) else label
    if not isinstance(value, str | int | float) or value != value:
        raise TypeError(f"a label must be a string or a number; got {label!r}.")
    if isinstance(value, str) and len(value) > MAX_LABEL:
        raise ValueError(
            f"a label that is taught may have {MAX_LABEL:,} characters; {show_label(value)} has "
            f"{len(value):,}."
        )
    return value


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


def _slices(documents: Any, labels: list[Any]) -> Iterator[slice]:
    """Yield which documents go into each batch; each has one at least."""
    sizes = (
        [len(text) for text in documents]
        if isinstance(documents, list)
        else np.diff(documents.indptr).tolist()
    )
    start = total = 0
    for i, (size, label) in enumerate(zip(sizes, labels, strict=True)):
        size += 2 + (len(label) if isinstance(label, str) else 2)
        if i > start and total + size > _LARGEST_BATCH:
            yield slice(start, i)
            start, total = i, 0
        total += size
    yield slice(start, len(sizes))


def _as_labels(model: Any, labels: list[str | int | float]) -> NDArray[Any]:
    """Return labels in the type of the model's classes where that holds them exactly."""
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError("labels must be all strings or all numbers")
    kind = model.classes_.dtype
    if labels and isinstance(labels[0], str) and kind.kind == "U":
        return align_labels(as_labels(labels, most_padding=_MOST_PADDING), model.classes_)
    given = np.array(labels, dtype=object if kind.kind == "O" else None)
    if given.dtype.kind in "iufb" and kind.kind in "iufb":
        cast = given.astype(kind)
        return cast if np.array_equal(cast, given) else given
    return given
