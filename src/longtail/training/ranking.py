"""The ranking of a fitted model: documents in, candidate classes with their scores out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._validation import cap_candidates
from longtail.model.meaning import find_near
from longtail.model.scorer import score_pairs_with_residuals
from longtail.model.state import LongTailState
from longtail.model.weighting import WeightedDocuments
from longtail.retrieval.search import rank_topk, search_segments
from longtail.retrieval.subsets import ClassSubsets
from longtail.sparse import CountMatrix, Floats, Integers, index_dtype


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
    by_meaning = state.needs_embeddings
    n_ranked = n_candidates if by_meaning else min(k, n_candidates)
    is_plain = subsets is None and not by_meaning
    ranked = search_segments(
        documents,
        pruned,
        state.segments_for(counts.n_documents) if is_plain else state.segments,
        n_candidates,
        n_ranked,
        n_jobs,
        subsets=subsets,
        also_whole=also_whole,
        matching=state.pruning.find_matching(pruned, ids),
    )
    if not by_meaning:
        return ranked
    given = state, documents, pruned
    if not also_whole:
        return _rank_by_meaning(*given, *ranked, k, n_jobs, subsets)
    halves = zip(*(np.hsplit(array, 2) for array in ranked), (subsets, None), strict=True)
    both = [
        _rank_by_meaning(*given, classes, scores, k, n_jobs, subset)
        for classes, scores, subset in halves
    ]
    n_ranked = min(classes.shape[1] for classes, _ in both)
    classes, scores = (
        np.hstack([array[:, :n_ranked] for array in arrays]) for arrays in zip(*both, strict=True)
    )
    return classes, scores


def _rank_by_meaning(
    state: LongTailState,
    documents: WeightedDocuments,
    pruned: WeightedDocuments,
    classes: NDArray[Any],
    scores: Floats,
    k: int,
    n_jobs: int | None,
    subsets: ClassSubsets | None,
) -> tuple[Integers, Floats]:
    """Rank candidates, and the classes near each document, by their scores and by meaning."""
    embeddings, tables = find_embeddings(documents.rows), state.tables
    is_known = documents.rows.have_any(state.known_terms)
    near = find_near(tables, embeddings, classes, is_known, subsets, n_jobs)
    if near[0].shape[1]:
        near_ids = np.full(near[0].shape, -1, classes.dtype)
        near_scores = np.full(near_ids.shape, -np.inf)
        ids = np.arange(len(embeddings))
        for (_, class_ids), segment, rows in zip(tables, state.segments, near, strict=True):
            here = rows >= 0
            near_ids[here] = class_ids[rows[here]]
            narrow = rows.astype(index_dtype(len(class_ids)))
            both = score_pairs_with_residuals(
                documents, pruned, ids, narrow, segment.scorer, segment.residuals, n_jobs
            )
            near_scores[here] = both.rescored[here]
        classes = np.concatenate([classes, near_ids], axis=1)
        scores = np.concatenate([scores, near_scores], axis=1)
    scores += score_meaning(state, documents.rows, classes, n_jobs)
    n_found = int(np.count_nonzero(classes >= 0, axis=1).max(initial=1))
    return rank_topk(classes, scores, min(k, n_found), n_jobs)


def find_embeddings(counts: CountMatrix) -> NDArray[np.int16]:
    """Return the embeddings of documents, or say that they are missing."""
    if counts.embeddings is None:
        raise ValueError(
            "this model ranks by embeddings as well: give those of the documents, as in "
            "predict(X, embeddings=E)."
        )
    return counts.embeddings


def score_meaning(
    state: LongTailState, counts: CountMatrix, classes: NDArray[Any], n_jobs: int | None = None
) -> Floats:
    """Return what meaning adds to the scores of documents with the classes of their rows."""
    embeddings, scores = find_embeddings(counts), np.zeros(classes.shape)
    for (meanings, _), rows in zip(state.tables, state.find_rows(classes), strict=True):
        scores += meanings.score(embeddings, rows, state.check.meaning, n_jobs)
    return scores
