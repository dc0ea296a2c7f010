"""The ranking of a fitted model: documents in, candidate classes with their scores out."""

from __future__ import annotations

import numpy as np

from longtail._validation import cap_candidates
from longtail.model.state import LongTailState
from longtail.retrieval.search import search_segments
from longtail.retrieval.subsets import ClassSubsets
from longtail.sparse import CountMatrix, Floats, Integers


def rank_documents(
    state: LongTailState,
    counts: CountMatrix,
    candidates: int,
    k: int,
    n_jobs: int | None = None,
    subsets: ClassSubsets | None = None,
    *,
    also_whole: bool = False,
) -> tuple[Integers, Floats]:
    """Return the best classes of each document, best first.

    Parameters
    ----------
    state : LongTailState
        The model.
    counts : CountMatrix
        The documents.
    candidates : int
        Classes among which the residuals decide, as the estimator has it.
    k : int
        How many of these, at most.
    n_jobs : int or None
        Number of threads.
    subsets : ClassSubsets, optional
        The classes that may be found for each document.
    also_whole : bool, default=False
        Whether the best over all classes are wanted as well, in as many columns more.

    Returns
    -------
    class_ids : ndarray of shape (n_documents, k)
        Among all classes of the state; -1 where a subset has fewer.
    scores : ndarray of shape (n_documents, k), float64
        Their scores; -inf where there is no class.
    """
    n_candidates = cap_candidates(state.candidate_factor * candidates, len(state.all_classes))
    documents = state.weigh(counts, n_jobs)
    ids = np.arange(counts.n_documents)
    pruned = state.pruning.prune(documents, ids, n_jobs)
    k = min(k, n_candidates)
    return search_segments(
        documents,
        pruned,
        state.segments,
        n_candidates,
        k,
        n_jobs,
        subsets=subsets,
        also_whole=also_whole,
        touching=state.pruning.find_touching(pruned, ids),
    )
