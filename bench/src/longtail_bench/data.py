"""Folders of term counts and files of counts -> data sets.

A folder holds `counts.npz` and, if its classes and terms have names, `classes.txt.xz` and
`terms.txt.xz` with one name a line. `counts.npz` holds `shape` (n_train, n_test, n_classes,
n_terms) and for each of the parts `train` and `test` the arrays `_indptr`, `_indices`, `_data` of a
CSR matrix of raw counts and `_y`, class ids from 0. A folder of the Extreme Classification
Repository holds a training and a test file in the XMC format instead.
"""

from __future__ import annotations

import lzma
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from longtail.datasets import CountDataset, DataFormatError
from longtail.datasets.streams import read_chunks

COUNTS = "counts.npz"
EXTREME_FILES = "train.txt and test.txt (or NAME_train.txt and NAME_test.txt, also compressed)"

_ARRAYS = {"shape"} | {
    f"{split}_{name}" for split in ("train", "test") for name in ("data", "indices", "indptr", "y")
}
_EXTREME_NAME = re.compile(r"(?:.*[_-])?(train|test)\.txt(?:\.(?:gz|bz2|xz|zst))?", re.IGNORECASE)
_CHUNK = 1 << 20  # bytes of a list of names read at once


def find_data_sets(folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Find the data sets in a folder.

    Parameters
    ----------
    folder : str or path-like
        Holds one folder for each data set.

    Returns
    -------
    dict of str to Path
        Name of each data set and its folder, by name.

    Raises
    ------
    FileNotFoundError
        If the folder is absent, or none of the folders in it has counts.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "letters").mkdir()
    >>> (folder / "letters" / "counts.npz").touch()
    >>> list(find_data_sets(folder))
    ['letters']
    """
    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(f"no folder of data sets at {path.absolute()}")
    found = {path.parent.name: path.parent for path in sorted(path.glob(f"*/{COUNTS}"))}
    if not found:
        raise FileNotFoundError(
            f"no data sets: {COUNTS} is missing in each folder of {path.absolute()}"
        )
    return found


def find_data_set(name: str | os.PathLike[str], folder: str | os.PathLike[str] | None) -> Path:
    """Return one data set, given as a path or by its name in a folder of several.

    Parameters
    ----------
    name : str or path-like
        A folder that holds counts or XMC files, the name of one inside `folder`, a file of counts
        (.npz), or a table.
    folder : str or path-like or None
        Holds one folder for each data set; None if there is no such folder.

    Returns
    -------
    Path
        The folder or file.

    Raises
    ------
    FileNotFoundError
        If there is none: what was looked for, where, and what is there instead.
    DataFormatError
        If a folder has XMC files, but not one for training and one for testing.
    """
    if Path(name).is_file():
        return Path(name)
    paths = [Path(name)] if folder is None else [Path(folder) / name, Path(name)]
    for path in paths:
        if (path / COUNTS).is_file() or find_extreme_files(path) is not None:
            return path
    looked = " and ".join(str((path / COUNTS).absolute()) for path in paths)
    looked += f", and there for {EXTREME_FILES}"
    known = ""
    if folder is not None and Path(folder).is_dir():
        known = f"; there are {', '.join(find_data_sets(folder))}"
    raise FileNotFoundError(f"no data set {os.fspath(name)}: looked for {looked}{known}")


def find_extreme_files(folder: Path) -> tuple[Path, Path] | None:
    """Find the XMC files of a folder, or of a folder in it, as archives of the repository unpack.

    Parameters
    ----------
    folder : Path
        With `train.txt` and `test.txt`, or names that end so, such as `wiki10_train.txt`.

    Returns
    -------
    tuple of Path or None
        The training file and the test file; None if there is neither.

    Raises
    ------
    DataFormatError
        If one of the two is missing, or there are several.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> find_extreme_files(folder) is None
    True
    >>> (folder / "Wiki10").mkdir()
    >>> for name in ("wiki10_train.txt", "wiki10_test.txt"):
    ...     (folder / "Wiki10" / name).touch()
    >>> [path.name for path in find_extreme_files(folder)]
    ['wiki10_train.txt', 'wiki10_test.txt']
    """
    for pattern in ("*", "*/*"):
        found: dict[str, list[Path]] = {"train": [], "test": []}
        for path in sorted(folder.glob(pattern)):
            if (match := _EXTREME_NAME.fullmatch(path.name)) and path.is_file():
                found[match[1].lower()].append(path)
        if not any(found.values()):
            continue
        for split, paths in found.items():
            if len(paths) != 1:
                names = ", ".join(str(path.relative_to(folder)) for path in paths)
                raise DataFormatError(
                    folder,
                    f"must have one file for each of {EXTREME_FILES}; for {split} there is "
                    f"{names or 'none'}",
                )
        return found["train"][0], found["test"][0]
    return None


def name_data_set(path: Path) -> str:
    """Return what rows and tables call a data set."""
    path = path.resolve()
    if path.is_dir():
        return path.name
    return path.parent.name if path.name == COUNTS else path.name.partition(".")[0]


def load_counts(path: str | os.PathLike[str]) -> CountDataset:
    """Load the counts of one data set.

    Parameters
    ----------
    path : str or path-like
        A folder as this module describes it, or the file of counts in it.

    Returns
    -------
    CountDataset
        Classes keep their ids where the training split has them all, and get new ones otherwise.
        Without files of names, the ids of the file stand for them.

    Raises
    ------
    FileNotFoundError
        If there are no counts.
    DataFormatError
        If an array is missing or does not fit the others.
    """
    file = Path(path) if Path(path).is_file() else Path(path) / COUNTS
    if not file.is_file():
        raise FileNotFoundError(f"no data set: {COUNTS} is missing in {Path(path).absolute()}")
    try:
        # The stream is ours, because numpy leaves a file open that it cannot read. Pickles are
        # refused.
        with file.open("rb") as stream, np.load(stream) as arrays:
            if missing := sorted(_ARRAYS - set(arrays.files)):
                raise ValueError(f"there is no array {', '.join(missing)}")
            n_train, n_test, n_classes, n_terms = (int(size) for size in arrays["shape"])
            X_train, y_train = _read_split(arrays, "train", n_train, n_terms)
            X_test, y_test = _read_split(arrays, "test", n_test, n_terms)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataFormatError(file, f"the counts cannot be read: {error}") from error
    for name, y in (("train_y", y_train), ("test_y", y_test)):
        if y.min() < 0 or y.max() >= n_classes:
            raise DataFormatError(
                file,
                f"{name} must have class ids from 0 to {n_classes - 1}; got {y.min()} to {y.max()}",
            )
    order = training_classes_first(y_train, n_classes)
    new_ids = np.argsort(order)
    return CountDataset(
        X_train=X_train,
        y_train=new_ids[y_train],
        X_test=X_test,
        y_test=new_ids[y_test],
        classes=read_names(file.parent / "classes.txt.xz", n_classes)[order],
        terms=read_names(file.parent / "terms.txt.xz", n_terms),
    )


def save_counts(data: CountDataset, folder: str | os.PathLike[str]) -> None:
    """Write a data set as `load_counts` reads it, in a folder that is created.

    Examples
    --------
    >>> import tempfile
    >>> from longtail.datasets import load_wordnet_counts
    >>> folder = Path(tempfile.mkdtemp()) / "wordnet"
    >>> save_counts(load_wordnet_counts(), folder)
    >>> load_counts(folder).X_train.shape
    (70084, 39498)
    """
    path = Path(folder)
    path.mkdir(parents=True)
    n_train, n_terms = data.X_train.shape
    arrays: dict[str, Any] = {
        "shape": np.array([n_train, data.X_test.shape[0], len(data.classes), n_terms])
    }
    for split, X, y in (
        ("train", data.X_train, data.y_train),
        ("test", data.X_test, data.y_test),
    ):
        arrays |= {f"{split}_{name}": getattr(X, name) for name in ("indptr", "indices", "data")}
        arrays[f"{split}_y"] = y
    np.savez_compressed(path / COUNTS, **arrays)
    for name, names in (("classes", data.classes), ("terms", data.terms)):
        lines = "".join(f"{value}\n" for value in names)
        (path / f"{name}.txt.xz").write_bytes(lzma.compress(lines.encode()))


def _read_split(
    arrays: Any, split: str, n_documents: int, n_terms: int
) -> tuple[csr_array[Any], NDArray[np.int64]]:
    """Return counts and class ids of the training or the test part."""
    X = csr_array(
        (arrays[f"{split}_data"], arrays[f"{split}_indices"], arrays[f"{split}_indptr"]),
        shape=(n_documents, n_terms),
    )
    X.check_format(full_check=True)
    X.sum_duplicates()
    y = np.asarray(arrays[f"{split}_y"], dtype=np.int64)
    if y.shape != (n_documents,) or not n_documents:
        raise ValueError(
            f"{split}_y must have one class id for each of at least one document; got shape "
            f"{y.shape} for {n_documents} documents"
        )
    return X, y


def training_classes_first(y_train: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
    """Return the class ids of the file in the order that data sets want."""
    untrained = np.bincount(y_train, minlength=n_classes) == 0
    return np.argsort(untrained, kind="stable")


def read_names(path: Path, n_names: int) -> NDArray[Any]:
    """Return the lines of a file, or numbers if it is absent."""
    if not path.is_file():
        return np.arange(n_names)
    text = b"".join(read_chunks(path, _CHUNK)).decode("utf-8")
    names = np.array(text.removesuffix("\n").split("\n"))
    if len(names) != n_names:
        raise DataFormatError(
            path, f"must have {n_names} lines, as {COUNTS} says; has {len(names)}"
        )
    return names
