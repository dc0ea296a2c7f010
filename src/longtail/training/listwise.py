"""Feature weights and term weights by a softmax over lists: true class against hard negatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from longtail._kernels import listwise as kernels
from longtail._kernels.types import AdaGrad, Contributions, ListScratch
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
    their standard deviation, with L-BFGS.

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
    # A row's common part cannot matter; without it a feature that never differs is exactly 0.
    scaled = (features - features[:, :1]) / scales

    def loss(weights: Floats) -> tuple[float, Floats]:
        return listwise_loss(weights, scaled, decay, costs)

    scaled_bounds = None if bounds is None else np.asarray(bounds) * scales[:, None]
    result = minimize(
        loss, np.zeros(len(scales)), jac=True, method="L-BFGS-B", bounds=scaled_bounds
    )
    return np.asarray(result.x / scales)


def listwise_loss(
    weights: Floats, features: Floats, decay: float, costs: Floats | None = None
) -> tuple[float, Floats]:
    """Return the penalised softmax loss of the first column of each row, and its gradient.

    The mean over rows; `costs` says what each counts.
    """
    scores = features @ weights
    scores -= scores.max(axis=1, keepdims=True)
    shares = np.exp(scores)
    totals = shares.sum(axis=1)
    losses, n_rows = np.log(totals) - scores[:, 0], float(len(features))
    shares /= totals[:, None]
    shares[:, 0] -= 1.0
    if costs is not None:
        n_rows = float(costs.sum())
        losses *= costs * (len(costs) / n_rows)
        shares *= costs[:, None]
    value = float(np.mean(losses) + decay * weights @ weights)
    gradient = np.einsum("nq,nqd->d", shares, features) / n_rows + 2.0 * decay * weights
    return value, gradient


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
        log_weights = np.log(weights)
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
    return np.exp(log_weights)


def _documents_in_block(rows: CountMatrix, documents: Integers) -> int:
    """Return how many documents have about 100,000 terms: 8 MB with 20 hard negatives each."""
    n_entries = int(np.diff(rows.indptr)[documents].sum())
    return max(1, 100_000 * len(documents) // max(n_entries, 1))
