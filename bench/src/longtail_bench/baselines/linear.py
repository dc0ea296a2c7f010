"""The paper's linear SVMs: one against all, and Crammer and Singer's multi-class SVM.

Both through LIBLINEAR as scikit-learn brings it. Weights near zero are dropped, so that what stays
is sparse.
"""

from __future__ import annotations

import os
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, vstack
from sklearn.svm import LinearSVC

from longtail_bench.baselines.base import Baseline, LabelSetBaseline, Ranking
from longtail_bench.baselines.postings import Postings

BLOCK = 64  # classes learned in one call; its dense weights, 512 bytes a term, bound the memory


class OneVsAll(LabelSetBaseline):
    """OVA: for each class an L2-loss linear SVM of its documents against all others.

    Classes are learned in blocks, in several processes; memory is that of the sparse weights and of
    one dense block for each process.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    tol : float, default=0.1
        When LIBLINEAR stops; its own default.
    threshold : float, default=0.01
        Weights below it in absolute value are dropped.
    random_state : int or None, default=None
        Decides the order in which LIBLINEAR visits documents.
    n_jobs : int or None, default=None
        Number of processes. LIBLINEAR's random numbers are shared by all threads of a process, so
        that threads would not be repeatable.

    Examples
    --------
    >>> OneVsAll().fit([[2, 0], [0, 1], [1, 1]], ["a", "b", "b"]).predict([[3, 0]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self,
        C: float = 1.0,
        tol: float = 0.1,
        threshold: float = 0.01,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.tol = tol
        self.threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit_sets(self, X: csr_array[Any], labels: csr_array[Any]) -> None:
        """Learn class after class, where documents have several labels."""
        if np.all(np.diff(labels.indptr) == 1):
            self._fit_blocks(X, labels.indices.astype(np.int64))
            return
        solver = LinearSVC(C=self.C, tol=self.tol, dual=True, random_state=self.random_state)
        columns = csc_array(labels)
        n_classes = labels.shape[1]
        parts = joblib.Parallel(n_jobs=self.n_jobs)(
            joblib.delayed(_learn_columns)(
                solver, X, columns[:, first : first + BLOCK], self.threshold
            )
            for first in range(0, n_classes, BLOCK)
        )
        weights, biases = zip(*parts, strict=True)
        self.postings_ = Postings.from_classes(csr_array(vstack(weights)), np.concatenate(biases))

    def _fit_blocks(self, X: csr_array[Any], class_ids: NDArray[np.int64]) -> None:
        """Learn block after block."""
        n_classes = len(self.classes_)
        solver = LinearSVC(C=self.C, tol=self.tol, dual=True, random_state=self.random_state)
        parts = joblib.Parallel(n_jobs=self.n_jobs)(
            joblib.delayed(_learn_block)(
                solver, X, class_ids, first, min(first + BLOCK, n_classes), self.threshold
            )
            for first in range(0, n_classes, BLOCK)
        )
        weights, biases = zip(*parts, strict=True)
        self.postings_ = Postings.from_classes(csr_array(vstack(weights)), np.concatenate(biases))

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Rank all classes."""
        return self.postings_.rank(X, k, self.n_jobs)


class CrammerSinger(Baseline):
    """M-SVM: all classes in one problem, whose dual LIBLINEAR solves with dense arrays.

    These arrays have a number for each document and class and for each term and class, so that ten
    thousand classes take tens of gigabytes. That is found out before anything is learned.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    tol : float, default=0.1
        When LIBLINEAR stops; its own default.
    threshold : float, default=0.01
        Weights below it in absolute value are dropped.
    max_gigabytes : float or None, default=None
        What the arrays may take; None is the machine's memory.
    random_state : int or None, default=None
        Decides the order in which LIBLINEAR visits documents.
    n_jobs : int or None, default=None
        Number of threads of a prediction; learning has no parallel part.

    Examples
    --------
    >>> CrammerSinger().fit([[2, 0], [0, 1], [1, 1]], ["a", "b", "b"]).predict([[3, 0]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self,
        C: float = 1.0,
        tol: float = 0.1,
        threshold: float = 0.01,
        max_gigabytes: float | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.tol = tol
        self.threshold = threshold
        self.max_gigabytes = max_gigabytes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit_weighted(self, X: csr_array[Any], class_ids: NDArray[np.int64]) -> None:
        """Learn all classes at once, if they fit."""
        self._check_memory(*X.shape)
        solver = LinearSVC(
            C=self.C,
            tol=self.tol,
            multi_class="crammer_singer",
            random_state=self.random_state,
        )
        weights, biases = _learn_block(solver, X, class_ids, 0, len(self.classes_), self.threshold)
        self.postings_ = Postings.from_classes(weights, biases)

    def _check_memory(self, n_documents: int, n_terms: int) -> None:
        """Refuse what cannot fit, with the numbers."""
        n_classes = len(self.classes_)
        # A dual variable and its place for each document and class; weights and their copy.
        needed = n_classes * (12 * n_documents + 16 * n_terms) / 1e9
        limit = self.max_gigabytes
        if limit is None:
            limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
        if needed > limit:
            raise MemoryError(
                f"LIBLINEAR's Crammer-Singer solver needs {needed:.1f} GB for {n_documents:,} "
                f"documents, {n_terms:,} terms and {n_classes:,} classes; {limit:.1f} GB may be "
                "used. Take fewer classes or documents, or OneVsAll."
            )

    def _rank(self, X: csr_array[Any], k: int) -> Ranking:
        """Rank all classes."""
        return self.postings_.rank(X, k, self.n_jobs)


def _learn_block(
    solver: LinearSVC,
    X: csr_array[Any],
    class_ids: NDArray[np.int64],
    first: int,
    last: int,
    threshold: float,
) -> tuple[csr_array[Any], NDArray[np.float64]]:
    """Return sparse weights and constants of the classes `first` to `last - 1`.

    All other classes are one more class, the rest; what LIBLINEAR learns for it is not used.
    """
    n_block_classes = last - first
    inside = (class_ids >= first) & (class_ids < last)
    solver.fit(X, np.where(inside, class_ids - first, n_block_classes))
    weights, biases = solver.coef_, np.atleast_1d(solver.intercept_)
    if len(weights) == 1:  # two classes: one set of weights, for the second of them
        weights, biases = np.vstack((-weights, weights)), np.append(-biases, biases)
    weights, biases = weights[:n_block_classes], biases[:n_block_classes]
    return csr_array(np.where(np.abs(weights) < threshold, 0.0, weights)), biases


def _learn_columns(
    solver: LinearSVC, X: csr_array[Any], labels: csc_array[Any], threshold: float
) -> tuple[csr_array[Any], NDArray[np.float64]]:
    """Return sparse weights and constants of some classes, each against all other documents."""
    weights, biases = [], []
    for column in range(labels.shape[1]):
        inside = np.zeros(X.shape[0], np.int8)
        inside[labels.indices[labels.indptr[column] : labels.indptr[column + 1]]] = 1
        solver.fit(X, inside)
        weights.append(csr_array(np.where(np.abs(solver.coef_) < threshold, 0.0, solver.coef_)))
        biases.append(solver.intercept_)
    return csr_array(vstack(weights)), np.concatenate(biases)
