"""Feature weights and term weights by a softmax over lists: true class against hard negatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._elementary import exp, log
from longtail._kernels import listwise as kernels
from longtail._kernels.types import (
    AdaGrad,
    Contributions,
    ListScratch,
    SoftmaxScratch,
    SoftmaxSums,
)
from longtail._newton import Objective, minimise
from longtail._progress import advance
from longtail.sparse import CountMatrix, Floats, Integers

FIRST_SQUARED_GRADIENT = 1e-2  # of AdaGrad: bounds the first step of a term to the learning rate
# What a document adds to the squared gradients of its terms, in three passes: 0.66 to 0.92 each on
# wordnet-hypernym. Terms that were learned before go on with steps as small as they had become.
SQUARED_GRADIENT_OF_DOCUMENT = 2.0


def fit_feature_weights(
    features: NDArray[np.float32],
    decay: float = 1e-3,
    bounds: Sequence[tuple[float, float]] | None = None,
    costs: Floats | None = None,
) -> Floats:
    """Fit feature weights so that the first class of each row wins a softmax over its row.

    Minimises the mean of -ln softmax(features @ w)[0] plus `decay` * |w|^2, on features divided by
    their standard deviation.

    Parameters
    ----------
    features : ndarray of shape (M, n_columns, n_features)
        True class in column 0.
    decay : float
        Weight of the penalty.
    bounds : sequence of (low, high), optional
        Of each weight.
    costs : ndarray of shape (M,), optional
        What the loss of each row counts; 1 when left out.

    Returns
    -------
    ndarray of shape (n_features,), float64
        Weights of the features as they are.
    """
    scales = features.std(axis=(0, 1), dtype=np.float64) + 1e-9
    weights = minimise(
        lambda weights: listwise_objective(weights, features, scales, decay, costs),
        np.zeros(len(scales)),
        None if bounds is None else np.asarray(bounds) * scales[:, None],
    )
    return np.asarray(weights / scales)


def listwise_objective(
    weights: Floats,
    features: NDArray[Any],
    scales: Floats,
    decay: float,
    costs: Floats | None = None,
) -> Objective:
    """Return the penalised softmax loss of the first column of each row, by scaled features.

    The mean over rows; `costs` says what each counts. A row's common part cannot matter: features
    count less those of the first column, so that one that never differs is exactly 0.
    """
    n_rows, n_columns, n_features = features.shape
    shares = np.full(n_rows, 1.0 / n_rows) if costs is None else costs / costs.sum()
    sums = SoftmaxSums(2.0 * decay * weights, 2.0 * decay * np.eye(n_features))
    loss = kernels.sum_feature_losses(
        np.ascontiguousarray(features),
        shares,
        scales,
        weights,
        new_scratch(n_columns, n_features),
        sums,
    )
    return Objective(loss + decay * float((weights * weights).sum()), sums.gradient, sums.hessian)


def new_scratch(n_columns: int, n_features: int) -> SoftmaxScratch:
    """Return the scratch of a softmax over lists of this size."""
    return SoftmaxScratch(
        np.empty((n_columns, n_features)), np.empty(n_columns), np.empty(n_features)
    )


def fit_term_weights(
    rows: CountMatrix,
    documents: Integers,
    contributions_of: Callable[[slice], Contributions],
    *,
    learning_rate: float = 0.1,
    decay: float = 1e-3,
    n_epochs: int = 3,
    block: int | None = None,
    before: tuple[Floats, Floats] | None = None,
    costs: Floats | None = None,
) -> Floats:
    """Learn a factor for each term so that the first class of each row wins a softmax over its row.

    The factors are exponentials, so they stay positive; a term that is never seen keeps 1. All
    passes over a block of documents come before the next block: what terms add to scores takes
    longer to compute than a pass, and that of all documents would be the largest array of a fit.
    On held-out documents of four sets this is as good as passing over all documents each time.

    Parameters
    ----------
    rows : CountMatrix
        All documents.
    documents : ndarray of shape (M,)
        Document ids, in the order of the gradient steps.
    contributions_of : callable
        Gives, for a slice of `documents`, what each term adds to each score at factor 1; true class
        in column 0.
    learning_rate, decay, n_epochs : float, float, int
        Of the adaptive gradient method; the penalty pulls logarithms to 0 each time a term is seen.
    block : int, optional
        Documents in a slice; as many as have 100,000 terms when left out.
    before : tuple of two ndarrays of shape (n_terms,), optional
        Factors to go on from, and how many documents of each term they were learned on.
    costs : ndarray of shape (M,), optional
        What the loss of each document counts; 1 when left out.

    Returns
    -------
    ndarray of shape (n_terms,), float64
    """
    log_weights = np.zeros(rows.n_terms)
    squared_gradients = np.full(rows.n_terms, FIRST_SQUARED_GRADIENT)
    if before is not None:
        weights, n_learned_on = before
        log_weights = log(weights)
        squared_gradients += SQUARED_GRADIENT_OF_DOCUMENT * n_learned_on
    optimizer = AdaGrad(learning_rate, decay, squared_gradients)
    factors = np.empty(int(np.diff(rows.indptr).max(initial=0)))
    block = block or _documents_in_block(rows, documents)
    nothing = np.zeros(0)

    def step(batch: slice, terms: Contributions) -> None:
        for _ in range(n_epochs):
            kernels.step_term_weights(
                rows.indptr,
                rows.indices,
                documents[batch],
                nothing if costs is None else costs[batch],
                terms,
                optimizer,
                ListScratch(np.empty(terms.biases.shape[1]), factors),
                log_weights,
            )

    for start in range(0, len(documents), block):
        advance("term weights", start, len(documents))
        batch = slice(start, start + block)
        step(batch, contributions_of(batch))  # without a name: it would live on beside the next
    return exp(log_weights)


def _documents_in_block(rows: CountMatrix, documents: Integers) -> int:
    """Return how many documents have about 100,000 terms: 8 MB with 20 hard negatives each."""
    n_entries = int(np.diff(rows.indptr)[documents].sum())
    return max(1, 100_000 * len(documents) // max(n_entries, 1))
