"""Tables of texts -> data sets with counts and the texts themselves; and any data set at all.

A table (CSV, TSV, JSON lines, Parquet) is split and counted here. Of the n documents of each class
about a fifth are for testing, never the last one, drawn with a fixed seed; of documents with label
sets a fifth, none that is the last of a class. Or a second table holds the documents to test. Terms
are those in at least two training documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

from longtail._labels import LabelSets, as_sets
from longtail.datasets import CountDataset, DataFormatError
from longtail.datasets.tables import Table, read_text_chunks
from longtail.training.sampling import hold_out
from longtail_bench.data import load_counts
from longtail_bench.label_set_data import LabelSetDataset, has_label_sets, load_label_sets

_TEST_SHARE = 0.2


@dataclass(frozen=True)
class TableColumns:
    """Options of reading tables."""

    text: Sequence[str] = ()  # columns that hold the text
    # Column that holds the class, or the label set: a list, or texts with a separator.
    label: str | None = None
    label_separator: str | None = None  # what separates the labels of a document
    # Table with the documents to test; a part of the table itself if left out.
    test: Path | None = None

    def check(self, path: Path) -> None:
        """Refuse a table without the names of its columns, and columns of what is no table."""
        if not is_table(path):
            if self.test is not None:
                raise ValueError(f"--test goes with a table; {path} has test documents already.")
            return
        for option, value, example in (
            ("text", self.text, "body"),
            ("label", self.label, "product"),
        ):
            if not value:
                raise ValueError(
                    f"--{option} is missing: {path.name} is a table, which column holds the "
                    f"{'class' if option == 'label' else 'text'}? For example --{option} {example}"
                )

    def read(self, path: Path) -> tuple[list[str], list[Any]]:
        """Return the texts of a table and their labels, or lists of labels."""
        texts: list[str] = []
        labels: list[Any] = []
        table = Table(path, self.text, self.label, label_separator=self.label_separator)
        for chunk in read_text_chunks(table):
            texts += chunk.texts
            labels += chunk.labels
        if not texts:
            raise DataFormatError(path, "there is no document")
        return texts, labels


@dataclass(frozen=True)
class CountedTexts(CountDataset):
    """Counts of texts, with the texts."""

    train_texts: list[str] = field(default_factory=list)
    test_texts: list[str] = field(default_factory=list)


def is_table(path: Path) -> bool:
    """Tell whether a data set is a table of texts, not counts."""
    return path.is_file() and path.suffix != ".npz"


def load_data(path: Path, columns: TableColumns | None = None) -> CountDataset | LabelSetDataset:
    """Load a data set that `find_data_set` found.

    Parameters
    ----------
    path : Path
        Folder or file.
    columns : TableColumns, optional
        What is read of a table.

    Returns
    -------
    CountDataset or LabelSetDataset
        The second where documents have label sets.
    """
    columns = columns or TableColumns()
    columns.check(path)
    if not is_table(path):
        return load_label_sets(path) if has_label_sets(path) else load_counts(path)
    texts, labels = columns.read(path)
    sets = isinstance(labels[0], list)
    if columns.test is not None:
        test_texts, test_labels = columns.read(columns.test)
        if isinstance(test_labels[0], list) != sets:
            which = ("lists", "one label each") if sets else ("one label each", "lists")
            message = f"column {columns.label!r} holds {which[1]}, but {which[0]} in {path.name}"
            raise DataFormatError(columns.test, message)
        tested = np.arange(len(texts) + len(test_texts)) >= len(texts)
        texts, labels = texts + test_texts, labels + test_labels
        classes, y = _number_classes(labels, ~tested)
    else:
        classes, y = _number_classes(labels)
        if sets:
            held = hold_out(y, int(_TEST_SHARE * len(texts)), 0)
            tested = np.isin(np.arange(len(texts)), held)
        else:
            tested = draw_test_documents(y.class_ids)
        if not tested.any():
            raise DataFormatError(
                path,
                "every class has a single document: none can be tested. Give a table of others "
                "with --test",
            )
    return _count_texts(texts, y, classes, tested, sets)


def load_single_labels(path: Path, columns: TableColumns | None = None) -> CountDataset:
    """Load a data set whose documents have one label each; refuse others."""
    data = load_data(path, columns)
    if isinstance(data, LabelSetDataset):
        raise ValueError(f"{path}: documents have label sets; this needs one label each.")
    return data


def draw_test_documents(y: NDArray[np.int64], share: float = _TEST_SHARE) -> NDArray[np.bool_]:
    """Draw about a share of each class's documents, never all; the same for the same labels."""
    rng = np.random.default_rng(0)
    sizes = np.bincount(y)
    wanted = np.floor(share * sizes + rng.random(len(sizes))).astype(np.int64)
    wanted = np.minimum(wanted, sizes - 1)
    order = np.lexsort((rng.random(len(y)), y))
    rank = np.arange(len(y)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    tested = np.zeros(len(y), np.bool_)
    tested[order] = rank < wanted[y[order]]
    return tested


def _number_classes(
    labels: list[Any], trained: NDArray[np.bool_] | None = None
) -> tuple[NDArray[Any], LabelSets]:
    """Return the classes, those of training documents first, and the ids of the labels."""
    sets = as_sets(labels)
    classes = sets.classes
    if trained is not None:
        seen = np.isin(np.arange(len(classes)), sets.gather(np.flatnonzero(trained)).class_ids)
        order = np.argsort(~seen, kind="stable")
        ids = np.argsort(order)[sets.class_ids]
        ids = ids[np.lexsort((ids, sets.document_ids))]
        sets, classes = LabelSets(sets.indptr, ids, np.arange(len(classes))), classes[order]
    return classes, sets


def _count_texts(
    texts: Sequence[str],
    y: LabelSets,
    classes: NDArray[Any],
    tested: NDArray[np.bool_],
    sets: bool,
) -> CountDataset | LabelSetDataset:
    """Count the terms of texts; those that are tested are a part of their own."""
    train, test = (np.flatnonzero(mask) for mask in (~tested, tested))
    train_texts, test_texts = ([texts[i] for i in rows.tolist()] for rows in (train, test))
    vectorizer = CountVectorizer(strip_accents="unicode", min_df=min(2, len(train)))
    X_train = csr_array(vectorizer.fit_transform(train_texts))
    X_test = csr_array(vectorizer.transform(test_texts))
    terms = vectorizer.get_feature_names_out()
    if not sets:
        ids = y.class_ids
        parts = (X_train, ids[train], X_test, ids[test], classes, terms)
        return CountedTexts(*parts, train_texts, test_texts)
    trained = y.gather(train)
    n_train_classes = int(trained.class_ids.max()) + 1
    return LabelSetDataset(
        X_train,
        LabelSets(trained.indptr, trained.class_ids, np.arange(n_train_classes)),
        X_test,
        LabelSets(y.gather(test).indptr, y.gather(test).class_ids, np.arange(len(classes))),
        n_train_classes,
        None,
        None,
        terms=terms,
        train_texts=train_texts,
        test_texts=test_texts,
    )
