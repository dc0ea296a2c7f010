"""Top-k search: the q classes of highest score for a document, exactly.

In: a linear scorer (for the paper: the cosine with each class's centroid) and its inverted index.
Out: the candidates of each document (Algorithm 2 of the paper). No array of documents x classes is
ever built: one row of accumulators serves each block of documents.

A model that was edited is searched in two segments: the classes as they were indexed, and those
that changed since, with an index of their own. A class has the same score in either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._caching import cached_property
from longtail._kernels import ranking
from longtail._kernels import search as kernels
from longtail._kernels.types import (
    Block,
    PairScores,
    RankScratch,
    SearchQueries,
    SearchScratch,
    Shortlist,
    TopK,
)
from longtail._labels import LabelSets
from longtail._parallel import parallel_for, uniform_work
from longtail.model.scorer import LinearScorer, score_pairs, score_pairs_with_residuals
from longtail.model.weighting import WeightedDocuments
from longtail.retrieval.index import AnyIndex, IndexShards, InvertedIndex
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.subsets import ClassSubsets
from longtail.sparse import Floats, Integers, gather_rows, index_dtype

BATCH_DOCUMENTS = 32_768  # enough for a class to have many of them when the shortlists are scored

BATCH_ENTRIES = 1 << 21  # of the shortlists of a batch: 16 MB of scores

# Given document ids and their shortlists of each index, returns the best with their scores.
Rank = Callable[[Integers, Sequence[NDArray[Any]]], tuple[NDArray[Any], Floats]]


@dataclass(frozen=True, eq=False)
class Segment:
    """Classes that have a scorer of their own."""

    # Of these classes; the length weights of the residuals are 0.
    scorer: LinearScorer
    residuals: LinearScorer
    # Of the scorer; its tombstones are in another segment, or gone. None: every class that is there
    # is scored.
    index: InvertedIndex | None
    # (n_segment,): id of each class among the classes of all segments; None where there is one
    # segment.
    class_ids: Integers | None = None

    @cached_property
    def rows_there(self) -> NDArray[Any]:
        """The classes of a segment without an index, as a shortlist."""
        assert self.class_ids is not None
        rows = np.flatnonzero(self.class_ids >= 0)
        return rows.astype(index_dtype(len(self.class_ids)))

    @cached_property
    def _ids_and_none(self) -> NDArray[Any] | None:
        """The class ids, and -1 behind them, where -1 finds it; of the type of shortlists."""
        if self.class_ids is None:
            return None
        return np.append(self.class_ids, -1).astype(index_dtype(len(self.class_ids)))

    def to_class_ids(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the ids among all classes of rows of this segment; -1 stays -1."""
        ids = self._ids_and_none
        return rows if ids is None else ids[rows]

    def find_subsets(self, subsets: ClassSubsets) -> ClassSubsets:
        """Return subsets of all classes in the rows of this segment."""
        if self.class_ids is None:
            return subsets
        rows, in_segment = np.full(subsets.n_classes, -1), np.flatnonzero(self.class_ids >= 0)
        rows[self.class_ids[in_segment]] = in_segment
        return subsets.to_segment(rows)


def search(
    documents: WeightedDocuments,
    scorer: LinearScorer,
    index: AnyIndex,
    n_candidates: int,
    *,
    document_ids: Integers | None = None,
    labels: LabelSets | None = None,
    subsets: ClassSubsets | None = None,
    pruning: QueryPruning | None = None,
    n_jobs: int | None = None,
) -> tuple[Integers, Floats]:
    """Return the q classes of highest score for each document, best first; exact.

    Parameters
    ----------
    documents : WeightedDocuments
        All documents; no weight is negative.
    index : InvertedIndex or IndexShards
        Of the scorer.
    n_candidates : int
        q, at most the number of classes.
    document_ids : ndarray of shape (M,), optional
        Which documents; all when left out.
    labels : LabelSets, optional
        The classes to pass over for each of the M documents.
    subsets : ClassSubsets, optional
        The classes that may be found for each of the M documents; not with `IndexShards`.
    pruning : QueryPruning, optional
        Score a document by its rarest terms alone; by all when left out.

    Returns
    -------
    classes : ndarray of shape (M, q), int32 or int64
        Class ids; ties go to the lower one. -1 where there are fewer classes.
    scores : ndarray of shape (M, q), float64
        Their scores; -inf where there is no class.
    """
    if document_ids is None:
        document_ids = np.arange(documents.rows.n_documents)
    if not document_ids.size * n_candidates:
        shape = len(document_ids), n_candidates
        return np.empty(shape, index_dtype(len(scorer.biases))), np.empty(shape)
    matching = None
    if pruning is not None:
        documents = pruning.prune(documents, document_ids, n_jobs)
        if subsets is None:
            matching = pruning.find_matching(documents, document_ids)
    given = documents, scorer, index, n_candidates
    found = _search_pruned(*given, document_ids, labels, subsets, matching, n_jobs)
    if matching is None:
        return found
    lack = np.flatnonzero(matching & (found[0][:, -1] < 0))
    if len(lack):
        of_labels = None if labels is None else labels.gather(lack)
        exact = _search_pruned(*given, document_ids[lack], of_labels, None, None, n_jobs)
        found[0][lack], found[1][lack] = exact
    return found


def _search_pruned(
    documents: WeightedDocuments,
    scorer: LinearScorer,
    index: AnyIndex,
    n_candidates: int,
    document_ids: Integers,
    labels: LabelSets | None,
    subsets: ClassSubsets | None,
    matching: NDArray[np.bool_] | None,
    n_jobs: int | None,
) -> tuple[Integers, Floats]:
    """Search by all terms that weigh something; the index part by part, where it has parts.

    Each part gives its exact best, and scores do not depend on it, so the best are among them.
    """
    if not isinstance(index, IndexShards):

        def rank(ids: Integers, shortlists: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], Floats]:
            [shortlist] = shortlists
            scores = score_pairs(documents, shortlist, scorer, n_jobs, document_ids=ids)
            return rank_topk(shortlist, scores, n_candidates, n_jobs)

        queries = make_queries(document_ids, labels, subsets, matching)
        return search_batches(documents, [index], [queries], n_candidates, rank, n_jobs)
    found: list[NDArray[Any]] = []
    scores: list[Floats] = []
    for shard, (first, last) in enumerate(pairwise(index.bounds)):
        of_part = None if labels is None else labels.gather_classes(np.arange(first, last))
        of_scorer = scorer.slice(slice(first, last))
        given = document_ids, of_part, subsets, matching, n_jobs
        classes, values = _search_pruned(
            documents, of_scorer, index.open(shard), n_candidates, *given
        )
        found.append(np.where(classes < 0, -1, classes.astype(np.int64) + first))
        scores.append(values)
    stacked = np.hstack(found).astype(index_dtype(len(scorer.biases)))
    return rank_topk(stacked, np.hstack(scores), n_candidates, n_jobs)


def search_segments(
    documents: WeightedDocuments,
    pruned: WeightedDocuments,
    segments: Sequence[Segment],
    n_candidates: int,
    k: int,
    n_jobs: int | None = None,
    *,
    subsets: ClassSubsets | None = None,
    also_whole: bool = False,
    matching: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[Any], Floats]:
    """Return the best of each document's candidates over all segments, best first; exact.

    Parameters
    ----------
    pruned : WeightedDocuments
        The same rows as `documents`, with weights of 0 for the terms that do not search.
    segments : sequence of Segment
        All classes; those without an index come last, and not with `subsets` or `matching`.
    n_candidates : int
        q, the classes of highest score by the pruned query.
    k : int
        How many of these, by score and residual; at most `n_candidates`.
    subsets : ClassSubsets, optional
        The classes that may be found for each document.
    also_whole : bool, default=False
        Whether the k best over all classes are wanted as well, in the columns after the first k.
    matching : ndarray of shape (n_documents,), bool, optional
        For which documents only classes with a term of the pruned query are found, where these are
        enough; with subsets every class of the subset is.

    Returns
    -------
    classes, scores
        As from `search`; scores by all terms plus residual.
    """
    indexes = [segment.index for segment in segments if segment.index is not None]
    of_others = [segment.rows_there for segment in segments[len(indexes) :]]

    def rank(ids: Integers, shortlists: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], Floats]:
        found = []
        others = [np.tile(rows, (len(ids), 1)) for rows in of_others]
        for segment, rows in zip(segments, [*shortlists, *others], strict=True):
            scores = score_pairs_with_residuals(
                documents, pruned, ids, rows, segment.scorer, segment.residuals, n_jobs
            )
            found.append((segment.to_class_ids(rows), *scores))
        if not also_whole:
            return best(found)
        # Each segment's shortlist of the subset is followed by that of all classes.
        halves = zip(*(_split_columns(arrays) for arrays in found), strict=True)
        classes, scores = zip(*(best(half) for half in halves), strict=True)
        return np.hstack(classes), np.hstack(scores)

    def best(found: Sequence[Sequence[NDArray[Any]]]) -> tuple[NDArray[Any], Floats]:
        classes, *both = (
            arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)
            for arrays in zip(*found, strict=True)
        )
        return rerank(classes, PairScores(*both), n_candidates, k, n_jobs)

    ids = np.arange(documents.rows.n_documents)
    if matching is not None and subsets is None:
        n_matching = np.zeros(len(ids), np.int64)

        def rank_matching(
            ids: Integers, shortlists: Sequence[NDArray[Any]]
        ) -> tuple[NDArray[Any], Floats]:
            n_matching[ids] = sum(np.count_nonzero(rows >= 0, axis=1) for rows in shortlists)
            return rank(ids, shortlists)

        queries = [make_queries(ids, matching=matching)] * len(segments)
        found = search_batches(pruned, indexes, queries, n_candidates, rank_matching, n_jobs)
        lack = np.flatnonzero(matching & (n_matching < n_candidates))
        if len(lack):
            queries = [make_queries(lack)] * len(segments)
            exact = search_batches(pruned, indexes, queries, n_candidates, rank, n_jobs)
            found[0][lack], found[1][lack] = exact
        return found
    queries = [
        make_queries(ids, subsets=None if subsets is None else segment.find_subsets(subsets))
        for segment in segments[: len(indexes)]
    ]
    return search_batches(
        pruned, indexes, queries, n_candidates, rank, n_jobs, also_whole=also_whole
    )


def _split_columns(
    arrays: Sequence[NDArray[Any]],
) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """Return the first and the second half of the columns of each array."""
    half = arrays[0].shape[1] // 2
    first = [np.ascontiguousarray(values[:, :half]) for values in arrays]
    return first, [np.ascontiguousarray(values[:, half:]) for values in arrays]


def search_batches(
    documents: WeightedDocuments,
    indexes: Sequence[InvertedIndex],
    queries: Sequence[SearchQueries],
    wanted: int,
    rank: Rank,
    n_jobs: int | None,
    *,
    also_whole: bool = False,
    growth: int = 1,
) -> tuple[NDArray[Any], Floats]:
    """List what may be among the `wanted` highest of each index, and let `rank` decide.

    The queries of the indexes differ in the ids of their classes alone. Where ties and near ties
    are more than the capacity of a shortlist, search again with a larger one: `growth` times the
    usual. With `also_whole` a shortlist of all classes follows that of each document's subset.
    """
    # A second search is for few documents: a quarter of the scratch is enough for it.
    n_entries = BATCH_ENTRIES if growth == 1 else BATCH_ENTRIES // 4
    capacities = [min(growth * (2 * wanted + 12), len(index.biases)) for index in indexes]
    batch_size = max(1, min(BATCH_DOCUMENTS, n_entries // sum(capacities)))
    document_ids = queries[0].document_ids
    found = []
    for start in range(0, len(document_ids), batch_size):
        batch = [_slice_queries(asked, start, start + batch_size) for asked in queries]
        ids = document_ids[start : start + batch_size]
        shortlists = [
            _shortlist(documents, index, asked, wanted, capacity, n_jobs, also_whole=also_whole)
            for index, asked, capacity in zip(indexes, batch, capacities, strict=True)
        ]
        rows = [shortlist.classes for shortlist in shortlists]
        sizes = [shortlist.sizes for shortlist in shortlists]
        if all(n.max() <= c for n, c in zip(sizes, capacities, strict=True)):
            found.append(rank(ids, rows))
            continue
        fits = np.all([n <= c for n, c in zip(sizes, capacities, strict=True)], axis=0)
        fitting = rank(ids[fits], [classes[fits] for classes in rows])
        others = search_batches(
            documents,
            indexes,
            [_gather_queries(asked, np.flatnonzero(~fits)) for asked in batch],
            wanted,
            rank,
            n_jobs,
            also_whole=also_whole,
            growth=8 * growth,
        )
        found.append((_merge(fits, fitting[0], others[0]), _merge(fits, fitting[1], others[1])))
    if len(found) == 1:
        return found[0]
    classes, scores = zip(*found, strict=True)
    return np.concatenate(classes), np.concatenate(scores)


def make_queries(
    document_ids: Integers,
    labels: LabelSets | None = None,
    subsets: ClassSubsets | None = None,
    matching: NDArray[np.bool_] | None = None,
) -> SearchQueries:
    """Return queries that pass over the label sets of their documents, or over nothing.

    With `subsets`, the classes of each document's subset alone are found; where `matching`, classes
    that have one of its terms.
    """
    nothing = np.zeros(0, np.int64)
    matching_only = np.zeros(0, np.bool_) if matching is None else matching
    if labels is None:
        passed_over = np.zeros(len(document_ids) + 1, np.int64), nothing
    else:
        passed_over = labels.indptr, labels.class_ids
    if subsets is None:
        everything = np.full(len(document_ids), -1), np.zeros(1, np.int64), nothing
        no_subsets = *everything, np.zeros(0, np.bool_)
        return SearchQueries(document_ids, *passed_over, *no_subsets, matching_only)
    given = subsets.subset_ids, subsets.indptr, subsets.class_ids, subsets.are_allowed
    return SearchQueries(document_ids, *passed_over, *given, matching_only)


def _slice_queries(queries: SearchQueries, first: int, last: int) -> SearchQueries:
    """Return queries that follow each other; their offsets still count from the first of all."""
    last = min(last, len(queries.document_ids))
    return queries._replace(
        document_ids=queries.document_ids[first:last],
        label_indptr=queries.label_indptr[first : last + 1],
        subset_ids=queries.subset_ids[first:last],
        matching_only=queries.matching_only[first:last],
    )


def _gather_queries(queries: SearchQueries, rows: Integers) -> SearchQueries:
    """Return some queries, in the order given."""
    indptr, entries = gather_rows(queries.label_indptr, rows)
    return queries._replace(
        document_ids=queries.document_ids[rows],
        label_indptr=indptr,
        label_ids=queries.label_ids[entries],
        subset_ids=queries.subset_ids[rows],
        matching_only=queries.matching_only[rows] if len(queries.matching_only) else rows[:0] > 0,
    )


def _merge(first: NDArray[np.bool_], rows: NDArray[Any], other_rows: NDArray[Any]) -> NDArray[Any]:
    """Put rows together, from `rows` where `first` is true."""
    merged = np.empty((len(first), rows.shape[1]), rows.dtype)
    merged[first], merged[~first] = rows, other_rows
    return merged


def _shortlist(
    documents: WeightedDocuments,
    index: InvertedIndex,
    queries: SearchQueries,
    wanted: int,
    capacity: int,
    n_jobs: int | None,
    *,
    also_whole: bool = False,
) -> Shortlist:
    """Return the classes that may be among the highest, -1 where there are fewer, and how many.

    With `also_whole` those of all classes follow those of the subset; the larger count is given.
    """
    n_queries, n_classes = len(queries.document_ids), len(index.biases)

    def empty(n_rows: int) -> Shortlist:
        classes = np.full((n_rows, capacity), -1, index_dtype(n_classes))
        return Shortlist(classes, np.zeros(n_rows, np.int64))

    shortlist, whole = empty(n_queries), empty(n_queries if also_whole else 0)
    if len(queries.matching_only):
        parallel_for(
            lambda first, last: kernels.shortlist_matching(
                documents.vectors,
                queries,
                index.arrays,
                wanted,
                Block(first, last),
                _make_clear_scratch(n_classes, documents.rows.most_terms),
                shortlist,
            ),
            uniform_work(n_queries),
            n_jobs,
        )
        return shortlist
    parallel_for(
        lambda first, last: kernels.shortlist_classes(
            documents.vectors,
            queries,
            index.arrays,
            wanted,
            Block(first, last),
            make_scratch(n_classes, documents.rows.most_terms),
            shortlist,
            whole,
        ),
        uniform_work(n_queries),
        n_jobs,
    )
    if not also_whole:
        return shortlist
    return Shortlist(
        np.hstack([shortlist.classes, whole.classes]), np.maximum(shortlist.sizes, whole.sizes)
    )


def make_scratch(n_classes: int, most_terms: int) -> SearchScratch:
    """Return what the search writes to; what is never written to takes no memory."""
    n_chunks, n_terms = -(-n_classes // kernels.CHUNK), most_terms + 4
    return SearchScratch(
        accumulators=np.empty(n_classes, np.uint16),
        maxima=np.empty(n_chunks, np.uint16),
        keys=np.empty(n_classes, np.uint16),
        survivors=np.empty(n_classes, np.int64),
        row_starts=np.empty(n_terms, np.int64),
        negated_levels=np.empty(n_terms),
        factors=np.empty(n_terms, np.uint16),
        shifts=np.empty(n_terms, np.uint16),
    )


def _make_clear_scratch(n_classes: int, most_terms: int) -> SearchScratch:
    """Return the same with accumulators of 0: no class matches."""
    scratch = make_scratch(n_classes, most_terms)
    return scratch._replace(accumulators=np.zeros(n_classes, np.uint16))


def rank_topk(
    classes: NDArray[Any], scores: Floats, k: int, n_jobs: int | None = None
) -> tuple[NDArray[Any], Floats]:
    """Return the k best classes of each row with their scores, best first.

    -1 is no class; ties go to the lower class id.
    """
    top = TopK(np.empty((len(classes), k), classes.dtype), np.empty((len(classes), k)))
    parallel_for(
        lambda first, last: ranking.rank_topk(classes, scores, Block(first, last), top),
        uniform_work(len(classes)),
        n_jobs,
    )
    return top.classes, top.scores


def rerank(
    classes: NDArray[Any], scores: PairScores, n_candidates: int, k: int, n_jobs: int | None
) -> tuple[NDArray[Any], Floats]:
    """Return the k best by rescored score among the candidates, the best by score."""
    top = TopK(np.empty((len(classes), k), classes.dtype), np.empty((len(classes), k)))
    parallel_for(
        lambda first, last: ranking.rerank(
            classes,
            scores,
            Block(first, last),
            RankScratch(np.empty(n_candidates, np.int64), np.empty(n_candidates)),
            top,
        ),
        uniform_work(len(classes)),
        n_jobs,
    )
    return top.classes, top.scores
