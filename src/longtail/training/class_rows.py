"""Learning of each class: its residual and its separator, on hard negatives.

In: blocks of documents, and the scored classes. Out: `LearnedRows`. A document's hard negatives
depend on the document and the classes alone, so they are mined block by block. A class learns from
the documents that have it among their candidates, its separator also from random documents that all
classes share; so classes learn shard by shard, from the rows of every block that they need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._labels import LabelSets
from longtail._validation import cap_candidates
from longtail.model.corpus import Corpus
from longtail.model.features import leave_one_out_scores
from longtail.model.scorer import ClassResiduals, score_pairs
from longtail.model.statistics import ClassStatistics
from longtail.model.weighting import WeightedDocuments, weight_for_residuals
from longtail.retrieval.index import AnyIndex
from longtail.retrieval.pruning import QueryPruning
from longtail.sparse import (
    CountMatrix,
    Floats,
    Integers,
    gather_rows,
    index_dtype,
    join_arrays,
    offsets_from_lengths,
    stack_rows,
)
from longtail.training.config import FitConfig
from longtail.training.documents import Documents
from longtail.training.mixture import Mixture
from longtail.training.negatives import MinedPairs, draw_random_negatives, mine_pairs
from longtail.training.residuals import batch_log_odds, is_hard, solve_residuals
from longtail.training.sampling import Draws
from longtail.training.scored_classes import ScoredClasses
from longtail.training.separators import draw_negatives, solve_separators
from longtail.training.shared_weights import SharedWeights


@dataclass(frozen=True, eq=False)
class DocumentWeights:
    """The weights of a block's documents: the fields of `WeightedDocuments` beside the counts."""

    weights: NDArray[Any]
    totals: Floats
    plain_weights: NDArray[Any] | None = None

    def of(self, counts: CountMatrix) -> WeightedDocuments:
        """Put counts and weights together."""
        return WeightedDocuments(counts, self.weights, self.totals, self.plain_weights)


def weigh_block(
    documents: Documents,
    shared: SharedWeights,
    corpus: Corpus,
    config: FitConfig,
    n_jobs: int | None,
) -> DocumentWeights:
    """Weigh a block's documents for the scorer, and for residuals."""
    weighted = weight_for_residuals(
        documents.counts, corpus.idf, shared.term_weights, config.multilabel, n_jobs
    )
    return DocumentWeights(weighted.weights, weighted.totals, weighted.plain_weights)


def stack_weighted(parts: Sequence[WeightedDocuments]) -> WeightedDocuments:
    """Return weighted documents of several blocks, one block after the other."""
    if len(parts) == 1:
        return parts[0]
    plain = [block.plain_weights for block in parts if block.plain_weights is not None]
    return WeightedDocuments(
        stack_rows([block.rows for block in parts]),
        np.concatenate([block.weights for block in parts]),
        np.concatenate([block.totals for block in parts]),
        np.concatenate(plain) if plain else None,
    )


@dataclass(frozen=True, eq=False)
class MinedClasses:
    """The mined pairs of a block without its labels: see `MinedPairs`."""

    n_negatives: int
    classes: NDArray[Any]

    def of(self, labels: LabelSets) -> MinedPairs:
        """Put labels and mined classes together."""
        return MinedPairs(labels, self.n_negatives, self.classes)


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Log odds of the mined pairs of a block, and which documents each shard of classes needs."""

    log_odds: NDArray[np.float32]  # (n_pairs,) float32: of all pairs
    # int32, or None: documents of the block, shard by shard; None where each shard is given all.
    rows: NDArray[np.int32] | None = None
    starts: Integers | None = None  # (n_shards + 1,): where the documents of each shard begin


@dataclass(frozen=True, eq=False)
class LearnedRows:
    """Learned rows of each class: its residual, and its separator where there are any."""

    residuals: ClassResiduals
    separators: ClassResiduals | None = None


def mine_block(
    documents: Documents,
    weights: DocumentWeights,
    start: int,
    without: Draws | None,
    scored: ScoredClasses,
    index: AnyIndex,
    pruning: QueryPruning,
    config: FitConfig,
    n_jobs: int | None,
) -> MinedClasses:
    """Mine the hard negatives of a block, but of held-out documents if told.

    `start` is the id of the first document.
    """
    labels, mask = documents.labels, None
    if without is not None:
        mask = _keep(labels.n_documents, start, without.held_out)
    mined = mine_pairs(
        weights.of(documents.counts),
        labels,
        scored.scorer,
        index,
        pruning,
        cap_candidates(config.n_mined, scored.n_classes),
        n_jobs,
        document_mask=mask,
    )
    if config.negatives == "random":
        mined = mined.with_negatives(draw_random_negatives(labels, mined.n_negatives, config.seed))
    return MinedClasses(mined.n_negatives, mined.classes)


def _keep(n_documents: int, start: int, without: Integers) -> NDArray[np.bool_]:
    """Return which documents of a block are not among some ids."""
    kept = np.ones(n_documents, np.bool_)
    ids = without - start
    kept[ids[(ids >= 0) & (ids < n_documents)]] = False
    return kept


def score_mined(
    documents: Documents,
    weights: DocumentWeights,
    start: int,
    mined: MinedClasses,
    without: Draws | None,
    scored: ScoredClasses,
    shards: list[int] | None,
    config: FitConfig,
    n_jobs: int | None,
    *,
    separators: bool,
) -> ScoredPairs:
    """Score the mined pairs of a block, and find out which shards need which documents.

    Where `shards` is None, each is given all of them.
    """
    pairs, n_documents = mined.of(documents.labels), documents.labels.n_documents
    config = replace(config, n_jobs=n_jobs)
    log_odds = mined_log_odds(weights.of(documents.counts), pairs, scored, config)
    if shards is None or len(shards) == 2:
        return ScoredPairs(log_odds)
    kept = np.ones(n_documents, np.bool_)
    if without is not None:
        kept = _keep(n_documents, start, without.held_out)
    document_ids = pairs.document_ids
    learns = scored.profile.statistics.class_sizes > 0  # without documents: nothing, from no row
    is_example = pairs.classes >= 0 if separators else is_hard(pairs, log_odds)
    examples = np.flatnonzero(is_example & kept[document_ids] & learns[pairs.classes])
    shard_of = np.searchsorted(np.asarray(shards), pairs.classes[examples], side="right") - 1
    rows_of = [
        np.unique(document_ids[examples[shard_of == shard]]).astype(np.int32)
        for shard in range(len(shards) - 1)
    ]
    starts = offsets_from_lengths(np.array([len(rows) for rows in rows_of]))
    return ScoredPairs(log_odds, np.concatenate(rows_of), starts)


def mined_log_odds(
    documents: WeightedDocuments, mined: MinedPairs, scored: ScoredClasses, config: FitConfig
) -> NDArray[np.float32]:
    """Return the score of each mined pair against what it competes with, leaving one out."""

    def score_batch(batch: slice) -> Floats:
        rows, lists = documents.slice(batch), mined.slice(batch)
        of_negatives = score_pairs(rows, lists.negatives, scored.scorer, config.n_jobs)
        class_ids, document_ids = lists.labels.class_ids, lists.labels.document_ids
        if config.leave_one_out:
            of_labels = leave_one_out_scores(
                rows,
                class_ids,
                scored.profile,
                scored.feature_weights,
                config.n_jobs,
                document_ids=document_ids,
                sample_weights=lists.labels.weights,
            )
        else:
            of_labels = score_pairs(
                rows,
                class_ids[:, None].astype(index_dtype(scored.n_classes)),
                scored.scorer,
                config.n_jobs,
                document_ids=document_ids,
            )[:, 0]
        return lists.join(of_labels, of_negatives)

    return batch_log_odds(mined, score_batch, config.n_jobs, config.multilabel)


@dataclass(frozen=True, eq=False)
class Examples:
    """Documents that classes learn from, with their mined pairs."""

    documents: WeightedDocuments  # the documents
    document_ids: Integers  # (n_documents,): their ids among all
    mined: MinedPairs  # their labels and hard negatives
    log_odds: NDArray[np.float32]  # (n_pairs,) float32: of these pairs


def learn_shard(
    blocks: Sequence[Documents],
    weights: Sequence[DocumentWeights],
    mined: Sequence[MinedClasses],
    scores: Sequence[ScoredPairs],
    statistics: ClassStatistics,
    bounds: tuple[int, int],
    shard: int,
    without: Draws | None,
    config: FitConfig,
    n_jobs: int | None,
    *,
    separators: bool,
) -> LearnedRows:
    """Learn the rows of a range of classes, on the documents of all blocks that they need.

    `statistics` say which classes have documents. `without` has the documents that no class learns
    from. Where `separators` are asked for, these are learned as well.
    """
    config = replace(config, n_jobs=n_jobs)
    first, last = bounds
    if not config.residuals:
        return LearnedRows(ClassResiduals.none(last - first))
    examples, n_documents = _gather_examples(blocks, weights, mined, scores, shard)
    held_out = None if without is None else without.held_out
    mask = None
    if bounds != (0, statistics.n_classes):
        mask = np.zeros(statistics.n_classes, np.bool_)
        mask[first:last] = True

    def gather(ids: Integers) -> WeightedDocuments:
        return _gather_weighted(blocks, weights, ids)

    learned = solve_rows(
        examples,
        gather,
        n_documents,
        statistics.class_sizes,
        config,
        separators=separators,
        class_mask=mask,
        without=held_out,
    )
    if mask is None:
        return learned
    found = learned.separators
    return LearnedRows(
        _take_shard(learned.residuals, first, last),
        None if found is None else _take_shard(found, first, last),
    )


def _take_shard(rows: ClassResiduals, first: int, last: int) -> ClassResiduals:
    """Return the rows of a range of classes that alone have any; holds nothing of the others."""
    shard = rows.slice(slice(first, last))
    return replace(shard, biases=shard.biases.copy())


def _gather_examples(
    blocks: Sequence[Documents],
    weights: Sequence[DocumentWeights],
    mined: Sequence[MinedClasses],
    scores: Sequence[ScoredPairs],
    shard: int,
) -> tuple[Examples, int]:
    """Return the documents that a shard needs, and how many documents there are in all."""
    parts: list[Examples] = []
    start = 0
    for i in range(len(blocks)):
        block, scored = blocks[i], scores[i]
        documents, pairs = weights[i].of(block.counts), mined[i].of(block.labels)
        ids, log_odds = np.arange(block.labels.n_documents), scored.log_odds
        if scored.rows is not None and scored.starts is not None:
            ids = scored.rows[scored.starts[shard] : scored.starts[shard + 1]].astype(np.int64)
            log_odds = log_odds[gather_rows(pairs.indptr, ids)[1]]
            documents, pairs = documents.gather(ids), pairs.gather(ids)
        parts.append(Examples(documents, ids + start, pairs, log_odds))
        start += block.labels.n_documents
    if len(parts) == 1:
        return parts[0], start
    mined_pairs = MinedPairs(
        stack_rows([entry.mined.labels for entry in parts]),
        parts[0].mined.n_negatives,
        np.concatenate([entry.mined.classes for entry in parts]),
    )
    joined = Examples(
        stack_weighted([entry.documents for entry in parts]),
        np.concatenate([entry.document_ids for entry in parts]),
        mined_pairs,
        np.concatenate([entry.log_odds for entry in parts]),
    )
    return joined, start


def solve_rows(
    examples: Examples,
    gather: Callable[[Integers], WeightedDocuments],
    n_documents: int,
    class_sizes: Integers,
    config: FitConfig,
    *,
    separators: bool,
    class_mask: NDArray[np.bool_] | None = None,
    without: Integers | None = None,
) -> LearnedRows:
    """Learn the residual of each class, or of some, and its separator where asked for.

    Parameters
    ----------
    examples : Examples
        All documents, or those that have one of the classes among their candidates.
    gather : callable
        Gives weighted documents by their ids among all.
    n_documents : int
        How many documents there are in all.
    class_sizes : ndarray of shape (n_classes,)
        Documents of each class; one without any has nothing to learn from but negatives, and learns
        nothing.
    config : FitConfig
        Hyperparameters.
    separators : bool
        Whether separators are learned.
    class_mask : ndarray of shape (n_classes,), bool, optional
        The classes that learn; all when left out.
    without : ndarray, optional
        Ids of documents that no class learns from.
    """
    mined = examples.mined
    learns = (class_sizes > 0) & (mined.labels.class_sizes > 0)
    if not learns.all():
        class_mask = learns if class_mask is None else class_mask & learns
    document_mask = None
    if without is not None:
        document_mask = _keep(n_documents, 0, without)[examples.document_ids]
    given = examples.documents, mined, examples.log_odds, len(class_sizes)
    residuals = solve_residuals(
        *given, config.residual_cost * config.C, class_mask, document_mask, config.n_jobs
    )
    if not separators:
        return LearnedRows(residuals)
    drawn = draw_negatives(n_documents, config.seed, without)
    positions = np.full(n_documents, -1)
    positions[drawn] = np.arange(len(drawn))
    learned = solve_separators(
        *given,
        config.C,
        gather(drawn),
        positions[examples.document_ids],
        n_documents - (0 if without is None else len(without)),
        multilabel=config.multilabel,
        class_mask=class_mask,
        document_mask=document_mask,
        n_jobs=config.n_jobs,
    )
    return LearnedRows(residuals, learned)


def learn_rows(
    documents: WeightedDocuments,
    mined: MinedPairs,
    scored: ScoredClasses,
    config: FitConfig,
    *,
    separators: bool,
    class_mask: NDArray[np.bool_] | None = None,
) -> LearnedRows:
    """Learn the rows of classes, or of some, on all documents given; for changes of a model."""
    if not config.residuals:
        return LearnedRows(ClassResiduals.none(scored.n_classes))
    n_documents = mined.labels.n_documents
    log_odds = mined_log_odds(documents, mined, scored, config)
    return solve_rows(
        Examples(documents, np.arange(n_documents), mined, log_odds),
        documents.gather,
        n_documents,
        scored.profile.statistics.class_sizes,
        config,
        separators=separators,
        class_mask=class_mask,
    )


def score_learned(
    parts: Sequence[LearnedRows],
    documents: WeightedDocuments,
    candidates: NDArray[Any],
    n_jobs: int | None,
) -> Floats:
    """Score pairs by the learned rows alone, shard by shard.

    Returns
    -------
    ndarray of shape (n_documents, q, 4), float64
        The residual without its bias, the bias, and the same of the separator; all 0 where a
        candidate is -1.
    """
    values = np.zeros((*candidates.shape, 4))
    inputs, first = replace(documents, weights=documents.residual_inputs), 0
    for i in range(len(parts)):
        shard = parts[i]
        last = first + len(shard.residuals.biases)
        here = (candidates >= first) & (candidates < last)
        local = np.where(here, candidates - first, -1).astype(candidates.dtype, copy=False)
        for column, rows in ((0, shard.residuals), (2, shard.separators)):
            if rows is not None:
                biases = rows.biases[local[here]]
                with_bias = score_pairs(inputs, local, rows.as_scorer, n_jobs)[here]
                values[here, column], values[here, column + 1] = with_bias - biases, biases
        first = last
    return values


def mix_rows(
    parts: Iterable[LearnedRows], mixture: Mixture, class_sizes: Integers
) -> ClassResiduals:
    """Put the rows of class shards together as the mixture has them.

    Shard by shard, so that what was learned is never in memory as a whole beside the result, as far
    as nobody else holds a part.
    """
    mixed, first = [], 0
    for rows in parts:
        last = first + len(rows.residuals.biases)
        mixed.append(mixture.scale(rows.residuals, rows.separators, class_sizes[first:last]))
        first = last
        del rows
    if len(mixed) == 1:
        return mixed[0]
    lengths = np.concatenate([np.diff(rows.indptr) for rows in mixed])
    biases = np.concatenate([rows.biases for rows in mixed])
    indices, weights = [rows.indices for rows in mixed], [rows.weights for rows in mixed]
    mixed.clear()
    return ClassResiduals(
        offsets_from_lengths(lengths), join_arrays(indices), join_arrays(weights), biases
    )


def _gather_weighted(
    blocks: Sequence[Documents], weights: Sequence[DocumentWeights], ids: Integers
) -> WeightedDocuments:
    """Return the weighted documents of some ids, in their order."""
    starts = offsets_from_lengths(np.array([block.labels.n_documents for block in blocks]))
    order = np.argsort(ids, kind="stable")
    bounds = np.searchsorted(ids[order], starts)
    parts = [
        weights[i].of(blocks[i].counts).gather(ids[order[first:last]] - starts[i])
        for i, (first, last) in enumerate(pairwise(bounds.tolist()))
        if first < last
    ]
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return stack_weighted(parts).gather(inverse)
