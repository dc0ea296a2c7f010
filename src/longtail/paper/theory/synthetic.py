"""Problems whose distribution is known, for the consistency experiment.

Out comes a distribution of classes, long-tailed or balanced, and of the terms of each class;
documents are short bags of terms drawn from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longtail._validation import check_integer
from longtail.sparse import Floats, Integers

DOCUMENT_LENGTH = 6
N_TERMS = 120
# Part of a class's terms that is its own; the rest is a distribution shared by all classes.
TOPIC_SHARE = 0.6
# A class without documents has no α; a draw that misses one is repeated, at most this often.
MAX_DRAWS = 100


@dataclass(frozen=True)
class SyntheticProblem:
    """A known distribution of documents and classes.

    Attributes
    ----------
    class_probabilities : ndarray of shape (K,), float64
        P(y).
    term_probabilities : ndarray of shape (K, n_terms), float64
        P(term | y); a document is ``document_length`` independent draws.
    document_length : int
        Terms of each document.
    """

    class_probabilities: Floats
    term_probabilities: Floats
    document_length: int

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.class_probabilities)

    def draw(self, n_documents: int, rng: np.random.Generator) -> tuple[sp.csr_array, Integers]:
        """Draw documents from the distribution, every class at least once."""
        for _ in range(MAX_DRAWS):
            sizes = rng.multinomial(n_documents, self.class_probabilities)
            if sizes.min() > 0:
                return self.draw_classes(sizes, rng)
        raise ValueError(
            f"n_documents must be large enough to meet all {self.n_classes} classes; {n_documents} "
            f"documents missed one in {MAX_DRAWS} draws. The rarest class has probability "
            f"{self.class_probabilities.min():.2g}."
        )

    def draw_classes(
        self, class_sizes: npt.ArrayLike, rng: np.random.Generator
    ) -> tuple[sp.csr_array, Integers]:
        """Draw a given number of documents of each class."""
        sizes = np.asarray(class_sizes, dtype=np.int64)
        blocks = [
            sp.csr_array(rng.multinomial(self.document_length, terms, size=n))
            for n, terms in zip(sizes, self.term_probabilities, strict=True)
        ]
        return sp.csr_array(sp.vstack(blocks)), np.repeat(np.arange(len(sizes)), sizes)


def make_problem(
    n_classes: int = 20, exponent: float = 1.0, random_state: int = 0
) -> SyntheticProblem:
    """Build a problem whose k-th class has probability proportional to k^-exponent.

    Parameters
    ----------
    n_classes : int, default 20
        K, at least 2.
    exponent : float, default 1.0
        0 is a balanced problem, 1 Zipf's law.
    random_state : int, default 0
        Seeds the terms of the classes.

    Examples
    --------
    >>> make_problem(4, exponent=0.0).class_probabilities.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    check_integer("n_classes", n_classes, 2)
    if not (np.isfinite(exponent) and exponent >= 0):
        raise ValueError(f"exponent must be a finite number of at least 0; got {exponent!r}.")
    rng = np.random.default_rng(random_state)
    probabilities = np.arange(1.0, n_classes + 1.0) ** -exponent
    zipf = 1.0 / np.arange(1.0, N_TERMS + 1.0)
    topics = rng.dirichlet(np.full(N_TERMS, 0.1), size=n_classes)
    terms = TOPIC_SHARE * topics + (1.0 - TOPIC_SHARE) * zipf / zipf.sum()
    return SyntheticProblem(
        class_probabilities=probabilities / probabilities.sum(),
        term_probabilities=terms / terms.sum(axis=1, keepdims=True),
        document_length=DOCUMENT_LENGTH,
    )
