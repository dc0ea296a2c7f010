"""Folders of term counts whose documents have several labels -> data sets.

`counts.npz` has `train_label_indptr` and `train_labels` in place of `train_y`, and the parts may be
`train` and `dev`. Labels of the predicted part that training never saw are not in the counts; they
come from `dev.jsonl.xz` (one object a line with `labels` and, if there is one, `lang`) where the
folder has it. `class_names.tsv.xz` (id, tab, name) names all classes, seen or not. Folders of the
Extreme Classification Repository have their labels in the XMC files.
"""

from __future__ import annotations

import json
import lzma
import re
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail._labels import LabelSets
from longtail.datasets import DataFormatError, read_extreme
from longtail_bench.data import (
    COUNTS,
    find_extreme_files,
    read_names,
    training_classes_first,
)

_TOKEN = re.compile("[a-z0-9]{2,}")


@dataclass(frozen=True, eq=False)
class LabelSetDataset:
    """Term counts and label sets, split into a training and a test part."""

    # Raw term counts.
    X_train: csr_array[Any]
    # Class ids. Classes of training come first, so an id of at least `n_train_classes` is a class
    # that training never saw.
    train: LabelSets
    X_test: csr_array[Any]
    test: LabelSets
    n_train_classes: int  # classes with a training document
    names: csr_array[Any] | None  # term counts of the classes' names
    languages: NDArray[np.str_] | None  # language of each test document
    # The names themselves, where `names` has them.
    name_texts: list[str] = field(default_factory=list)
    # The terms, where there are names.
    terms: NDArray[Any] = field(default_factory=lambda: np.zeros(0, object))
    # The documents themselves, where they come from a table.
    train_texts: list[str] = field(default_factory=list)
    test_texts: list[str] = field(default_factory=list)
    n_unlabelled: int = 0  # training documents that were left out because they have no label

    @property
    def has_fractions(self) -> bool:
        """Whether values are not all whole numbers, so that they are weights and no counts."""
        return any(bool(np.any(X.data % 1)) for X in (self.X_train, self.X_test))


def has_label_sets(path: Path) -> bool:
    """Tell whether the documents of a folder or file of counts have label sets."""
    file = path / COUNTS if path.is_dir() else path
    if not file.exists() and find_extreme_files(path) is not None:
        return True
    if file.suffix != ".npz" or not zipfile.is_zipfile(file):
        return False  # the reader of the other data sets says what is wrong
    with zipfile.ZipFile(file) as archive:
        return "train_label_indptr.npy" in archive.namelist()


def load_label_sets(path: Path) -> LabelSetDataset:
    """Load the counts and label sets of one data set.

    Parameters
    ----------
    path : Path
        A folder as this module describes it, or the file of counts in it.

    Raises
    ------
    DataFormatError
        If an array is missing or does not fit the others.
    """
    file = path / COUNTS if path.is_dir() else path
    if not file.exists() and (files := find_extreme_files(path)) is not None:
        return _load_extreme(*files)
    try:
        with file.open("rb") as stream, np.load(stream) as arrays:
            predicted = "test" if "test_indptr" in arrays.files else "dev"
            n_train, n_test, n_classes, n_terms = (int(size) for size in arrays["shape"])
            X_train = _read_counts(arrays, "train", n_train, n_terms)
            X_test = _read_counts(arrays, predicted, n_test, n_terms)
            train = _read_sets(arrays, "train", n_train, n_classes)
            test = _read_sets(arrays, predicted, n_test, n_classes)
            order = training_classes_first(train.class_ids, n_classes)
            n_train_classes = int(np.count_nonzero(train.class_sizes))
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataFormatError(file, f"the counts cannot be read: {error}") from error
    train, test = (_renumber(sets, np.argsort(order)) for sets in (train, test))
    names = read_names(file.parent / "classes.txt.xz", n_classes)[order]
    ids = {name: i for i, name in enumerate(names)}
    records = file.parent / f"{predicted}.jsonl.xz"
    languages = None
    if records.is_file():
        test, languages = _read_records(records, ids, n_test)
    texts = _read_class_names(file.parent, ids)
    terms = read_names(file.parent / "terms.txt.xz", n_terms) if texts else np.zeros(0, object)
    classes = np.arange(len(ids))
    return LabelSetDataset(
        X_train,
        LabelSets(train.indptr, train.class_ids, np.arange(n_train_classes)),
        X_test,
        LabelSets(test.indptr, test.class_ids, classes),
        n_train_classes,
        count_terms(texts, terms) if texts else None,
        languages,
        texts,
        terms,
    )


def count_terms(texts: list[str], terms: NDArray[Any]) -> csr_array[Any]:
    """Count the terms of texts: casefolded, accents folded, runs of a-z and 0-9 of length 2."""
    columns = {term: i for i, term in enumerate(terms.tolist())}
    found = [[columns[t] for t in tokenize(text) if t in columns] for text in texts]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in found])])
    indices = np.array([term for row in found for term in row], np.int32)
    counts = csr_array(
        (np.ones(len(indices)), indices, indptr.astype(np.int32)), shape=(len(texts), len(terms))
    )
    counts.sum_duplicates()
    return counts


def tokenize(text: str) -> list[str]:
    """Return the terms of a text, as those of the counts were made."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    return _TOKEN.findall("".join(c for c in folded if not unicodedata.combining(c)))


def _read_counts(arrays: Any, split: str, n_documents: int, n_terms: int) -> csr_array[Any]:
    """Return the counts of one split."""
    X = csr_array(
        (arrays[f"{split}_data"], arrays[f"{split}_indices"], arrays[f"{split}_indptr"]),
        shape=(n_documents, n_terms),
    )
    X.check_format(full_check=True)
    return X


def _read_sets(arrays: Any, split: str, n_documents: int, n_classes: int) -> LabelSets:
    """Return the label sets of one split, ids ascending within a document."""
    indptr = arrays[f"{split}_label_indptr"].astype(np.int64)
    ids = arrays[f"{split}_labels"].astype(np.int64)
    if len(indptr) != n_documents + 1 or indptr[-1] != len(ids) or np.any(np.diff(indptr) < 0):
        raise ValueError(f"{split}_label_indptr does not fit {n_documents} documents")
    if len(ids) and not 0 <= ids.min() <= ids.max() < n_classes:
        raise ValueError(f"{split}_labels must be from 0 to {n_classes - 1}")
    return _renumber(LabelSets(indptr, ids, np.arange(n_classes)), np.arange(n_classes))


def _renumber(sets: LabelSets, new_ids: NDArray[np.int64]) -> LabelSets:
    """Give classes other ids, ascending within a document."""
    ids = new_ids[sets.class_ids]
    order = np.lexsort((ids, sets.document_ids))
    return LabelSets(sets.indptr, ids[order], np.arange(len(new_ids)))


def _load_extreme(train_path: Path, test_path: Path) -> LabelSetDataset:
    """Load two files of the Extreme Classification Repository, values as they are."""
    train = read_extreme(train_path, replicate=False)
    test = read_extreme(test_path, replicate=False, unlabelled="keep")  # they count as misses
    if train.X.shape[1] != test.X.shape[1]:
        raise DataFormatError(
            test_path,
            f"the header promises {test.X.shape[1]} terms, that of {train_path.name} "
            f"{train.X.shape[1]}; the files do not belong together",
        )
    trained, tested = train.label_sets, test.label_sets
    n_classes = len(trained.classes)
    classes = np.concatenate([trained.classes, np.setdiff1d(tested.classes, trained.classes)])
    order = np.argsort(classes)
    new_ids = order[np.searchsorted(classes, tested.classes, sorter=order)]
    tested = _renumber(tested, new_ids)
    return LabelSetDataset(
        train.X,
        LabelSets(trained.indptr, trained.class_ids, np.arange(n_classes)),
        test.X,
        LabelSets(tested.indptr, tested.class_ids, np.arange(len(classes))),
        n_classes,
        None,
        None,
        n_unlabelled=train.n_unlabelled,
    )


def _read_records(
    path: Path, ids: dict[str, int], n_documents: int
) -> tuple[LabelSets, NDArray[np.str_] | None]:
    """Return the labels of a file of records, with new ids for those not seen, and languages."""
    sets: list[list[int]] = []
    languages: list[str] = []
    for record in _records(path):
        labels = {ids.setdefault(str(label), len(ids)) for label in record["labels"]}
        sets.append(sorted(labels))
        languages.append(str(record.get("lang", "")))
    if len(sets) != n_documents:
        raise DataFormatError(path, f"has {len(sets)} records for {n_documents} documents")
    indptr = np.concatenate([[0], np.cumsum([len(labels) for labels in sets])]).astype(np.int64)
    flat = np.array([label for labels in sets for label in labels], np.int64)
    known = len(set(languages)) > 1
    return LabelSets(indptr, flat, np.arange(len(ids))), np.array(languages) if known else None


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _read_class_names(folder: Path, ids: dict[str, int]) -> list[str]:
    """Return the name of each class; classes that only the names have get ids too."""
    path = folder / "class_names.tsv.xz"
    if not path.is_file():
        return []
    names: dict[int, str] = {}
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            label, _, name = line.rstrip("\n").partition("\t")
            names[ids.setdefault(label, len(ids))] = name
    return [names.get(i, "") for i in range(len(ids))]
