"""Label sets: which classes each document belongs to, one or several.

In: labels, lists of labels, or an indicator matrix. Out: an array of labels where each document has
one by the shape of y, else `LabelSets`: CSR parts whose unit is the (document, label) pair. One
label per document is the case of as many pairs as documents, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from longtail._caching import cached_property
from longtail._columns import as_labels, is_missing, join_labels, show_label
from longtail._constants import LABEL_FORMS, MAX_COLUMNS
from longtail.sparse import (
    Floats,
    Integers,
    RowTable,
    check_sparse,
    offsets_from_lengths,
    stack_rows,
)

Multilabel = bool | Literal["auto"]

_SET_TYPES = (list, tuple, set, frozenset, np.ndarray)


@dataclass(frozen=True)
class LabelForm:
    """In which form labels came, and in which `predict` gives them."""

    form: int = 0  # row of `LABEL_FORMS`
    n_columns: int = 0  # columns of the indicator matrix; 0 for other forms

    @property
    def is_multilabel(self) -> bool:
        """Whether a document may have several labels."""
        return self.form > 0

    @property
    def is_indicator(self) -> bool:
        """Whether labels are the columns of a matrix."""
        return self.form > 1


@dataclass(frozen=True, eq=False)
class LabelSets(RowTable):
    """The label set of each document, as ids of sorted classes.

    Examples
    --------
    >>> sets = read_label_sets([["b", "a"], [], ["b"]])
    >>> sets.indptr.tolist(), sets.class_ids.tolist(), sets.classes.tolist()
    ([0, 2, 2, 3], [0, 1, 1], ['a', 'b'])
    """

    ENTRIES = ("class_ids", "weights", "costs")

    indptr: Integers  # (n_documents + 1,) int64: where the labels of each document begin
    # (n_pairs,) int64: rows of `classes`, ascending and distinct within a document.
    class_ids: Integers
    classes: NDArray[Any]  # (n_classes,): labels, sorted
    form: LabelForm = field(default_factory=LabelForm)  # the form they came in
    # (n_pairs,): how many documents each pair counts as in the sums of its class; None where all
    # are 1.
    weights: Floats | None = None
    # (n_pairs,): what the loss of each pair counts where something is learned; None where all count
    # 1.
    costs: Floats | None = None

    @classmethod
    def single(
        cls, class_ids: ArrayLike, classes: NDArray[Any], weights: Floats | None = None
    ) -> LabelSets:
        """Return sets of one label each."""
        ids = np.asarray(class_ids, np.int64)
        return cls(np.arange(len(ids) + 1, dtype=np.int64), ids, classes, weights=weights)

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1

    def __len__(self) -> int:
        """Return the number of documents."""
        return self.n_documents

    @cached_property
    def sizes(self) -> Integers:
        """How many labels each document has."""
        return np.diff(self.indptr)

    @cached_property
    def has_several(self) -> bool:
        """Whether any document has other than one label."""
        return bool(np.any(self.sizes != 1))

    @cached_property
    def document_ids(self) -> Integers:
        """The document of each pair."""
        return np.repeat(np.arange(self.n_documents), self.sizes)

    @cached_property
    def class_sizes(self) -> Integers:
        """How many documents each class has."""
        return np.bincount(self.class_ids, minlength=len(self.classes)).astype(np.int64)

    @property
    def labels(self) -> NDArray[Any]:
        """The label of each pair."""
        return np.asarray(self.classes[self.class_ids])

    def _select(self, indptr: Integers, pairs: NDArray[np.bool_]) -> LabelSets:
        """Return some pairs, which the offsets distribute to documents."""
        return replace(
            self,
            indptr=indptr,
            class_ids=self.class_ids[pairs],
            weights=None if self.weights is None else self.weights[pairs],
            costs=None if self.costs is None else self.costs[pairs],
        )

    def with_weights(self, weights: Floats | None) -> LabelSets:
        """Return the same labels with pairs that count as so many documents; none where it is 0."""
        if weights is None:
            return self
        before = np.concatenate([[0], np.cumsum(weights > 0)])
        kept = self._select(before[self.indptr], weights > 0)
        return replace(kept, weights=weights[weights > 0], costs=weights[weights > 0])

    def with_class_weights(self, factors: Floats) -> LabelSets:
        """Return the same labels with losses that count by the class of the pair."""
        costs = factors[self.class_ids]
        return replace(self, costs=costs if self.costs is None else self.costs * costs)

    @cached_property
    def document_costs(self) -> Floats:
        """Weight of the loss of each document as a negative: the mean of its pairs."""
        if self.costs is None:
            return np.ones(self.n_documents)
        totals = np.bincount(self.document_ids, self.costs, self.n_documents)
        return np.where(self.sizes > 0, totals / np.maximum(self.sizes, 1), 1.0)

    def gather_classes(self, class_ids: Integers) -> LabelSets:
        """Return the labels of some classes, ascending, which are numbered from 0 on."""
        new_ids = np.full(len(self.classes), -1)
        new_ids[class_ids] = np.arange(len(class_ids))
        ids = new_ids[self.class_ids]
        before = np.concatenate([[0], np.cumsum(ids >= 0)])
        kept = self._select(before[self.indptr], ids >= 0)
        return replace(kept, class_ids=ids[ids >= 0], classes=self.classes[class_ids])

    def contain(self, classes: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which class ids of each document's row, shape (n_documents, q), are its labels."""
        n_classes = int(max(classes.max(initial=0), self.class_ids.max(initial=0))) + 1
        keys = self.document_ids * np.int64(n_classes) + self.class_ids  # ascending
        if not len(keys):
            return np.zeros(classes.shape, np.bool_)
        wanted = np.arange(len(classes))[:, None] * np.int64(n_classes) + classes
        found = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
        return np.asarray(found & (classes >= 0))

    def with_classes(self, classes: NDArray[Any]) -> LabelSets:
        """Return the same labels as ids of other sorted classes, which have them all."""
        ids = np.searchsorted(classes, self.classes[self.class_ids])
        return replace(self, class_ids=ids, classes=classes)

    def drop_unused_classes(self) -> LabelSets:
        """Leave out the classes that no document has."""
        used = self.class_sizes > 0
        if used.all():
            return self
        ids = (np.cumsum(used) - 1)[self.class_ids]
        return replace(self, class_ids=ids, classes=self.classes[used])

    def to_lists(self) -> list[list[Any]]:
        """Return the labels of each document as a list, in the order of the classes."""
        flat = self.labels.tolist()
        bounds = self.indptr.tolist()
        return [flat[start:stop] for start, stop in pairwise(bounds)]


Labels = NDArray[Any] | LabelSets  # a label for each document, or a set of labels


def read_label_sets(y: Any, multilabel: Multilabel = "auto") -> Labels:
    """Return the labels of each document, or say what is wrong with them.

    Parameters
    ----------
    y : sequence, matrix or LabelSets
        Labels; or label sets: lists, tuples, sets or arrays of labels, a column of lists of
        pandas, polars or pyarrow, a sparse matrix or a dense array of two dimensions of 0 and 1. An
        empty set is allowed: that document belongs to no class.
    multilabel : bool or "auto", default="auto"
        Whether documents have label sets; "auto" decides by the shape of `y`. With True, plain
        labels are sets of one each.

    Returns
    -------
    ndarray or LabelSets
        Plain labels as an array; label sets as class ids, with `classes` sorted. The columns of an
        indicator matrix are the classes 0, 1, ...

    Raises
    ------
    ValueError
        If a label is missing or twice in a set, an indicator has other values than 0 and 1, or
        `multilabel` is False and `y` has label sets.

    Examples
    --------
    >>> read_label_sets(["a", "b"]).tolist()
    ['a', 'b']
    >>> read_label_sets([[0, 1], [1, 1]]).class_ids.tolist()
    Traceback (most recent call last):
    ...
    ValueError: y has the label 1 twice in the set of document 1. Give each label once.
    """
    if not (multilabel == "auto" or isinstance(multilabel, bool)):
        raise ValueError(f'multilabel must be "auto", True or False; got {multilabel!r}.')
    if isinstance(y, LabelSets):
        return y
    is_matrix = _is_indicator(y)
    values = None if is_matrix else _read_sets(y)
    if multilabel is False and (is_matrix or values is not None):
        raise ValueError(
            "y has a label set for each document, but multilabel=False. Give one label for each "
            'document, or set multilabel="auto".'
        )
    if is_matrix:
        return _from_indicator(y)
    if values is not None:
        return _from_lists(values)
    labels = as_labels(y)
    return _from_lists([[label] for label in labels.tolist()]) if multilabel is True else labels


def are_label_sets(y: Any) -> bool:
    """Return whether y has a label set for each document, in any form."""
    return isinstance(y, LabelSets) or _is_indicator(y) or _read_sets(y) is not None


def as_sets(y: Any) -> LabelSets:
    """Return labels, in any form, as label sets."""
    labels = read_label_sets(y, multilabel=True)
    if not isinstance(labels, LabelSets):
        raise TypeError("labels of more than one dimension cannot be label sets.")
    return labels


def join_sets(chunks: Sequence[Labels]) -> Labels:
    """Return the labels of several chunks as one, as if they had come at once."""
    arrays = [labels for labels in chunks if not isinstance(labels, LabelSets)]
    if len(arrays) == len(chunks):
        return join_labels(arrays)
    sets = [labels if isinstance(labels, LabelSets) else as_sets(labels) for labels in chunks]
    forms = {labels.form for labels in sets}
    if len(forms) > 1:
        raise ValueError(
            "the chunks have labels in different forms: lists in some, an indicator matrix, or one "
            "of another number of columns, in others. Use one form."
        )
    classes = np.unique(join_labels([labels.classes for labels in sets]))
    return stack_rows([labels.with_classes(classes) for labels in sets])


def find_sets(y: Labels, classes: NDArray[Any]) -> LabelSets:
    """Return labels that are all among sorted classes as ids of these."""
    if isinstance(y, LabelSets):
        return y.with_classes(classes)
    return LabelSets.single(np.searchsorted(classes, y), classes)


def flat_labels(y: Labels) -> NDArray[Any]:
    """Return the labels of all documents, one after the other."""
    return y.labels if isinstance(y, LabelSets) else y


def replicate(X: Any, y: Labels) -> tuple[Any, NDArray[Any]]:
    """Return a row for each (document, label) pair, with its label."""
    if not isinstance(y, LabelSets):
        return X, y
    return (X[y.document_ids] if y.has_several else X), y.labels


def weigh_documents(X: Any, labels: LabelSets, weights: Floats | None) -> tuple[Any, LabelSets]:
    """Return documents whose pairs count as so many; without those whose every label counts 0."""
    if weights is None:
        return X, labels
    weighed = labels.with_weights(weights)
    kept = np.flatnonzero((weighed.sizes > 0) | (labels.sizes == 0))
    return (X, weighed) if len(kept) == len(labels) else (X[kept], weighed.gather(kept))


def _is_indicator(y: Any) -> bool:
    """Return whether y is a matrix with a column for each class."""
    if sp.issparse(y):
        return True
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return len(shape) == 2 and shape[1] > 1


def _read_sets(y: Any) -> list[Any] | None:
    """Return label sets as a list, or None where y holds plain labels."""
    if y is None or isinstance(y, str | bytes | set | frozenset | Mapping):
        return None  # refused with the words for labels
    if len(getattr(y, "shape", (0,))) != 1 or getattr(y, "dtype", object) in _PLAIN_DTYPES:
        return None
    values = y
    for method in ("to_pylist", "to_list", "tolist"):  # pyarrow; polars and pandas; numpy
        if hasattr(y, method):
            values = getattr(y, method)()
            break
    if not isinstance(values, list | tuple):
        return None
    if not any(isinstance(value, _SET_TYPES) for value in values[:1]) and not any(
        isinstance(value, _SET_TYPES) for value in values
    ):
        return None
    for document, value in enumerate(values):
        if not isinstance(value, _SET_TYPES):
            raise ValueError(
                f"y has label sets, but document {document} has {value!r}. Give every document "
                "a list of labels, such as ['a'], or [] for none."
            )
    return list(values)


_PLAIN_DTYPES = frozenset(np.dtype(code) for code in "?bhilqBHILQefd")


def _from_lists(sets: list[Any]) -> LabelSets:
    """Return lists of labels as class ids."""
    rows = [value.tolist() if isinstance(value, np.ndarray) else value for value in sets]
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    flat = list(chain.from_iterable(rows))
    owners = np.repeat(np.arange(len(rows)), sizes)
    for kind in set(map(type, flat)):
        if not issubclass(kind, str | int | np.integer | np.bool_):
            _check_flat(flat, owners)
            break
    try:
        labels = as_labels(flat)
    except ValueError as error:
        raise ValueError(f"the labels of all sets, one after the other: {error}") from None
    if not flat:
        labels = labels.astype(np.int64)
    classes, ids = np.unique(labels, return_inverse=True)
    order = np.lexsort((ids, owners))
    ids = ids[order].astype(np.int64)
    twice = np.flatnonzero((np.diff(ids) == 0) & (np.diff(owners) == 0))
    if len(twice):
        raise ValueError(
            f"y has the label {show_label(classes[ids[twice[0]]])} twice in the set of document "
            f"{owners[twice[0]]}. Give each label once."
        )
    return LabelSets(
        offsets_from_lengths(sizes), ids, classes, LabelForm(LABEL_FORMS.index("lists"))
    )


def _check_flat(flat: list[Any], owners: Integers) -> None:
    """Refuse labels that are missing or no labels, with the document that has them."""
    for label, document in zip(flat, owners.tolist(), strict=True):
        if is_missing(label):
            raise ValueError(
                f"y contains NaN or None: a label of document {document} is missing ({label!r}). "
                "Leave it out of the set."
            )
        if not isinstance(label, str | int | float | np.generic):
            raise ValueError(
                f"y must hold strings or numbers in its label sets; document {document} has "
                f"{label!r} of type {type(label).__name__}."
            )


def _from_indicator(y: Any) -> LabelSets:
    """Return the columns in which each row of a matrix of 0 and 1 is 1."""
    check_sparse(y, "y")
    is_sparse = sp.issparse(y)
    matrix = y if is_sparse else np.asarray(y)
    if matrix.shape[1] > MAX_COLUMNS:
        raise ValueError(
            f"y has {matrix.shape[1]} columns; an indicator matrix may have {MAX_COLUMNS}. Give "
            "labels as a list of lists."
        )
    if matrix.dtype.kind not in "biuf":
        raise ValueError(
            f"y has two dimensions and type {matrix.dtype}; an indicator matrix holds 0 and 1. "
            "Give other labels as a list of lists."
        )
    rows = sp.csr_array(matrix, copy=True)
    check_sparse(rows, "y")  # other formats are converted as they are
    rows.has_canonical_format = rows.has_sorted_indices = False  # whatever it claims
    rows.sum_duplicates()
    rows.eliminate_zeros()
    wrong = np.flatnonzero(rows.data != 1)
    if len(wrong):
        document = int(np.searchsorted(rows.indptr, wrong[0], side="right")) - 1
        raise ValueError(
            "y has two dimensions, so it is read as an indicator matrix of 0 and 1; document "
            f"{document} has the value {show_label(rows.data[wrong[0]])}. Set what is a label to "
            "1 and everything else to 0, or give labels as a list of lists."
        )
    form = LabelForm(
        LABEL_FORMS.index("sparse indicator" if is_sparse else "dense indicator"), y.shape[1]
    )
    return LabelSets(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64), np.arange(y.shape[1]), form
    )
