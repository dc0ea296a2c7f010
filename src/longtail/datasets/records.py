"""Files of counts, and what readers return: chunks, whole sets, rows that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from longtail._constants import LABEL_FORMS
from longtail._labels import LabelForm, LabelSets, flat_labels, join_sets
from longtail.datasets.limits import DEFAULT_LIMITS, Limits

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
class CountFile:
    """A file of counts, or several by a pattern.

    Parameters
    ----------
    path : str or path-like
        A file, a pattern such as ``data/*.svm``, or a folder.
    zero_based : bool, default=False
        Whether the first term is number 0.
    limits : Limits, optional
        Bounds on what the file may hold.
    format : {"svmlight", "lshtc", "xmc"}, optional
        By the ending of the file when left out.
    replicate : bool, default=False
        Whether a document with several labels stands for one document of each; otherwise it has a
        set of labels.
    """

    path: str | os.PathLike[str]
    zero_based: bool = False
    limits: Limits = DEFAULT_LIMITS
    format: str | None = None
    replicate: bool = False


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some documents of a file, a table or a function.

    Attributes
    ----------
    content : list of str or csr_array
        Texts, or counts with a row for each document.
    labels : list, ndarray or LabelSets
        A label or a label set for each document, of a table of text as lists; empty where none were
        asked for.
    lines : list of int
        The line on which each document begins, from 1; in a Parquet file the number of the row.
    kept : list of list
        The values of the columns to keep: text, or numbers of JSON lines and Parquet.
    n_bytes : int
        How much of the decompressed file was read so far; 0 for Parquet.
    path : str
        The file, where several are read one after the other.
    """

    content: Any
    labels: Any
    lines: list[int]
    kept: list[list[Any]] = field(default_factory=list)
    n_bytes: int = 0
    path: str = ""

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.lines)

    @property
    def texts(self) -> list[str]:
        """The content of a table of text."""
        texts: list[str] = self.content
        return texts

    @property
    def size(self) -> int:
        """Entries of counts, or characters of texts."""
        if isinstance(self.content, list):
            return sum(map(len, self.content))
        return int(self.content.nnz)

    def label_lists(self) -> list[Any]:
        """Return a label or a list of labels for each document."""
        if isinstance(self.labels, LabelSets):
            return self.labels.to_lists()
        return list(self.labels) if isinstance(self.labels, list) else self.labels.tolist()

    def replicate(self) -> Chunk:
        """Return one document for each label of a document."""
        sets = self.label_lists()
        if not sets or not isinstance(sets[0], list):
            return self
        documents = [i for i, labels in enumerate(sets) for _ in labels]
        content, is_text = self.content, isinstance(self.content, list)
        return replace(
            self,
            content=[content[i] for i in documents] if is_text else content[documents],
            labels=list(chain(*sets)) if is_text else flat_labels(self.labels),
            lines=[self.lines[i] for i in documents],
            kept=[self.kept[i] for i in documents],
        )


def join_chunks(chunks: Sequence[Chunk]) -> Chunk:
    """Return chunks as one; their labels are arrays or label sets."""
    lines = [line for chunk in chunks for line in chunk.lines]
    content = join_contents([chunk.content for chunk in chunks])
    return Chunk(content, join_sets([chunk.labels for chunk in chunks]), lines)


def join_contents(contents: Sequence[Any]) -> Any:
    """Return texts, or counts as wide as the widest, as one list or matrix."""
    if isinstance(contents[0], list):
        return [text for texts in contents for text in texts]
    n_terms = max(counts.shape[1] for counts in contents)
    for counts in contents:
        counts.resize((counts.shape[0], n_terms))
    return csr_array(vstack(contents, format="csr"))


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
