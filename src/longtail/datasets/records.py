"""Results of the readers, and the record of a row that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail._constants import LABEL_FORMS
from longtail._labels import LabelForm, LabelSets

_LONGEST_START = 80  # characters of a bad row that are shown


@dataclass(frozen=True)
class BadRow:
    """A row that was skipped: its first line, what is wrong with it, and how it begins."""

    line: int
    reason: str
    start: str

    @classmethod
    def shortened(cls, line: int, reason: str, content: str) -> BadRow:
        """Return a bad row with the beginning of its content, which can be encoded."""
        shown = content[: _LONGEST_START + 1].encode("utf-8", "backslashreplace").decode("utf-8")
        return cls(line, reason, shown[:_LONGEST_START].rstrip("\r\n"))


@dataclass(frozen=True)
class TextDataset:
    """Raw text and class names, split into a training and a test part.

    Attributes
    ----------
    train_text, test_text : list of str, or of dict
        One document each; a dict where it is a record.
    train_labels, test_labels : (n_documents,) str array
        The class of each document.
    description : str
        Origin, split and format.
    license : str
        The terms under which the text may be used.
    """

    train_text: list[Any]
    train_labels: NDArray[np.str_]
    test_text: list[Any]
    test_labels: NDArray[np.str_]
    description: str
    license: str


@dataclass(frozen=True)
class CountDataset:
    """Term counts and class numbers, split into a training and a test part.

    Attributes
    ----------
    X_train, X_test : (n_documents, n_terms) csr_array
        Raw term counts; terms ascending in each row.
    y_train, y_test : (n_documents,) int64 array
        Class numbers. Classes of training come first, so a number above ``y_train.max()`` is a
        class that only the test part has.
    classes : (n_classes,) array
        Name or label of each class number.
    terms : (n_terms,) array
        Name or number of the term in each column.
    """

    X_train: csr_array[Any]
    y_train: NDArray[np.int64]
    X_test: csr_array[Any]
    y_test: NDArray[np.int64]
    classes: NDArray[Any]
    terms: NDArray[Any]

    @property
    def n_train_classes(self) -> int:
        """Number of classes with a training document."""
        return int(self.y_train.max()) + 1

    @property
    def n_unseen(self) -> int:
        """Number of test documents whose class has no training document."""
        return int(np.count_nonzero(self.y_test >= self.n_train_classes))


@dataclass(frozen=True)
class LabelledCounts:
    """The rows of one file: one row per document and class, or per document with a label set.

    Attributes
    ----------
    X : (n_rows, n_terms) csr_array of float64
        Counts in canonical form: terms ascending, each once (repeated terms are added up), no
        stored zeros.
    y : (n_pairs,) int64 array
        Labels as in the file, document after document.
    documents : (n_pairs,) int64 array
        The document of the file that each label is of, from 0. Where documents are replicated, one
        of several classes has a row of `X` for each, in ascending order of label, so these are the
        documents of the rows.
    n_unlabelled : int
        Number of documents left out because they carry no label.
    row_ids : (n_pairs,) int64 array or None
        The row of `X` that each label is of; None where documents are replicated and there is one
        row per label.
    """

    X: csr_array[np.float64]
    y: NDArray[np.int64]
    documents: NDArray[np.int64]
    n_unlabelled: int
    row_ids: NDArray[np.int64] | None = None

    @property
    def label_sets(self) -> LabelSets:
        """The label set of each row of `X`, which `fit` takes as y."""
        row_ids = np.arange(len(self.y)) if self.row_ids is None else self.row_ids
        counts = np.bincount(row_ids, minlength=self.X.shape[0])
        return make_label_sets(self.y, counts)


def make_label_sets(labels: NDArray[Any], label_counts: NDArray[Any]) -> LabelSets:
    """Return label sets of labels that stand document after document, each once in its set."""
    classes, ids = np.unique(labels, return_inverse=True)
    indptr = np.concatenate([[0], np.cumsum(label_counts)]).astype(np.int64)
    order = np.lexsort((ids, np.repeat(np.arange(len(label_counts)), label_counts)))
    form = LabelForm(LABEL_FORMS.index("lists"))
    return LabelSets(indptr, ids[order].astype(np.int64), classes, form)
