"""A separator for each class: a linear support vector machine against all other documents.

In: documents with their candidate classes, and documents drawn from all. Out: `ClassResiduals`,
sparse. Residuals learn what the shared score gets wrong on hard negatives. A separator knows
nothing of that score, and must also keep out documents that do not have the class among their
candidates. So its negatives are all mined ones and random ones, each of which stands for many. What
separators count beside features and residuals is learned on held-out documents, by class size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from longtail._kernels import separators as kernels
from longtail._kernels.types import (
    Block,
    DualSolver,
    RandomNegatives,
    ResidualRows,
    SeparatorScratch,
)
from longtail.model.scorer import ClassResiduals
from longtail.model.weighting import WeightedDocuments
from longtail.sparse import Integers, offsets_from_lengths
from longtail.training.negatives import MinedPairs
from longtail.training.residuals import collect_rows, group_examples
from longtail.training.sampling import lowest_keys, random_keys

# All constants were compared on held-out training documents of five sets; the figures are in
# docs/measurements/accuracy.md ("Separators").
# A tolerance of 1 loses 0.3 to 1.0 points, 5 passes up to 0.1, 20 passes at a tolerance of 0.1 gain
# 0.3 in P@5 on EURLex-4K for 1.5 times the CPU time, and nothing that shows elsewhere.
TOLERANCE = 0.3  # largest move in the last pass, in units of the margin
MAX_PASSES = 10
SMALLEST_WEIGHT = 0.1  # a third of the entries of 0.03, and no document lost or gained
# Random negatives of a class: per document, and beside that. None at all cost EURLex-4K 0.4 in P@5;
# 5 n + 500 gain at most 0.2 there and 0.1 with one label, for 1.5 to 3 times the CPU time.
NEGATIVES_PER_LABEL = 5
MIN_NEGATIVES, MIN_NEGATIVES_MULTILABEL = 20, 100
MAX_DRAWN = 10_000  # documents that are drawn, for all classes
_SEED = 0x5E9A  # draws apart from those of held-out documents


def draw_negatives(n_documents: int, seed: int, without: Integers | None = None) -> Integers:
    """Draw the documents that serve as random negatives, at most `MAX_DRAWN`.

    They depend on the seed and on document ids alone; none is among those `without`.
    """
    keys = random_keys(np.arange(n_documents + 1), seed ^ _SEED)
    if without is not None:
        keys[without] = np.inf
    return lowest_keys(keys, MAX_DRAWN)


def solve_separators(
    documents: WeightedDocuments,
    mined: MinedPairs,
    log_odds: NDArray[np.float32],
    n_classes: int,
    cost: float,
    drawn: WeightedDocuments,
    positions: Integers,
    n_documents: int,
    *,
    multilabel: bool,
    class_mask: NDArray[np.bool_] | None = None,
    document_mask: NDArray[np.bool_] | None = None,
    n_jobs: int | None = None,
) -> ClassResiduals:
    """Fit the separator of each class.

    Parameters
    ----------
    documents : WeightedDocuments
        All documents, or those that have some class among their candidates.
    mined : MinedPairs
        Their labels and negatives.
    log_odds : ndarray
        Of the pairs; listed with them, not used.
    n_classes : int
        K.
    cost : float
        Weight of the loss of each document.
    drawn : WeightedDocuments
        Random negatives.
    positions : ndarray of shape (n_documents,), int64
        Which of these each document is; -1 for none.
    n_documents : int
        How many documents there are to learn from in all.
    multilabel : bool
        Whether any document has several labels.
    class_mask, document_mask : ndarrays of bool, optional
        The classes to fit, the documents to learn from; all when left out.
    n_jobs : int or None
        Number of threads; the weights are the same for any.

    Returns
    -------
    ClassResiduals
        A document's product with the weights plus the bias is 1 or more inside a class, -1 or less
        outside, where that can be had.
    """
    class_mask = np.ones(n_classes, np.bool_) if class_mask is None else class_mask
    is_example = mined.classes >= 0  # far candidates too: a separator knows no shared score
    examples = group_examples(mined, log_odds, is_example, class_mask, document_mask)
    at_least = MIN_NEGATIVES_MULTILABEL if multilabel else MIN_NEGATIVES
    rows_drawn = drawn.residual_vectors
    negatives = RandomNegatives(
        rows_drawn.indptr, rows_drawn.indices, rows_drawn.weights, positions,
        NEGATIVES_PER_LABEL, at_least, n_documents,
    )  # fmt: skip
    n_terms, n_drawn = documents.rows.n_terms, drawn.rows.n_documents
    solver = DualSolver(cost, TOLERANCE, MAX_PASSES, SMALLEST_WEIGHT)

    def prepare(first: int, last: int) -> Callable[[Block, ResidualRows], int]:
        longest = int(np.diff(examples.starts[first : last + 1]).max(initial=0)) + n_drawn
        scratch = SeparatorScratch(
            np.empty(longest), np.empty(longest, np.bool_), np.empty(longest, np.int64),
            np.empty(longest), np.zeros(n_drawn, np.bool_), np.zeros(n_terms),
        )  # fmt: skip
        passes = np.empty(longest, np.int64)
        return lambda block, rows: kernels.fit_class_separators(
            documents.residual_vectors, examples, negatives, solver, block, scratch, passes, rows
        )

    # A class's work: its examples, and the random negatives that it is given.
    n_random = np.minimum(NEGATIVES_PER_LABEL * mined.labels.class_sizes + at_least, n_drawn)
    work = examples.starts + offsets_from_lengths(n_random)
    return collect_rows(prepare, work, n_terms, n_jobs)
