"""A small problem in partitions: counts and texts, as functions and as files."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

N_DOCUMENTS, N_CLASSES, N_TERMS = 900, 60, 300


@functools.cache
def counts() -> tuple[csr_array, np.ndarray]:
    """Return long-tailed documents; classes have a few terms of their own."""
    rng = np.random.default_rng(5)
    popularity = 1 / np.arange(1, N_CLASSES + 1)
    y = rng.choice(N_CLASSES, N_DOCUMENTS, p=popularity / popularity.sum())
    own = rng.integers(0, N_TERMS, (N_CLASSES, 8))
    rows, columns = [], []
    for document, label in enumerate(y):
        terms = np.concatenate([rng.choice(own[label], 5), rng.integers(0, N_TERMS, 4)])
        rows += [document] * len(terms)
        columns += terms.tolist()
    X = csr_array((np.ones(len(rows)), (rows, columns)), shape=(N_DOCUMENTS, N_TERMS))
    X.sum_duplicates()
    return X, y * 10 + 7


def part(first: int, last: int) -> tuple[csr_array, np.ndarray]:
    """Return some of the documents: what a partition is made of."""
    X, y = counts()
    return X[first:last], y[first:last]


@functools.cache
def label_sets() -> tuple[csr_array, list[list[str]]]:
    """Return documents joined in pairs, with the labels of both; some have one label or none.

    The last third have one each: a partition of these alone does not know that others have more.
    """
    X, y = counts()
    rng = np.random.default_rng(6)
    other = rng.permutation(N_DOCUMENTS)
    is_pair = np.arange(N_DOCUMENTS) < 2 * N_DOCUMENTS // 3
    joined = csr_array(X + X[other].multiply(is_pair[:, None]))
    labels = [
        sorted({f"class {own}", f"class {second}"} if pair else {f"class {own}"})
        for own, second, pair in zip(y, y[other], is_pair, strict=True)
    ]
    for document in range(0, N_DOCUMENTS // 2, 40):
        labels[document] = []
    return joined, labels


def sets_part(first: int, last: int) -> tuple[csr_array, list[list[str]]]:
    """Return some of the documents with label sets."""
    X, y = label_sets()
    return X[first:last], y[first:last]


def indicator_part(first: int, last: int) -> tuple[csr_array, csr_array]:
    """Return some of the documents with rows of an indicator matrix; some columns are empty."""
    X, y = label_sets()
    rows = [document for document in range(first, last) for _ in y[document]]
    columns = [int(label.removeprefix("class ")) for labels in y[first:last] for label in labels]
    shape = (last - first, 10 * N_CLASSES)
    entries = (np.ones(len(rows)), (np.array(rows) - first, columns))
    return X[first:last], csr_array(entries, shape=shape)


def slow_part(first: int, last: int) -> tuple[csr_array, np.ndarray]:
    """Return some of the documents after a while, in which a worker can be killed."""
    time.sleep(0.3)
    return part(first, last)


def texts() -> tuple[list[str], list[str]]:
    """Return the same documents as texts."""
    X, y = counts()
    return spell(X), [f"class {label}" for label in y]


def spell(X: csr_array) -> list[str]:
    """Return counts as texts."""
    return [
        " ".join(
            f"w{term}x"
            for term, count in zip(
                X.indices[X.indptr[i] : X.indptr[i + 1]],
                X.data[X.indptr[i] : X.indptr[i + 1]],
                strict=True,
            )
            for _ in range(int(count))
        )
        for i in range(X.shape[0])
    ]


def bounds(n_parts: int) -> list[tuple[int, int]]:
    """Return where parts of unequal size begin and end."""
    edges = (N_DOCUMENTS * np.linspace(0, 1, n_parts + 1) ** 1.5).astype(int).tolist()
    return list(itertools.pairwise(edges))


def functions(n_parts: int, make=part) -> list:
    """Return partitions that are functions."""
    return [functools.partial(make, first, last) for first, last in bounds(n_parts)]


def write_svmlight(folder: Path, n_parts: int) -> None:
    """Write partitions of counts."""
    X, y = counts()
    for i, (first, last) in enumerate(bounds(n_parts)):
        lines = []
        for row in range(first, last):
            entries = slice(X.indptr[row], X.indptr[row + 1])
            pairs = zip(X.indices[entries] + 1, X.data[entries], strict=True)
            lines.append(f"{y[row]} " + " ".join(f"{t}:{c:g}" for t, c in pairs) + "\n")
        (folder / f"part-{i:02}.svm").write_text("".join(lines))


def write_tables(folder: Path, ending: str, n_parts: int) -> None:
    """Write partitions of texts: jsonl, csv or parquet."""
    documents, labels = texts()
    for i, (first, last) in enumerate(bounds(n_parts)):
        path = folder / f"part-{i:02}.{ending}"
        rows = list(zip(documents[first:last], labels[first:last], strict=True))
        if ending == "jsonl":
            path.write_text("".join(json.dumps({"body": t, "label": c}) + "\n" for t, c in rows))
        elif ending == "csv":
            path.write_text("body,label\n" + "".join(f"{t},{c}\n" for t, c in rows))
        else:
            import pyarrow as pa
            from pyarrow import parquet

            columns = [list(column) for column in zip(*rows, strict=True)]
            parquet.write_table(pa.table(columns, names=["body", "label"]), path)


def checksum(model, folder: Path) -> str:
    """Return the SHA-256 of a model's file."""
    path = folder / "model.longtail"
    model.save(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()
