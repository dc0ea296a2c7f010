"""Splits of a run: fit and predict the test documents, or training documents held out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail import metrics
from longtail.datasets import CountDataset
from longtail_bench.data import COUNTS, find_extreme_files
from longtail_bench.label_set_data import LabelSetDataset
from longtail_bench.label_set_measures import measure_label_sets
from longtail_bench.rows import Row
from longtail_bench.table_data import CountedTexts, TableColumns
from longtail_bench.worker import TOP

_HELD_OUT_SHARE, _HELD_OUT_MOST = 0.1, 5000  # the paper held out 5,000


def write_splits(data: CountDataset, path: Path) -> None:
    """Store what a worker needs: counts of both parts and the classes of the training part.

    Not compressed, so that reading takes neither time nor memory that a system could be blamed for.
    """
    parts = {"train": data.X_train, "test": data.X_test}
    write_parts(path, parts, {"train_y": data.y_train, **_pack_documents(data)})


def write_parts(path: Path, parts: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Store the counts of parts (train, test, name) with other arrays, as a worker reads them."""
    stored = {"n_terms": np.array(next(iter(parts.values())).shape[1]), **arrays}
    for split, X in parts.items():
        stored |= {f"{split}_{name}": getattr(X, name) for name in ("data", "indices", "indptr")}
    np.savez(path, **stored)


def hold_out(data: CountDataset) -> CountDataset:
    """Return the training part alone, a tenth of it as the part to predict; each class keeps one.

    The same documents for every system, seed and run.
    """
    order = np.random.default_rng(0).permutation(len(data.y_train))
    _, first = np.unique(data.y_train[order], return_index=True)
    free = np.delete(order, first)
    held = free[: min(_HELD_OUT_MOST, int(len(order) * _HELD_OUT_SHARE))]
    if not len(held):
        raise ValueError(
            "no document can be held out: every class has a single one. Run without a search."
        )
    kept = np.setdiff1d(order, held)
    if isinstance(data, CountedTexts):
        texts = data.train_texts
        data = replace(
            data, train_texts=[texts[i] for i in kept], test_texts=[texts[i] for i in held]
        )
    return replace(
        data,
        X_train=data.X_train[kept],
        y_train=data.y_train[kept],
        X_test=data.X_train[held],
        y_test=data.y_train[held],
    )


class LabelSetSplit:
    """Data with label sets to fit on and to predict, and the file that workers read them from."""

    top = 20  # classes ranked for each document: R@10 and deeper

    def __init__(self, data: LabelSetDataset, path: Path) -> None:
        self.data = data
        self.path = path
        n_train, n_terms = data.X_train.shape
        self.sizes: dict[str, Any] = {
            "n_train": n_train,
            "n_test": data.X_test.shape[0],
            "n_classes": data.n_train_classes,
            "n_terms": n_terms,
            "n_unlabelled": data.n_unlabelled,
            "fractions": data.has_fractions,
        }
        arrays = {
            "n_classes": np.array(data.n_train_classes),
            "train_label_indptr": data.train.indptr.astype(np.int32),
            "train_labels": data.train.class_ids.astype(np.int32),
            **_pack_documents(data),
        }
        parts = {"train": data.X_train, "test": data.X_test}
        if data.names is not None:
            parts["name"] = data.names
            arrays |= {"texts": _pack(data.name_texts), "terms": _pack(data.terms.tolist())}
        write_parts(path, parts, arrays)

    def score(self, row: Row, ranking: NDArray[np.int64]) -> Row:
        """Return a row with what a ranking reached."""
        measures, bands = measure_label_sets(self.data, ranking)
        return replace(row, measures=measures, label_bands=bands)


def _pack_documents(data: CountDataset | LabelSetDataset) -> dict[str, NDArray[Any]]:
    """Return the texts of both parts, where the data set has them, and how long each is."""
    packed: dict[str, NDArray[Any]] = {}
    for split in ("train", "test"):
        if texts := getattr(data, f"{split}_texts", None):
            encoded = [text.encode() for text in texts]
            packed[f"{split}_utf8"] = np.frombuffer(b"".join(encoded), np.uint8)
            packed[f"{split}_lengths"] = np.array([len(text) for text in encoded], np.int64)
    return packed


def _pack(texts: list[str]) -> NDArray[np.uint8]:
    """Return texts without line breaks as bytes: a worker reads no pickles."""
    return np.frombuffer("\n".join(texts).encode(), np.uint8)


class Split:
    """Data to fit on and to predict, and the file that workers read them from."""

    top = TOP

    def __init__(self, data: CountDataset, path: Path) -> None:
        self.data = data
        self.path = path
        self.sizes: dict[str, Any] = {
            "n_train": data.X_train.shape[0],
            "n_test": data.X_test.shape[0],
            "n_classes": data.n_train_classes,
            "n_terms": data.X_train.shape[1],
        }
        write_splits(data, path)

    def score(self, row: Row, ranking: NDArray[np.int64]) -> Row:
        """Return a row with what a ranking reached."""
        data = self.data
        first, sizes = ranking[:, 0], np.bincount(data.y_train, minlength=len(data.classes))
        # A system that gives one class out of more than one has no top 5.
        alone = ranking.shape[1] == 1 < data.n_train_classes
        report = metrics.frequency_report(data.y_test, first, dict(enumerate(sizes.tolist())))
        return replace(
            row,
            accuracy=metrics.accuracy(data.y_test, first),
            macro_f1=metrics.macro_f1(data.y_test, first),
            macro_f1_of_means=metrics.macro_f1_of_means(data.y_test, first),
            top_5=float("nan") if alone else metrics.top_k_accuracy(data.y_test, ranking),
            bands=tuple(report),
        )


def digest_data(path: Path, columns: TableColumns | None = None) -> str:
    """Return the start of the SHA-256 of a data set, and of what is read of a table."""
    file = path / COUNTS if path.is_dir() else path
    files = (find_extreme_files(path) if not file.exists() else None) or (file,)
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            hashlib.file_digest(stream, lambda: digest)
    if columns is not None:
        test = None if columns.test is None else digest_data(columns.test)
        digest.update(repr((columns.text, columns.label, columns.label_separator, test)).encode())
    return digest.hexdigest()[:16]
