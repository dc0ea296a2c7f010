"""Scorer, index, hard negatives and residuals: the stages that see every document.

A document's hard negatives depend on the document and the classes alone, so they are mined block by
block against mapped files. A class's residual depends on the documents that have it among their
candidates, so residuals are learned by class shard, from the rows of every block that its classes
need.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._labels import LabelSets
from longtail._parallel import release_memory
from longtail._validation import cap_candidates
from longtail.distributed.documents import Block, read_statistics, stack_counts
from longtail.distributed.results import Contents, read_part, read_result
from longtail.distributed.tasks import Run
from longtail.retrieval.index import InvertedIndex, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import rank_topk, search
from longtail.scoring.linear import LinearScorer, build_scorer
from longtail.scoring.weighting import Profile, WeightedDocuments, weight_documents
from longtail.sparse import Floats, Integers, index_dtype, offsets_from_lengths
from longtail.statistics.corpus import Corpus
from longtail.training.config import FitConfig
from longtail.training.negatives import MINING_BLOCK, MinedPairs
from longtail.training.residuals import is_hard, solve_residuals
from longtail.training.scored_classes import ScoredClasses, mined_log_odds
from longtail.training.self_check import SelfCheck
from longtail.training.shared_weights import SharedWeights


def collapse(run: Run, statistics: str, shared: str) -> Contents:
    """Collapse statistics and shared weights into a scorer; count the classes of each term."""
    profile, learned = _read_profile(statistics, shared)
    scorer = build_scorer(profile, learned.feature_weights, run.n_jobs)
    check = read_part(SelfCheck, read_result(shared), "check")
    pruning = QueryPruning.of(profile.statistics, check.postings_per_class)
    return Contents(
        {"posting_budget": pruning.posting_budget},
        {
            "weights": scorer.weights,
            "length_weights": scorer.length_weights,
            "biases": scorer.biases,
            "squares": profile.squares,
            "masses": profile.masses,
            "class_frequencies": pruning.class_frequencies,
        },
    )


def index_shard(
    run: Run, statistics: str, shared: str, scorer: str, bounds: tuple[int, int]
) -> Contents:
    """Build the inverted index of a range of classes."""
    scored = read_scored(statistics, shared, scorer)
    sliced = slice_scorer(scored.scorer, *bounds)
    index = build_index(sliced, scored.profile.statistics.n_terms, run.n_jobs)
    return Contents({"bounds": list(bounds)}).add("index", index)


def mine_block(
    run: Run,
    block: Block,
    statistics: str,
    shared: str,
    scorer: str,
    index: list[str],
    shards: list[int],
    unused: Any,
    config: FitConfig,
) -> Contents:
    """Mine the hard negatives of a block, and say which class shards learn from which rows.

    `unused` names a file of document ids that no class learns from, and the id of the block's first
    document; None for none.
    """
    config = replace(config, n_jobs=run.n_jobs)
    scored, counts = read_scored(statistics, shared, scorer), block.load()
    learned = read_part(SharedWeights, read_result(shared), "shared")
    class_ids = block.load_class_ids()
    idf = scored.profile.corpus.idf
    documents = weight_documents(counts, idf * learned.term_weights, run.n_jobs)
    n_negatives = min(cap_candidates(config.candidates, scored.n_classes), scored.n_classes - 1)
    lists = np.empty((len(class_ids), 1 + n_negatives), index_dtype(scored.n_classes))
    lists[:, 0] = class_ids
    pruning = read_pruning(scorer)
    for start in range(0, len(class_ids), MINING_BLOCK):
        rows = slice(start, start + MINING_BLOCK)
        lists[rows, 1:], _ = search_shards(
            documents,
            scored.scorer,
            index,
            n_negatives,
            pruning,
            run.n_jobs,
            document_ids=np.arange(*rows.indices(len(class_ids))),
            true_classes=class_ids[rows],
        )
    mined = MinedPairs.of_rows(lists, scored.n_classes)
    log_odds = mined_log_odds(documents, mined, scored, config)
    used = np.ones(len(class_ids), np.bool_)
    if unused is not None:
        path, first = unused
        ids = read_result(path).arrays["held_out"] - first
        used[ids[(ids >= 0) & (ids < len(used))]] = False
    hard = is_hard(mined, log_odds).reshape(lists.shape) & used[:, None]
    shard_of = np.searchsorted(np.asarray(shards), lists, side="right") - 1
    rows_of = [
        np.flatnonzero((hard & (shard_of == shard)).any(axis=1)).astype(np.int32)
        for shard in range(len(shards) - 1)
    ]
    return Contents(
        arrays={
            "lists": lists,
            "log_odds": log_odds.reshape(lists.shape),
            "rows": np.concatenate(rows_of),
            "starts": offsets_from_lengths(np.array([len(rows) for rows in rows_of])),
        }
    )


def solve_shard(
    run: Run,
    blocks: list[Block],
    mined: list[str],
    shared: str,
    shards: list[int],
    shard: int,
    config: FitConfig,
) -> Contents:
    """Learn the residuals of the classes of one shard, on the rows of all blocks that they need."""
    first, last = shards[shard], shards[shard + 1]
    counts, lists, log_odds = [], [], []
    for block, path in zip(blocks, mined, strict=True):
        arrays = read_result(path).arrays
        rows = arrays["rows"][arrays["starts"][shard] : arrays["starts"][shard + 1]]
        counts.append(block.load().gather(rows.astype(np.int64)))
        lists.append(arrays["lists"][rows])
        log_odds.append(arrays["log_odds"][rows])
    learned = read_part(SharedWeights, read_result(shared), "shared")
    corpus = read_part(Corpus, read_result(shared), "corpus")
    documents = weight_documents(
        stack_counts(counts), corpus.idf * learned.term_weights, run.n_jobs
    )
    counts.clear()
    release_memory()
    mask = np.zeros(shards[-1], np.bool_)
    mask[first:last] = True
    residuals = solve_residuals(
        documents,
        MinedPairs.of_rows(np.concatenate(lists), shards[-1]),
        np.concatenate(log_odds).ravel(),
        shards[-1],
        config.residual_cost * config.C,
        mask,
        n_jobs=run.n_jobs,
    )
    residuals = replace(
        residuals, indptr=residuals.indptr[first : last + 1], biases=residuals.biases[first:last]
    )
    return Contents().add("residuals", residuals)


def search_shards(
    documents: WeightedDocuments,
    scorer: LinearScorer,
    index: list[str],
    n_candidates: int,
    pruning: QueryPruning,
    n_jobs: int | None,
    *,
    document_ids: Integers | None = None,
    true_classes: Integers | None = None,
) -> tuple[NDArray[Any], Floats]:
    """Return the classes of highest score over all shards of an index; exact.

    Each shard gives its exact best; scores do not depend on the shard, so the best of all are
    among them.
    """
    if document_ids is None:
        document_ids = np.arange(documents.rows.n_documents)
    found: list[NDArray[Any]] = []
    scores: list[Floats] = []
    for path in index:
        file = read_result(path)
        first, last = file.parameters["bounds"]
        label_sets = None
        if true_classes is not None:
            inside = (true_classes >= first) & (true_classes < last)
            label_sets = LabelSets(
                offsets_from_lengths(inside), true_classes[inside] - first, np.arange(last - first)
            )
        classes, values = search(
            documents,
            slice_scorer(scorer, first, last),
            read_part(InvertedIndex, file, "index"),
            n_candidates,
            document_ids=document_ids,
            labels=label_sets,
            pruning=pruning,
            n_jobs=n_jobs,
        )
        if len(index) == 1:
            return classes, values
        found.append(classes.astype(index_dtype(len(scorer.biases))) + first)
        scores.append(values)
    return rank_topk(np.hstack(found), np.hstack(scores), n_candidates, n_jobs)


def slice_scorer(scorer: LinearScorer, first: int, last: int) -> LinearScorer:
    """Return a scorer of a range of classes, without copying its weights."""
    start, end = scorer.indptr[first], scorer.indptr[last]
    return LinearScorer(
        scorer.indptr[first : last + 1] - start,
        scorer.indices[start:end],
        scorer.weights[start:end],
        scorer.length_weights[first:last],
        scorer.biases[first:last],
    )


def read_scored(statistics: str, shared: str, scorer: str) -> ScoredClasses:
    """Map classes with their scorer."""
    profile, learned = _read_profile(statistics, shared)
    arrays = read_result(scorer).arrays
    # Where the cached properties look: they take a pass over all terms of all classes.
    profile.__dict__.update(squares=arrays["squares"], masses=arrays["masses"])
    sums = profile.statistics
    return ScoredClasses(
        profile,
        learned.feature_weights,
        LinearScorer(
            sums.indptr,
            sums.indices,
            arrays["weights"],
            arrays["length_weights"],
            arrays["biases"],
        ),
    )


def read_pruning(scorer: str) -> QueryPruning:
    """Return which terms search."""
    file = read_result(scorer)
    return QueryPruning(file.arrays["class_frequencies"], file.parameters["posting_budget"])


def _read_profile(statistics: str, shared: str) -> tuple[Profile, SharedWeights]:
    """Map statistics with the corpus of all documents and the learned weights."""
    file = read_result(shared)
    learned = read_part(SharedWeights, file, "shared")
    corpus = read_part(Corpus, file, "corpus")
    return Profile.of(read_statistics(statistics), corpus, learned.collection_model), learned
