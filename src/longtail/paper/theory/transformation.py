"""The multi-class to binary transformation T (Eq. 4), written out in full.

In comes a small labelled set, as pair features φ(x_i^k) of every document with every class or as a
count matrix; out comes every pair of T(S), its label ±1 and its indices (i, k). Training never
builds this set: it is here to be looked at, and for the risks and bounds of this package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longtail._validation import check_integer
from longtail.model.statistics import ClassStatistics, check_class_ids
from longtail.paper.features import pair_features
from longtail.paper.pairwise import pair_labels, pair_with_all
from longtail.sparse import Floats, Integers


@dataclass(frozen=True)
class TransformedSet:
    """T(S) of Eq. 4: N = m (K - 1) pairs in the paper's order j = (i - 1)(K - 1) + k.

    Attributes
    ----------
    pairs : ndarray of shape (N, 2, p), float64
        ``pairs[j]`` is z_j, the features of its first and its second (document, class).
    labels : ndarray of shape (N,), int64
        +1 where the true class comes first, -1 where it comes second.
    documents : ndarray of shape (N,), int64
        i, the document of the pair, counted from 0.
    positions : ndarray of shape (N,), int64
        k, the place of the adversary among the classes other than the true one, counted from 0.
    classes : ndarray of shape (N, 2), int64
        The classes of the first and the second member; always ascending.
    n_classes : int
        K.
    """

    pairs: Floats
    labels: Integers
    documents: Integers
    positions: Integers
    classes: Integers
    n_classes: int

    @property
    def n_pairs(self) -> int:
        """N, the number of pairs."""
        return len(self.labels)

    @property
    def differences(self) -> Floats:
        """φ(first) - φ(second) of each pair, (N, p): all that a linear h looks at."""
        return np.asarray(self.pairs[:, 0] - self.pairs[:, 1])

    def margins(self, weights: npt.ArrayLike) -> Floats:
        """Return ỹ_j h(z_j) of the linear h(z) = <weights, first - second>, (N,).

        A pair is an error of Eq. 6 when its margin is not positive.
        """
        scores = self.differences @ np.asarray(weights, dtype=np.float64)
        return np.asarray(self.labels * scores)


def transform(
    X_or_features: npt.ArrayLike | sp.sparray | sp.spmatrix, y: npt.ArrayLike, n_classes: int
) -> TransformedSet:
    """Write out T(S) (Eq. 4), all K - 1 pairs of every document.

    The pair of a document of class y with the class k is (φ(x^k), φ(x^y)) with label -1 if k < y,
    else (φ(x^y), φ(x^k)) with label +1. The printed index k ∈ [K-1] counts the classes other than y
    in ascending order, as Figure 1 does: read literally it would pair y with itself and leave class
    K out.

    Parameters
    ----------
    X_or_features : array of shape (m, K, p), or count matrix of shape (m, n_terms)
        Features φ(x_i^k) of each document with each class; or counts, for which the ten features of
        Table 1 are computed with the statistics of (X, y).
    y : array-like of shape (m,)
        Class ids 0 .. K - 1.
    n_classes : int
        K, at least 2.

    Raises
    ------
    ValueError
        If shapes or class ids do not fit, or counts are given and a class has no document.

    Examples
    --------
    >>> features = np.zeros((2, 3, 1))
    >>> pairs = transform(features, [0, 1], n_classes=3)
    >>> pairs.classes.tolist(), pairs.labels.tolist()
    ([[0, 1], [0, 2], [0, 1], [1, 2]], [1, 1, -1, 1])
    """
    check_integer("n_classes", n_classes, 2)
    given = X_or_features if sp.issparse(X_or_features) else np.asarray(X_or_features)
    true = check_class_ids(y, n_classes, given.shape[0])
    features = _all_pair_features(given, true, n_classes)
    paired = pair_with_all(true, n_classes)
    documents = np.repeat(np.arange(len(true)), n_classes - 1)
    adversaries, true = paired[:, 1:].ravel(), true[documents]
    # Eq. 4 puts the smaller class id first, whichever of the two is the true class.
    classes = np.stack([np.minimum(true, adversaries), np.maximum(true, adversaries)], axis=1)
    return TransformedSet(
        pairs=features[documents[:, None], classes],
        labels=pair_labels(paired).ravel(),
        documents=documents,
        positions=np.tile(np.arange(n_classes - 1), len(paired)),
        classes=classes,
        n_classes=int(n_classes),
    )


def toy_example() -> TransformedSet:
    """Return the toy problem of Figure 1: m = 4, K = 4, document i of class i, twelve pairs.

    Its features are φ(x_i^k) = (i, k) counted from 1, so that a pair can be read off its features.

    Examples
    --------
    >>> toy_example().n_pairs
    12
    """
    values = np.arange(1.0, 5.0)
    features = np.stack(np.meshgrid(values, values, indexing="ij"), axis=-1)
    return transform(features, np.arange(4), n_classes=4)


def describe_pairs(transformed: TransformedSet) -> list[str]:
    """Write every pair as Figure 1 does, one string a pair, all numbers from 1.

    Examples
    --------
    >>> describe_pairs(toy_example())[3]
    '(z_4 = (φ(x_2^y_1), φ(x_2^y_2)), -1)'
    """
    lines = []
    for j in range(transformed.n_pairs):
        i = transformed.documents[j] + 1
        first, second = transformed.classes[j] + 1
        label = transformed.labels[j]
        lines.append(f"(z_{j + 1} = (φ(x_{i}^y_{first}), φ(x_{i}^y_{second})), {label:+d})")
    return lines


def _all_pair_features(given: Any, y: Integers, n_classes: int) -> Floats:
    """Return φ(x_i^k) for every document and class, (m, K, p)."""
    if given.ndim == 2:
        return _features_of_counts(given, y, n_classes)
    if given.ndim != 3 or given.shape[1] != n_classes:
        raise ValueError(
            "X_or_features must be pair features of shape (n_documents, n_classes, p), here "
            f"({len(y)}, {n_classes}, p), or a count matrix with {len(y)} rows; "
            f"got shape {given.shape}."
        )
    return np.asarray(given, np.float64)


def _features_of_counts(X: Any, y: Integers, n_classes: int) -> Floats:
    """Return the ten features of every document with every class, (m, K, 10)."""
    missing = np.flatnonzero(np.bincount(y, minlength=n_classes) == 0)
    if len(missing):
        raise ValueError(
            f"y must hold at least one document of each of the {n_classes} classes; class "
            f"{missing[0]} has none. Renumber the classes that occur from 0."
        )
    statistics = ClassStatistics.from_counts(X, y, n_classes)
    classes = np.tile(np.arange(n_classes), (len(y), 1))
    return pair_features(X, statistics, np.arange(len(y)), classes)
