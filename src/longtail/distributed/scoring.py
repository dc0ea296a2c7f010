"""Scorer, index, hard negatives and residuals: the stages that see every document.

A document's hard negatives depend on the document and the classes alone, so they are mined block by
block against mapped files. A class's residual depends on the documents that have it among their
candidates, its separator also on random documents that all classes share, so both are learned by
class shard, from these and the rows of every block that its classes need.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from longtail._parallel import release_memory
from longtail.distributed.documents import (
    Block,
    gather_documents,
    read_statistics,
)
from longtail.distributed.results import Contents, read_part, read_result
from longtail.distributed.tasks import Run
from longtail.retrieval.index import AnyIndex, IndexShards, InvertedIndex, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.scoring.linear import LinearScorer
from longtail.scoring.weighting import (
    Profile,
    WeightedDocuments,
    weight_documents,
    weight_for_residuals,
)
from longtail.sparse import CountMatrix, gather_rows, offsets_from_lengths, stack_rows
from longtail.statistics.corpus import Corpus
from longtail.training.config import FitConfig
from longtail.training.negatives import MinedPairs
from longtail.training.residuals import is_hard, solve_residuals
from longtail.training.scored_classes import ScoredClasses, mine_all, mined_log_odds
from longtail.training.self_check import SelfCheck
from longtail.training.separators import draw_negatives, solve_separators
from longtail.training.shared_weights import SharedWeights


def collapse(run: Run, statistics: str, shared: str) -> Contents:
    """Collapse statistics and shared weights into a scorer; count the classes of each term."""
    learned, corpus, check = read_shared(shared)
    scored = ScoredClasses.of(read_statistics(statistics), corpus, learned, run.n_jobs)
    pruning = QueryPruning.of(scored.profile.statistics, check.postings_per_class)
    return Contents(
        {"posting_budget": pruning.posting_budget},
        {
            "weights": scored.scorer.weights,
            "length_weights": scored.scorer.length_weights,
            "biases": scored.scorer.biases,
            "squares": scored.profile.squares,
            "masses": scored.profile.masses,
            "class_frequencies": pruning.class_frequencies,
        },
    )


def index_shard(
    run: Run, statistics: str, shared: str, scorer: str, bounds: tuple[int, int]
) -> Contents:
    """Build the inverted index of a range of classes."""
    scored = read_scored(statistics, shared, scorer)
    sliced = scored.scorer.slice(slice(*bounds))
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
    separators: bool,
    config: FitConfig,
) -> Contents:
    """Mine the hard negatives of a block, and say which class shards learn from which rows.

    `unused` names a file of document ids that no class learns from, and the id of the block's first
    document; None for none. `separators` says whether classes learn these as well.
    """
    config = replace(config, n_jobs=run.n_jobs)
    scored, labels = read_scored(statistics, shared, scorer), block.load_labels()
    learned, corpus, _ = read_shared(shared)
    documents = weight_documents(block.load(), corpus.idf * learned.term_weights, run.n_jobs)
    mined = mine_all(documents, labels, scored, read_index(index), read_pruning(scorer), config)
    log_odds = mined_log_odds(documents, mined, scored, config)
    used = np.ones(labels.n_documents, np.bool_)
    if unused is not None:
        path, first = unused
        ids = read_result(path).arrays["held_out"] - first
        used[ids[(ids >= 0) & (ids < len(used))]] = False
    document_ids = mined.document_ids
    learns = scored.profile.statistics.class_sizes > 0  # without documents: nothing, from no row
    is_example = mined.classes >= 0 if separators else is_hard(mined, log_odds)
    examples = np.flatnonzero(is_example & used[document_ids] & learns[mined.classes])
    shard_of = np.searchsorted(np.asarray(shards), mined.classes[examples], side="right") - 1
    rows_of = [
        np.unique(document_ids[examples[shard_of == shard]]).astype(np.int32)
        for shard in range(len(shards) - 1)
    ]
    return Contents(
        {"n_negatives": mined.n_negatives},
        {
            "classes": mined.classes,
            "log_odds": log_odds,
            "rows": np.concatenate(rows_of),
            "starts": offsets_from_lengths(np.array([len(rows) for rows in rows_of])),
        },
    )


def solve_shard(
    run: Run,
    blocks: list[Block],
    mined: list[str],
    shared: str,
    shards: list[int],
    shard: int,
    without: str | None,
    separators: bool,
    config: FitConfig,
) -> Contents:
    """Learn the residuals of the classes of one shard, on the rows of all blocks that they need.

    `without` names the file of documents that no class learns from. Where `separators` are asked
    for, these are learned as well, with random negatives from all blocks.
    """
    first, last = shards[shard], shards[shard + 1]
    counts, pairs, log_odds, document_ids, n_before = [], [], [], [], 0
    for block, path in zip(blocks, mined, strict=True):
        file = read_result(path)
        start, end = file.arrays["starts"][shard : shard + 2]
        rows = file.arrays["rows"][start:end].astype(np.int64)
        found = MinedPairs(
            block.load_labels(), file.parameters["n_negatives"], file.arrays["classes"]
        )
        counts.append(block.load().gather(rows))
        pairs.append(found.gather(rows))
        log_odds.append(file.arrays["log_odds"][gather_rows(found.indptr, rows)[1]])
        document_ids.append(rows + n_before)
        n_before += block.n_documents
    learned, corpus, _ = read_shared(shared)

    def weigh(rows: CountMatrix) -> WeightedDocuments:
        return weight_for_residuals(
            rows, corpus.idf, learned.term_weights, config.several, run.n_jobs
        )

    documents = weigh(stack_rows(counts))
    counts.clear()
    release_memory()
    mask = np.zeros(shards[-1], np.bool_)
    mask[first:last] = True
    given = (
        documents,
        MinedPairs(
            stack_rows([found.labels for found in pairs]),
            pairs[0].n_negatives,
            np.concatenate([found.classes for found in pairs]),
        ),
        np.concatenate(log_odds),
        shards[-1],
    )
    residuals = solve_residuals(*given, config.residual_cost * config.C, mask, n_jobs=run.n_jobs)
    contents = Contents().add("residuals", residuals.slice(slice(first, last)))
    if not separators:
        return contents
    held_out = None if without is None else read_result(without).arrays["held_out"]
    drawn = draw_negatives(n_before, config.seed, held_out)
    positions = np.full(n_before, -1)
    positions[drawn] = np.arange(len(drawn))
    found_separators = solve_separators(
        *given,
        config.C,
        weigh(gather_documents(blocks, drawn)[0]),
        positions[np.concatenate(document_ids)],
        n_before - (0 if held_out is None else len(held_out)),
        multilabel=config.several,
        class_mask=mask,
        n_jobs=run.n_jobs,
    )
    return contents.add("separators", found_separators.slice(slice(first, last)))


def read_index(paths: list[str]) -> AnyIndex:
    """Map an index, or its parts, each when it is searched."""
    if len(paths) == 1:
        return _read_shard(paths[0])
    bounds = [read_result(path).parameters["bounds"] for path in paths]
    return IndexShards(
        [*(first for first, _ in bounds), bounds[-1][1]], lambda shard: _read_shard(paths[shard])
    )


def _read_shard(path: str) -> InvertedIndex:
    return read_part(InvertedIndex, read_result(path), "index")


def read_scored(statistics: str, shared: str, scorer: str) -> ScoredClasses:
    """Map classes with their scorer."""
    learned, corpus, _ = read_shared(shared)
    arrays = read_result(scorer).arrays
    # Computing them takes a pass over all terms of all classes.
    known = {name: arrays[name] for name in ("squares", "masses")}
    profile = Profile.of(read_statistics(statistics), corpus, learned.collection_model, known)
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


def read_shared(path: str) -> tuple[SharedWeights, Corpus, SelfCheck]:
    """Map the learned weights, the corpus of all documents and what the self-check has kept."""
    file = read_result(path)
    return (
        read_part(SharedWeights, file, "shared"),
        read_part(Corpus, file, "corpus"),
        read_part(SelfCheck, file, "check"),
    )
