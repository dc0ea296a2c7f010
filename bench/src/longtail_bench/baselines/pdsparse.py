"""PD-Sparse: a max-margin classifier, sparse in primal and dual (Yen et al., ICML 2016).

In: weighted rows and class ids. Out: sparse weights of terms for classes. The dual problem has
a variable for each document and class, nearly all of them zero. Each step takes one document, looks
for the class that violates its margin the most, which is cheap because the weights are sparse, and
solves for the document's few active classes exactly (fully corrective block-coordinate
Frank-Wolfe).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from longtail._parallel import parallel_for
from longtail.paper.sampling import draw_seed
from longtail.sparse import Integers, offsets_from_lengths
from longtail_bench._kernels.pdsparse import Active, StepOptions, predict_classes, run_pass
from longtail_bench._kernels.sum_tables import Tables, fill_weights
from longtail_bench._kernels.types import Rows
from longtail_bench.baselines.base import Baseline, Ranking
from longtail_bench.baselines.fastxml import check_at_least, check_positive
from longtail_bench.baselines.postings import Postings

SMALLEST_CHANGE = 1e-4  # of a dual variable, as a share of C, below which a pass was the last


@dataclass
class DualProblem:
    """The dual variables and the sums of documents that follow from them, while they are learned.

    Minimises over W: 1/2 |W|_2^2 + l1 |W|_1 + C sum_i max_c (1[c != y_i] + w_c.x_i - w_y.x_i).
    With v_c = sum_i alpha_ic x_i and w_c = v_c drawn towards zero by l1, the dual to maximise is
    -1/2 |W|_2^2 - sum_i sum_{c != y_i} alpha_ic under sum_c alpha_ic = 0, alpha_ic <= 0 for
    c != y_i and alpha_iy <= C.
    """

    rows: Rows
    n_classes: int
    l1: float
    C: float
    tables: Tables  # a hash table of sums for each term
    active: Active  # active classes of each document, its true class first
    pool_size: int = 0
    active_pool_size: int = 0

    @classmethod
    def start(
        cls, rows: Rows, class_ids: Integers, n_classes: int, l1: float, C: float
    ) -> DualProblem:
        """Return the problem with every dual variable zero."""
        n_documents = len(class_ids)
        tables = Tables(
            starts=np.zeros(rows.n_terms, np.int64),
            bits=np.full(rows.n_terms, -1, np.int8),
            used=np.zeros(rows.n_terms, np.int64),
            keys=np.empty(1024, np.int32),
            sums=np.empty(1024),
        )
        active = Active(
            starts=np.arange(n_documents),
            capacities=np.ones(n_documents, np.int64),
            sizes=np.ones(n_documents, np.int64),
            classes=class_ids.astype(np.int32),
            alphas=np.zeros(n_documents),
        )
        return cls(rows, n_classes, l1, C, tables, active, 0, n_documents)

    def run_pass(
        self,
        order: Integers,
        seed: int,
        *,
        new_classes: int = 1,
        term_share: float = 1.0,
        subset_bits: int = 0,
    ) -> float:
        """Take a step for each document in `order`; returns the largest change of a dual variable.

        Parameters
        ----------
        order : ndarray of document numbers, int64
            The order of the steps.
        seed : int
            Decides the draws of this pass.
        new_classes : int
            How many violating classes a step may add.
        term_share : float
            Share of a document's terms drawn to estimate its products; 1 takes all.
        subset_bits : int
            Look among one of 2^subset_bits parts of the classes, drawn anew for each step.
        """
        options = StepOptions(self.l1, self.C, term_share, new_classes, subset_bits, seed)
        tables, self.pool_size, active, self.active_pool_size, largest = run_pass(
            self.rows,
            order,
            options,
            self.n_classes,
            self.tables,
            self.pool_size,
            self.active,
            self.active_pool_size,
        )
        self.tables, self.active = Tables(*tables), Active(*active)
        return float(largest)

    def dual_variables(self) -> csr_array[Any]:
        """Return alpha, of shape (n_documents, n_classes)."""
        starts, sizes = self.active.starts, self.active.sizes
        indptr = offsets_from_lengths(sizes)
        entries = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], sizes)
        return csr_array(
            (self.active.alphas[entries], self.active.classes[entries], indptr),
            shape=(len(sizes), self.n_classes),
        )

    def weights(self) -> csr_array[Any]:
        """Return W, of shape (n_terms, n_classes)."""
        sizes = np.zeros(self.rows.n_terms + 1, np.int64)
        fill_weights(self.tables, self.l1, sizes, np.empty(0, np.int32), np.empty(0))
        indptr = np.cumsum(sizes)
        classes, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
        fill_weights(self.tables, self.l1, indptr, classes, values)
        weights = csr_array((values, classes, indptr), shape=(self.rows.n_terms, self.n_classes))
        weights.sort_indices()
        return weights

    def predict(self, documents: Integers, n_jobs: int | None) -> Integers:
        """Return the best class of the given documents; -1 where no product is positive."""
        predicted = np.empty(len(documents), np.int64)

        def predict(first: int, last: int) -> None:
            predict_classes(
                self.rows,
                documents[first:last],
                self.tables,
                self.l1,
                self.n_classes,
                predicted[first:last],
            )

        parallel_for(predict, offsets_from_lengths(np.diff(self.rows.indptr)[documents]), n_jobs)
        return predicted


def default_term_share(rows: Rows, n_classes: int, C: float) -> float:
    """Return the share of terms to draw: the authors' rule, about five of each document."""
    n_documents, n_entries = len(rows.indptr) - 1, max(1, len(rows.data))
    rate = min(
        5.0 * rows.n_terms * n_classes / (C * math.log(n_classes) * n_entries),
        n_entries / (5.0 * n_documents),
    )
    return 1.0 / max(1, math.ceil(rate))


def hold_out(class_ids: Integers, share: float, random_state: Any) -> NDArray[np.bool_]:
    """Draw about this share of the documents, always leaving each class one."""
    order = check_random_state(random_state).permutation(len(class_ids))
    _, firsts = np.unique(class_ids[order], return_index=True)
    may_go = np.ones(len(class_ids), np.bool_)
    may_go[firsts] = False
    held = np.zeros(len(class_ids), np.bool_)
    held[order[np.flatnonzero(may_go)[: int(share * len(class_ids))]]] = True
    return held


class PDSparse(Baseline):
    """Multi-class SVM with an l1 and an l2 regulariser, solved through its sparse dual.

    Learning stops when the accuracy on held-out documents has not risen for `patience` passes;
    then the held-out documents join and all are visited `patience` times more. Steps follow one
    another, so that fitting uses one thread; only ranking uses `n_jobs`.

    Parameters
    ----------
    l1 : float, default=0.01
        Weight of the l1 norm, lambda in the paper; 0 is the multi-class SVM of Crammer and Singer.
    C : float, default=1.0
        Weight of each document's loss.
    max_passes : int, default=50
        Most passes over the documents before the held-out ones join.
    patience : int, default=3
        Passes without a higher accuracy on held-out documents before learning stops.
    held_out : float, default=0.1
        Share of the documents held out; 0 runs until nothing changes or for `max_passes`.
    new_classes : int, default=4
        How many violating classes a step may add.
    term_share : float or None, default=None
        Share of a document's terms drawn, by their weight, to find those classes; 1 takes all,
        None the authors' rule, about five terms.
    class_subsets : int, default=1
        A power of two: a step looks among one of so many parts of the classes.
    random_state : int, RandomState instance or None, default=None
        Decides the order of steps, the draws and the held-out documents.
    n_jobs : int or None, default=None
        Number of threads for ranking; the result is the same for any.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    postings_ : Postings
        Weights of the classes, term by term.
    n_passes_ : int
        Passes before the held-out documents joined.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail_bench.baselines.pdsparse import PDSparse
    >>> X = np.repeat(np.eye(3, dtype=int), 4, axis=0)
    >>> y = np.repeat(["bird", "fish", "mammal"], 4)
    >>> PDSparse(random_state=0).fit(X, y).predict(X[::4]).tolist()
    ['bird', 'fish', 'mammal']
    """

    def __init__(
        self,
        l1: float = 0.01,
        C: float = 1.0,
        max_passes: int = 50,
        patience: int = 3,
        held_out: float = 0.1,
        new_classes: int = 4,
        term_share: float | None = None,
        class_subsets: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.l1 = l1
        self.C = C
        self.max_passes = max_passes
        self.patience = patience
        self.held_out = held_out
        self.new_classes = new_classes
        self.term_share = term_share
        self.class_subsets = class_subsets
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit_weighted(self, X: csr_array[Any], class_ids: NDArray[np.int64]) -> None:
        """Run passes until the held-out accuracy stops rising, then let all documents in."""
        self._check_parameters()
        generator = check_random_state(self.random_state)
        rows = Rows.from_matrix(X)
        n_classes = len(self.classes_)
        problem = DualProblem.start(rows, class_ids, n_classes, float(self.l1), float(self.C))
        share = self.term_share or default_term_share(rows, n_classes, float(self.C))
        held = hold_out(class_ids, self.held_out, generator)
        tested, taught = np.flatnonzero(held), np.flatnonzero(~held)

        def run_pass(documents: Integers) -> float:
            return problem.run_pass(
                generator.permutation(documents),
                draw_seed(generator),
                new_classes=min(self.new_classes, n_classes - 1),
                term_share=float(share),
                subset_bits=self.class_subsets.bit_length() - 1,
            )

        best, strikes, self.n_passes_ = -1.0, 0, 0
        while self.n_passes_ < self.max_passes and strikes < self.patience:
            change = run_pass(taught)
            self.n_passes_ += 1
            if change < SMALLEST_CHANGE * self.C:
                break
            if len(tested) > 0:
                reached = float(np.mean(problem.predict(tested, self.n_jobs) == class_ids[tested]))
                strikes = 0 if reached > best else strikes + 1
                best = max(best, reached)
        if len(tested) > 0:
            for _ in range(self.patience):
                run_pass(np.arange(len(class_ids)))
        weights, zeros = problem.weights(), np.zeros(n_classes)
        self.postings_ = Postings(
            weights.indptr.astype(np.int64), weights.indices, weights.data, zeros, zeros
        )

    def _check_parameters(self) -> None:
        """Refuse parameters out of range."""
        for name in ("max_passes", "patience", "new_classes", "class_subsets"):
            check_at_least(name, getattr(self, name), 1)
        check_positive("C", self.C)
        if not 0.0 <= self.l1 < np.inf:
            raise ValueError(f"l1 must be a finite number of at least 0; got {self.l1!r}.")
        if not 0.0 <= self.held_out < 1.0:
            raise ValueError(f"held_out must be at least 0 and below 1; got {self.held_out!r}.")
        if self.term_share is not None and not 0.0 < self.term_share <= 1.0:
            raise ValueError(
                f"term_share must be above 0 and at most 1, or None; got {self.term_share!r}."
            )
        if self.class_subsets & (self.class_subsets - 1):
            raise ValueError(f"class_subsets must be a power of two; got {self.class_subsets!r}.")

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Rank by the products of weights and document."""
        return self.postings_.rank(X, k, self.n_jobs)
