"""Partitions: where documents come from, file by file or call by call.

In: paths, patterns, folders, tables or functions. Out: a list of `Partition`, each of which a task
can read on its own, in blocks of a bounded number of entries. The order of the list is the order of
the documents; patterns and folders are sorted by name.
"""

from __future__ import annotations

import glob
import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from longtail._labels import LabelSets, Multilabel, read_label_sets
from longtail._records import Fields, write_documents
from longtail.datasets.records import Chunk, CountFile, join_chunks
from longtail.datasets.tables import COUNT_FORMATS, Table, find_format, read_file_chunks
from longtail.distributed.task_results import hash_file
from longtail.exceptions import PartitionError

# What a function returns: counts or texts, and a label or a set of labels for each of them.
Source = Table | CountFile | Callable[[], tuple[Any, Any]]


@dataclass(frozen=True)
class Partition:
    """Some documents that one task reads.

    Attributes
    ----------
    source : Table, CountFile or callable
        A file, or a function that returns ``(X, y)`` or ``(texts, y)``.
    name : str
        What messages call it.
    """

    source: Source
    name: str

    @property
    def holds_texts(self) -> bool | None:
        """Whether it holds texts; None where only reading it tells."""
        if isinstance(self.source, Table):
            return True
        return False if isinstance(self.source, CountFile) else None


def list_partitions(partitions: Any) -> list[Partition]:
    """Return the partitions that were asked for, in order.

    Parameters
    ----------
    partitions : path, Table, CountFile, callable, or a sequence of these
        A path, also that of a `Table` or `CountFile`, may be a pattern or a folder. A path alone
        must be that of svmlight files: a table needs the names of its columns.

    Raises
    ------
    ValueError
        If there is none, or texts and counts are mixed.
    FileNotFoundError
        If a path is no file and matches none.
    """
    is_one = callable(partitions) or isinstance(partitions, str | os.PathLike | Table | CountFile)
    found = [
        partition
        for i, source in enumerate([partitions] if is_one else partitions)
        for partition in _expand(source, i)
    ]
    if not found:
        raise ValueError("partitions must name at least one file or function; got none.")
    if {True, False} <= {partition.holds_texts for partition in found}:
        raise ValueError("partitions must all hold texts, or all counts; got both.")
    return found


def _expand(source: Any, position: int) -> list[Partition]:
    """Return the partitions of one source."""
    if isinstance(source, str | os.PathLike):
        return _expand(CountFile(source), position)
    if callable(source):
        name = getattr(source, "__name__", type(source).__name__)
        return [Partition(source, f"{position} ({name})")]
    if not isinstance(source, Table | CountFile):
        raise ValueError(
            "a partition must be a path, a Table, a CountFile or a function that returns (X, y); "
            f"got {type(source).__name__}."
        )
    expanded = []
    for path in list_files(source.path):
        format = find_format(path, source.format)
        if isinstance(source, CountFile) and format not in COUNT_FORMATS:
            raise ValueError(
                f"{path} is a table of texts: say which columns hold text and label, as in "
                f"Table({path!r}, text=['body'], label='class')."
            )
        expanded.append(Partition(replace(source, path=path), path))
    return expanded


def list_files(path: str | os.PathLike[str]) -> list[str]:
    """Return the files that a path, a pattern or a folder stands for, sorted by name."""
    name = os.fspath(path)
    if os.path.isdir(name):
        files = glob.glob(os.path.join(glob.escape(name), "**", "*.*"), recursive=True)
        found = sorted(file for file in files if os.path.isfile(file))
    else:
        found = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
    if not found:
        raise FileNotFoundError(f"there is no file {name!r}, and none that matches it.")
    return [os.path.abspath(file) for file in found]


def hash_partition(partition: Partition) -> str:
    """Return a hash of the content of a file, or of a function as it is sent to a worker.

    What a function returns is not hashed: it must return the same each time.
    """
    source = partition.source
    if not callable(source):
        try:
            return hash_file(os.fspath(source.path))
        except OSError as error:
            raise PartitionError(partition.name, error) from error
    try:
        pickled = pickle.dumps(source)
    except (pickle.PicklingError, AttributeError, TypeError):
        return os.urandom(
            16
        ).hex()  # a function that cannot be named: its results are never found again
    return blake2b(pickled, digest_size=16).hexdigest()


def read_chunks(
    partition: Partition,
    *,
    labelled: bool = True,
    n_terms: int | None = None,
    multilabel: Multilabel = "auto",
    fields: Fields | None = None,
) -> Iterator[Chunk]:
    """Read a partition in chunks.

    Parameters
    ----------
    partition : Partition
        What to read.
    labelled : bool, default=True
        Whether labels are wanted.
    n_terms : int, optional
        Number of columns of a fitted model; terms beyond are left out.
    multilabel : bool or "auto", default="auto"
        Whether documents have label sets.
    fields : Fields, optional
        Of documents that are records; the columns of a table.

    Yields
    ------
    Chunk
        Never empty.

    Raises
    ------
    PartitionError
        Which partition cannot be read, and why.
    """
    source = partition.source
    try:
        if callable(source):
            yield from _call(source, labelled, multilabel, fields)
            return
        if isinstance(source, Table) and fields is not None:
            source = replace(source, fields=dict(fields.kinds))
        elif isinstance(source, Table) and source.fields is not None:
            raise ValueError("its Table has fields; give the TextClassifier the same fields.")
        for chunk in read_file_chunks(source, labelled=labelled, n_terms=n_terms):
            labels = read_label_sets(chunk.labels, multilabel) if labelled else np.zeros(0)
            yield replace(chunk, labels=labels)
    except Exception as error:  # a function may raise anything
        reason = str(error) or type(error).__name__
        raise PartitionError(partition.name, reason) from error


def _call(
    function: Callable[[], tuple[Any, Any]],
    labelled: bool,
    multilabel: Multilabel,
    fields: Fields | None,
) -> Iterator[Chunk]:
    """Yield what a function returns."""
    returned = function()
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        got = f"{type(returned).__name__}"
        if isinstance(returned, tuple | list):
            got = f"{len(returned)} items. Sample weights are for fit in memory"
        raise ValueError(f"it must return (X, y); got {got}.")
    content = returned[0]
    labels = read_label_sets(returned[1], multilabel) if labelled else np.zeros(0)
    is_nested = isinstance(content, list | tuple) and any(map(np.ndim, content[:1]))
    is_matrix = issparse(content) or is_nested or getattr(content, "ndim", 1) == 2
    is_matrix = is_matrix and fields is None  # else a table
    content = csr_array(content) if is_matrix else write_documents(content, fields)
    n_documents = content.shape[0] if isinstance(content, csr_array) else len(content)
    shape = (labels.n_documents,) if isinstance(labels, LabelSets) else labels.shape
    if labelled and shape != (n_documents,):
        raise ValueError(
            "it must return one label, or one set of labels, for each document; got "
            f"{n_documents} documents and labels of shape {shape}."
        )
    if n_documents:
        yield Chunk(content, labels, list(range(1, n_documents + 1)))


def group_chunks(chunks: Iterator[Chunk], largest: int, of_document: int = 0) -> Iterator[Chunk]:
    """Join chunks into blocks that end as soon as they have reached a size.

    Each document counts `of_document` beside its entries or characters.
    """
    pending: list[Chunk] = []
    for chunk in chunks:
        pending.append(chunk)
        n_documents = sum(map(len, pending))
        if sum(entry.size for entry in pending) + of_document * n_documents >= largest:
            yield join_chunks(pending)
            pending = []
    if pending:
        yield join_chunks(pending)
