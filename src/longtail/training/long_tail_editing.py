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
from longtail.retrieval.index import build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.scoring.linear import LinearScorer, build_scorer
from longtail.scoring.weighting import Profile, estimate_collection_model
from longtail.sparse import CountMatrix, Floats, Integers, append_constant, splice_rows
from longtail.statistics import editing as statistics_editing
from longtail.statistics.editing import find_classes_with
from longtail.training.delta_editing import change_delta, gather_names
from longtail.training.editing import ClassEdit, edit_documents
from longtail.training.long_tail import LongTailState
from longtail.training.memory import DocumentMemory
from longtail.training.segments import merged_statistics

DELTA_CAPACITY = 256  # classes taught before the index is built anew
# Share of the classes from which on a batch is added to the sums of all. Below it only the classes
# that it changes are, and the others are copied once, when the segments are merged: 1,000 texts
# beside 150 classes taught before, at 29,268 classes, take 1.3 to 1.7 instead of 1.9 to 2.4 CPU
# seconds. Where the two cost the same was not measured.
LARGE_SHARE = 1 / 8


def derive(
    state: LongTailState, n_jobs: int | None = None, scorer_rows: Integers | None = None
) -> LongTailState:
    """Bring everything that follows from the statistics up to date.

    Parameters
    ----------
    state : LongTailState
        In one segment.
    n_jobs : int or None
        Number of threads.
    scorer_rows : ndarray of shape (n_classes,), optional
        The row of the state's scorer, with the idf of its `current_corpus`, that each class has
        had before and that its documents still give; -1 for classes that are other ones now. What
        holds is copied. Everything is computed where this is left out.
    """
    current = state.corpus.with_terms_of(state.statistics.corpus)
    profile = Profile.of(state.statistics, current, state.collection_model)
    if scorer_rows is None:
        scorer = build_scorer(profile, state.ranking_weights, n_jobs)
    else:
        scorer = _update_scorer(state, profile, scorer_rows, n_jobs)
    state = replace(state, current_corpus=current, scorer=scorer, delta=None)
    index = build_index(state.ranking_scorer, state.statistics.n_terms, n_jobs)
    return _keep_scorer(state, replace(state, index=index))


def _update_scorer(
    state: LongTailState, profile: Profile, rows: Integers, n_jobs: int | None
) -> LinearScorer:
    """Return the scorer of a profile, computed for the classes that the state's does not have."""
    before, after = state.current_corpus, profile.corpus
    moved = np.flatnonzero(before.document_frequencies != after.document_frequencies)
    is_changed = rows < 0
    is_changed[find_classes_with(profile.statistics, moved)] = True
    changed = np.flatnonzero(is_changed)
    if not len(changed) and np.array_equal(rows, np.arange(len(state.scorer.biases))):
        return state.scorer
    of_changed = replace(profile, statistics=profile.statistics.gather(changed))
    scorer = build_scorer(of_changed, state.ranking_weights, n_jobs)
    in_changed = np.full(len(rows), -1)
    in_changed[changed] = np.arange(len(changed))
    indices = profile.statistics.indices
    return splice_rows([state.scorer, scorer], rows, in_changed, indices=indices)


def merge_segments(state: LongTailState, n_jobs: int | None = None) -> LongTailState:
    """Return the same model in one segment."""
    if state.delta is None:
        return state
    merged = merge_learned(state)
    return derive(merged, n_jobs, np.arange(len(merged.classes)))


def merge_learned(state: LongTailState) -> LongTailState:
    """Return one segment with its scorer, but the index out of date: `derive` builds it."""
    delta = state.delta
    if delta is None:
        return state
    statistics, sources = merged_statistics(state)
    in_delta = delta.find_in_delta()
    return replace(
        state,
        classes=delta.all_classes,
        statistics=statistics,
        current_corpus=delta.corpus,
        residuals=splice_rows([state.residuals, delta.residuals], sources, in_delta),
        scorer=splice_rows(
            [state.scorer, delta.scorer], sources, in_delta, indices=statistics.indices
        ),
        stale=(sources < 0) | state.stale[sources],
        calibrator=state.calibrator.move_classes(look_up(delta.all_classes, state.classes)),
        names=gather_names(state, delta.all_classes),
        memory=settle_memory(state, delta.all_classes),
        delta=None,
    )


def settle_memory(state: LongTailState, classes: NDArray[Any]) -> DocumentMemory | None:
    """Return the documents that are kept, with what was added and forgotten since."""
    if state.memory is None:
        return None
    return state.memory.move_classes(look_up(classes, state.classes)).settle(classes)


def apply_edit(state: LongTailState, edit: ClassEdit, n_jobs: int | None = None) -> LongTailState:
    """Return a state of one segment with other classes and the same shared weights."""
    return derive(inherit(state, edit), n_jobs, edit.unchanged)


def inherit(state: LongTailState, edit: ClassEdit) -> LongTailState:
    """Return a state of one segment with the scorer and index of the other: see `derive`."""
    return replace(
        state,
        classes=edit.classes,
        statistics=edit.statistics,
        residuals=state.residuals.gather(edit.sources),
        names=None if state.names is None else state.names.gather(edit.sources),
        memory=None
        if state.memory is None
        else state.memory.move_classes(edit.find_targets(len(state.classes))),
        calibrator=state.calibrator.move_classes(edit.find_targets(len(state.classes))),
        stale=edit.changed | ((edit.sources >= 0) & state.stale[edit.sources]),
    )


def change_documents(
    state: LongTailState,
    counts: CountMatrix,
    y: NDArray[Any],
    direction: int,
    n_jobs: int | None = None,
    weights: Floats | None = None,
) -> LongTailState:
    """Add documents (direction 1), or subtract them (-1), as often as their weights say.

    Raises
    ------
    ValueError
        If documents are subtracted that were never added, or none would be left.
    """
    changed = change_sums(state, counts, y, direction, n_jobs, weights)
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
    weights: Floats | None = None,
) -> LongTailState:
    """Do what `change_documents` does, but for the documents that the model keeps."""
    labels = np.unique(y)
    if len(labels) > max(DELTA_CAPACITY, LARGE_SHARE * len(state.classes)):
        state = merge_learned(state)
        named = None if state.names is None else state.names.named
        edit = edit_documents(
            state.classes, state.statistics, counts, y, direction, n_jobs, named, weights
        )
        return apply_edit(state, edit, n_jobs)
    delta = change_delta(state, labels, counts, y, direction, weights)
    n_left = state.statistics.class_sizes[~delta.tombstones].sum().item()
    check_documents_left(n_left + delta.statistics.n_documents)
    index = replace(state.index, tombstones=np.flatnonzero(delta.tombstones))
    changed = _keep_scorer(state, replace(state, delta=delta, index=index))
    return merge_segments(changed, n_jobs) if len(delta.classes) > DELTA_CAPACITY else changed


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
    if before.names is None:
        return after
    return replace(after, known={"ranking_scorer": before.ranking_scorer})


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
