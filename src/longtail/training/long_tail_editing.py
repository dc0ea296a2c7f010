"""Edits of a `LongTailState`: a state in, a state out, nothing changed in place.

Documents that are added or forgotten go into the delta segment while it is small; everything else
merges the segments first and derives scorer and index anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._validation import check_documents_left, look_up
from longtail.retrieval.delta import DeltaSegment
from longtail.retrieval.index import build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.scoring.linear import ClassResiduals, build_scorer
from longtail.scoring.names import ClassNames
from longtail.scoring.weighting import Profile, estimate_collection_model
from longtail.sparse import (
    CountMatrix,
    Integers,
    append_constant,
    copy_with_capacity,
    gather_rows,
)
from longtail.statistics import editing as statistics_editing
from longtail.statistics.checks import check_total
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus
from longtail.statistics.editing import gather_classes, with_frequencies, without_frequencies
from longtail.training.editing import ClassEdit, TaughtSums, edit_documents, sum_compactly
from longtail.training.long_tail import LongTailState
from longtail.training.memory import DocumentMemory
from longtail.training.segments import merged_statistics

DELTA_CAPACITY = 256  # classes taught before the index is built anew


def derive(state: LongTailState, n_jobs: int | None = None) -> LongTailState:
    """Bring everything that follows from the statistics up to date."""
    current = state.corpus.with_terms_of(state.statistics.corpus)
    profile = Profile.of(state.statistics, current, state.collection_model)
    state = replace(
        state,
        current_corpus=current,
        scorer=build_scorer(profile, state.ranking_weights, n_jobs),
        delta=None,
    )
    index = build_index(state.ranking_scorer, state.statistics.n_terms, n_jobs)
    return _keep_scorer(state, replace(state, index=index))


def merge_segments(state: LongTailState, n_jobs: int | None = None) -> LongTailState:
    """Return the same model in one segment."""
    return state if state.delta is None else derive(merge_learned(state), n_jobs)


def merge_learned(state: LongTailState) -> LongTailState:
    """Return one segment with scorer and index out of date: `derive` brings them up to date."""
    if state.delta is None:
        return state
    statistics, sources = merged_statistics(state)
    in_delta = state.delta.find_in_delta()
    residuals = state.residuals.gather_classes(sources).replace_classes(
        state.delta.residuals.gather_classes(in_delta), in_delta >= 0
    )
    return replace(
        state,
        classes=state.delta.all_classes,
        statistics=statistics,
        residuals=residuals,
        stale=(sources < 0) | state.stale[sources],
        names=_gather_names(state, state.delta.all_classes),
        memory=settle_memory(state, state.delta.all_classes),
        delta=None,
    )


def settle_memory(state: LongTailState, classes: NDArray[Any]) -> DocumentMemory | None:
    """Return the documents that are kept, with what was added and forgotten since."""
    if state.memory is None:
        return None
    return state.memory.move_classes(look_up(classes, state.classes)).settle(classes)


def apply_edit(state: LongTailState, edit: ClassEdit, n_jobs: int | None = None) -> LongTailState:
    """Return a state of one segment with other classes and the same shared weights."""
    return derive(inherit(state, edit), n_jobs)


def inherit(state: LongTailState, edit: ClassEdit) -> LongTailState:
    """Return a state of one segment with scorer and index out of date: see `derive`."""
    return replace(
        state,
        classes=edit.classes,
        statistics=edit.statistics,
        residuals=state.residuals.gather_classes(edit.sources),
        names=None if state.names is None else state.names.gather_classes(edit.sources),
        memory=None
        if state.memory is None
        else state.memory.move_classes(edit.find_targets(len(state.classes))),
        stale=edit.changed | ((edit.sources >= 0) & state.stale[edit.sources]),
    )


def change_documents(
    state: LongTailState,
    counts: CountMatrix,
    y: NDArray[Any],
    direction: int,
    n_jobs: int | None = None,
) -> LongTailState:
    """Add documents (direction 1), or subtract them (-1).

    Raises
    ------
    ValueError
        If documents are subtracted that were never added, or none would be left.
    """
    changed = change_sums(state, counts, y, direction, n_jobs)
    changed = _record_documents(changed, counts, y, direction)
    if changed.delta is not None:
        return _keep_scorer(state, changed)
    return replace(changed, memory=settle_memory(changed, changed.classes))


def change_sums(
    state: LongTailState,
    counts: CountMatrix,
    y: NDArray[Any],
    direction: int,
    n_jobs: int | None = None,
) -> LongTailState:
    """Do what `change_documents` does, but for the documents that the model keeps."""
    labels = np.unique(y)
    n_delta = 0 if state.delta is None else len(state.delta.classes)
    if n_delta + len(labels) > DELTA_CAPACITY:
        state = merge_learned(state)
        named = None if state.names is None else state.names.named
        edit = edit_documents(state.classes, state.statistics, counts, y, direction, n_jobs, named)
        return apply_edit(state, edit, n_jobs)
    delta = _change_delta(state, labels, counts, y, direction)
    n_left = int(state.statistics.class_sizes[~delta.tombstones].sum())
    check_documents_left(n_left + delta.statistics.n_documents)
    index = replace(state.index, tombstones=np.flatnonzero(delta.tombstones))
    return _keep_scorer(state, replace(state, delta=delta, index=index))


def _record_documents(
    state: LongTailState, counts: CountMatrix, y: NDArray[Any], direction: int
) -> LongTailState:
    """Let documents come into the memory of a model that has one, or leave it."""
    if state.memory is None:
        return state
    return replace(state, memory=state.memory.record(counts, y, direction))


def grow_terms(state: LongTailState, n_terms: int) -> LongTailState:
    """Add terms that no document has had yet."""
    n_new = n_terms - len(state.term_weights)
    grown = replace(
        state,
        statistics=statistics_editing.grow_terms(state.statistics, n_terms),
        current_corpus=state.current_corpus.grow_terms(n_terms),
        collection_model=append_constant(state.collection_model, n_new),
        term_weights=append_constant(state.term_weights, n_new, 1.0),
        pruning=state.pruning.grow_terms(n_terms),
        index=state.index.grow_terms(n_terms),
        delta=None if state.delta is None else state.delta.grow_terms(n_terms),
    )
    return _keep_scorer(state, grown)


def _keep_scorer(before: LongTailState, after: LongTailState) -> LongTailState:
    """Let a state whose main segment is that of another use its scorer of documents and names."""
    known = vars(before).get("ranking_scorer")
    if before.names is not None and known is not None:
        vars(after)["ranking_scorer"] = known
    return after


def refresh_corpus(state: LongTailState, n_jobs: int | None = None) -> LongTailState:
    """Bring the global quantities up to date: a function of the sums alone, however they came."""
    state = merge_learned(state)
    refreshed = replace(
        state,
        corpus=state.statistics.corpus,
        collection_model=estimate_collection_model(state.statistics),
        pruning=QueryPruning.of(state.statistics, state.check.postings_per_class),
    )
    return derive(refreshed, n_jobs)


def _change_delta(
    state: LongTailState,
    labels: NDArray[Any],
    counts: CountMatrix,
    y: NDArray[Any],
    direction: int,
) -> DeltaSegment:
    """Add documents to some classes of the delta segment, or subtract them."""
    before = state.delta
    taught = sum_compactly(counts, y, labels, sublinear=True)
    unseen = _unseen_terms(state, taught.terms)
    known = labels[:0] if before is None else before.classes
    rows = np.union1d(np.union1d(labels, known), _main_classes_with_terms(state, unseen))
    sums, residuals, in_main = gather_sums(state, rows)
    change = gather_classes(taught.statistics, look_up(labels, rows))
    sums = sums + change if direction > 0 else sums - change
    tombstones = np.zeros(len(state.classes), np.bool_)
    if before is not None:
        tombstones |= before.tombstones
    tombstones[in_main[in_main >= 0]] = True
    n_documents = int(state.statistics.class_sizes[~tombstones].sum()) + sums.n_documents
    n_occurrences = _count_occurrences(state) + direction * taught.n_occurrences
    # The segments are summed up only when they are merged; that must not be refused then.
    check_total(n_occurrences, max(state.statistics.count_bits, sums.count_bits))
    frequencies, corpus = _change_frequencies(state, taught, unseen, direction, n_documents)
    names = _gather_names(state, rows)
    kept = np.flatnonzero((sums.class_sizes > 0) | (False if names is None else names.named))
    rows, sums = rows[kept], with_frequencies(gather_classes(sums, kept), frequencies)
    all_classes, main_ids, delta_ids = _merge_labels(state, tombstones, rows)
    if before is None:
        shares = state.profile().collection_model
        smallest = float(shares.min(initial=1.0))
    else:
        shares, smallest = before.collection_model, before.smallest_share
    name_scorer = late_bonus = None
    if names is not None:
        names, weights = names.gather_classes(kept), state.check.name_weights
        name_scorer = names.as_scorer(sums.class_sizes, weights)
        late_bonus = names.late_bonus(sums.class_sizes, weights)
    return DeltaSegment(
        classes=rows,
        statistics=sums,
        n_occurrences=n_occurrences,
        residuals=residuals.gather_classes(kept),
        corpus=corpus,
        collection_model=shares,
        smallest_share=smallest,
        scorer=build_scorer(Profile(sums, corpus, shares), state.ranking_weights),
        tombstones=tombstones,
        all_classes=all_classes,
        main_ids=main_ids,
        delta_ids=delta_ids,
        name_scorer=name_scorer,
        late_bonus=late_bonus,
    )


def _gather_names(state: LongTailState, labels: NDArray[Any]) -> ClassNames | None:
    """Return the names of classes; documents change none, so the main segment has them all."""
    if state.names is None:
        return None
    return state.names.gather_classes(look_up(state.classes, labels))


def _count_occurrences(state: LongTailState) -> float:
    """Return the sum of all counts of the model."""
    if state.delta is not None:
        return state.delta.n_occurrences
    return float(state.statistics.class_lengths.sum())


def _change_frequencies(
    state: LongTailState, taught: TaughtSums, unseen: Integers, direction: int, n_documents: int
) -> tuple[Integers, Corpus]:
    """Return the document frequencies of all documents, and the corpus that follows from them."""
    delta, terms = state.delta, taught.terms
    segment = state.statistics if delta is None else delta.statistics
    frequencies = copy_with_capacity(segment.document_frequencies)
    frequencies[terms] += direction * taught.frequencies
    if np.any(frequencies[terms] < 0):
        raise ValueError(
            "cannot subtract documents that were never added. "
            "Give the same documents with the same labels as when they were added."
        )
    corpus = state.current_corpus if delta is None else delta.corpus
    # A removed class leaves its document frequencies behind; see `statistics.editing`. They are
    # clipped when documents go: when documents come, no term is in more of them than before.
    if direction < 0 and np.any(frequencies > n_documents):
        frequencies = np.minimum(frequencies, n_documents)
        changed = np.flatnonzero(frequencies != segment.document_frequencies)
        unseen = _unseen_terms(state, changed)
    if not len(unseen):
        return frequencies, corpus
    return frequencies, corpus.with_frequencies_at(unseen, frequencies[unseen])


def gather_sums(
    state: LongTailState, labels: NDArray[Any]
) -> tuple[ClassStatistics, ClassResiduals, Integers]:
    """Return sums (without frequencies) and residuals of classes as they are now.

    And their rows in the main segment.
    """
    in_main = look_up(state.classes, labels)
    delta, main = state.delta, without_frequencies(state.statistics)
    if delta is None:
        return gather_classes(main, in_main), state.residuals.gather_classes(in_main), in_main
    in_delta = look_up(delta.classes, labels)
    gone = (in_main >= 0) & delta.tombstones[in_main]
    in_main = np.where(gone, -1, in_main)
    sums = gather_classes(without_frequencies(delta.statistics), in_delta)
    sums = sums + gather_classes(main, in_main)
    residuals = state.residuals.gather_classes(in_main).replace_classes(
        delta.residuals.gather_classes(in_delta), in_delta >= 0
    )
    return sums, residuals, in_main


def _unseen_terms(state: LongTailState, terms: Integers) -> Integers:
    """Return the terms that the last fit had not seen: their idf is about to change."""
    fitted = state.corpus.document_frequencies
    late = terms >= len(fitted)
    late[~late] = fitted[terms[~late]] == 0
    return terms[late]


def _main_classes_with_terms(state: LongTailState, terms: Integers) -> NDArray[Any]:
    """Return the labels of main classes that have one of the unseen terms, by their postings."""
    index = state.index
    if np.any(index.dense_row_ids[terms] >= 0):  # only a class that is stale can have one
        stale = np.flatnonzero(state.stale)
        sums = gather_classes(without_frequencies(state.statistics), stale)
        owners = np.repeat(stale, np.diff(sums.indptr))
        rows = np.unique(owners[np.isin(sums.indices, terms)])
    else:
        _, entries = gather_rows(index.indptr, terms)
        rows = np.unique(index.classes[entries]).astype(np.int64)
    if state.delta is not None:
        rows = rows[~state.delta.tombstones[rows]]
    return state.classes[rows]


def _merge_labels(
    state: LongTailState, tombstones: NDArray[np.bool_], labels: NDArray[Any]
) -> tuple[NDArray[Any], Integers, Integers]:
    """Return all labels, sorted, and the class ids of the main and of the delta classes."""
    main, before = state.classes, state.all_classes
    n_alive = len(main) - int(np.count_nonzero(tombstones))
    class_ids = look_up(before, labels)
    if n_alive + len(labels) == len(before) and np.all(class_ids >= 0):  # no label comes or goes
        main_ids = np.arange(len(main)) if state.delta is None else state.delta.main_ids
        return before, np.where(tombstones, -1, main_ids), class_ids
    alive = main[~tombstones]
    delta_ids = np.searchsorted(alive, labels) + np.arange(len(labels))
    is_delta = np.zeros(len(alive) + len(labels), np.bool_)
    is_delta[delta_ids] = True
    all_classes = np.empty(len(is_delta), np.result_type(alive, labels))
    all_classes[delta_ids], all_classes[~is_delta] = labels, alive
    main_ids = np.full(len(main), -1)
    main_ids[~tombstones] = np.flatnonzero(~is_delta)
    return all_classes, main_ids, delta_ids
