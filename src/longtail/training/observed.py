"""Numbers that tell what a model said of documents before it was taught them.

In: an `Observed` for each change that taught documents. Out: an `InUse`, two weights that follow
from their sums. Nothing here knows documents or classes; `in_use` finds the numbers out, and lets
the weights take effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from longtail._constants import LARGEST_OBSERVED, MAX_WEIGHT, MIN_WEIGHT, N_OBSERVED, N_SUMS
from longtail.sparse import Floats
from longtail.training.calibration import Calibrator
from longtail.training.outcomes import OUTCOMES_KEPT, TopOutcomes, count_outcomes, expect_what_came

CORRECT, FOUND, MISSED, UNKNOWN = range(4)  # the best candidate; another; none; not in the model
LOG_ODDS, PROBABILITY, OTHERS, RESULT, LENGTH = range(5)  # columns
# Documents of one change that are observed, evenly spread over all: as many as count.
MAX_OBSERVED = 1_000

# Documents that speak for weights of 1, which is how much what the fit learned counted there.
PRIOR_DOCUMENTS = 30.0


@dataclass(frozen=True, eq=False)
class Observed:
    """What was observed of the documents of a change.

    Attributes
    ----------
    documents : ndarray of shape (n_documents, 5), float64
        Log odds of the best candidate, its probability, the sum of those of the others, what became
        of it (`CORRECT`, `FOUND`, `MISSED`, `UNKNOWN`), and the number of known terms.
    sums : ndarray of shape (6,), float64
        Of the documents' losses as quadratic functions of the two weights, w'Aw / 2 - b'w: the
        upper triangle of A, b, and how many documents.
    """

    documents: Floats = field(default_factory=lambda: np.zeros((0, N_OBSERVED)))
    sums: Floats = field(default_factory=lambda: np.zeros(N_SUMS))

    @classmethod
    def join(cls, observed: Sequence[Observed]) -> Observed:
        """Return several as one, in their order."""
        if not observed:
            return cls()
        sums = np.zeros(N_SUMS)
        for seen in observed:
            sums += seen.sums
        return cls(np.concatenate([seen.documents for seen in observed]), sums)

    def is_sound(self) -> bool:
        """Return whether all numbers are what they can be."""
        documents = self.documents
        _, probabilities, others, results, lengths = documents.T
        return bool(
            np.all(np.abs(self.sums) <= LARGEST_OBSERVED)
            and np.all(np.abs(documents) <= LARGEST_OBSERVED)
            and np.all((results >= CORRECT) & (results <= UNKNOWN))
            and np.all((probabilities >= 0.0) & (others >= 0.0) & (lengths >= 0.0))
        )

    def count(self, calibrator: Calibrator) -> Calibrator:
        """Return a calibrator that has seen the outcomes."""
        documents = self.documents
        if not len(documents) or calibrator.marginal:
            return calibrator
        results = documents[:, RESULT]
        n_unknown = int(np.count_nonzero(results == UNKNOWN))
        calibrator = expect_what_came(calibrator, len(documents), n_unknown)
        counted = TopOutcomes(
            documents[:, LOG_ODDS],
            results == CORRECT,
            n_unknown,
            documents[:, LENGTH].astype(np.int64),
            float(documents[:, OTHERS].sum()),
            float(np.count_nonzero(results == FOUND)),
        )
        return count_outcomes(calibrator, counted)


@dataclass(frozen=True, eq=False)
class InUse:
    """What was learned from documents that were taught, and what waits to be.

    Attributes
    ----------
    sums : ndarray of shape (6,), float64
        As `Observed` has them, of all documents learned from.
    weights : ndarray of shape (2,), float64
        What is left of the mixture of features by size, and of residuals with separators.
    outcomes : ndarray of shape (n_waiting, 5), float64
        Documents that wait; see `Observed`.
    added : ndarray of shape (6,), float64
        Their sums.
    """

    sums: Floats = field(default_factory=lambda: np.zeros(N_SUMS))
    weights: Floats = field(default_factory=lambda: np.ones(2))
    outcomes: Floats = field(default_factory=lambda: np.zeros((0, N_OBSERVED)))
    added: Floats = field(default_factory=lambda: np.zeros(N_SUMS))

    @property
    def waiting(self) -> Observed:
        """What waits to be learned from."""
        return Observed(self.outcomes, self.added)

    def wait(self, observed: Sequence[Observed]) -> InUse:
        """Return the same with more that waits; of the outcomes the last ones stay."""
        waiting = Observed.join([self.waiting, *observed])
        return replace(self, outcomes=waiting.documents[-OUTCOMES_KEPT:], added=waiting.sums)

    def learn(self) -> InUse:
        """Return the sums with what has waited, and the weights that follow."""
        sums = self.sums + self.added
        if not sums[-1] > 0.0:
            return InUse(sums, self.weights)
        return InUse(sums, solve(sums))


def solve(sums: Floats) -> Floats:
    """Return the weights under which the losses and the prior are lowest together."""
    first, both, second, b_first, b_second, n = sums.tolist()
    prior = PRIOR_DOCUMENTS / max(n, 1.0)
    tiny = 1e-9 * max(n, 1.0)  # where a part is the same for all candidates it stays as it is
    p, q = prior * first + tiny, prior * second + tiny
    first, second, b_first, b_second = first + p, second + q, b_first + p, b_second + q
    with np.errstate(all="ignore"):
        determinant = np.float64(first * second - both * both)
        weights = np.array(
            [
                (second * b_first - both * b_second) / determinant,
                (first * b_second - both * b_first) / determinant,
            ]
        )
    if not np.isfinite(weights).all():  # sums of a file may be anything
        return np.ones(2)
    clipped: Floats = np.clip(weights, MIN_WEIGHT, MAX_WEIGHT)
    return clipped
