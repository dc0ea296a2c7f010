"""Documents that go into the delta segment of a `LongTailState`, or leave it.

In: a state and documents. Out: the classes that have changed since the index was built, with their
sums, residuals and scorer. Only classes that the documents change are computed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._validation import look_up, shift_ids
from longtail.retrieval.delta import DeltaSegment
from longtail.scoring.linear import (
    ClassResiduals,
    LinearScorer,
    build_scorer,
)
from longtail.scoring.names import ClassNames
from longtail.scoring.weighting import Profile
from longtail.sparse import (
    CountMatrix,
    Floats,
    Integers,
    copy_with_capacity,
    gather_rows,
    splice_rows,
)
from longtail.statistics.checks import check_total
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.editing import (
    find_classes_with,
    splice_classes,
    with_frequencies,
    without_frequencies,
)
from longtail.training.editing import TaughtSums, sum_compactly
from longtail.training.long_tail import LongTailState
from longtail.training.segments import merged_class_sizes


class _Classes(NamedTuple):
    """What a delta segment holds of each of its classes; labels are sorted."""

    labels: NDArray[Any]
    statistics: ClassStatistics
    residuals: ClassResiduals
    scorer: LinearScorer

    def put_into(self, delta: DeltaSegment) -> _Classes:
        """Return these and the other classes of a segment, which stay as they are."""
        labels = np.union1d(self.labels, delta.classes)
        sources = look_up(delta.classes, labels), look_up(self.labels, labels)
        statistics = splice_classes(delta.statistics, self.statistics, *sources)
        return _Classes(
            labels,
            statistics,
            splice_rows([delta.residuals, self.residuals], *sources),
            splice_rows([delta.scorer, self.scorer], *sources, indices=statistics.indices),
        )

    def gather(self, rows: Integers) -> _Classes:
        """Return some of these."""
        if len(rows) == len(self.labels):
            return self
        return _Classes(
            self.labels[rows],
            self.statistics.gather(rows),
            self.residuals.gather(rows),
            self.scorer.gather(rows),
        )


def change_delta(
    state: LongTailState,
    labels: NDArray[Any],
    counts: CountMatrix,
    y: NDArray[Any],
    direction: int,
    weights: Floats | None = None,
) -> DeltaSegment:
    """Add documents to some classes of the delta segment, or subtract them."""
    before = state.delta
    taught = sum_compactly(counts, y, labels, sublinear=True, weights=weights)
    frequencies, unseen = _change_frequencies(state, taught, direction)
    # What a term counts that the last fit had not seen changes in every class that has it.
    changed = np.union1d(labels, _labels_with_terms(state, unseen))
    sums, residuals, in_main = gather_sums(state, changed)
    change = taught.statistics.gather(look_up(labels, changed))
    sums = sums + change if direction > 0 else sums - change
    n_occurrences = _count_occurrences(state) + direction * taught.n_occurrences
    # The segments are summed up only when they are merged; that must not be refused then.
    check_total(n_occurrences, max(state.statistics.count_bits, sums.count_bits))
    tombstones = np.zeros(len(state.classes), np.bool_)
    if before is None:
        corpus, shares = state.current_corpus, state.profile().collection_model
        smallest = float(shares.min(initial=1.0))
    else:
        tombstones |= before.tombstones
        corpus, shares, smallest = before.corpus, before.collection_model, before.smallest_share
    tombstones[in_main[in_main >= 0]] = True
    if len(unseen):
        corpus = corpus.with_frequencies_at(unseen, frequencies[unseen])
    scorer = build_scorer(Profile(sums, corpus, shares), state.ranking_weights)
    rows = _Classes(changed, sums, residuals, scorer)
    if before is not None:
        rows = rows.put_into(before)
    names = gather_names(state, rows.labels)
    has_documents = rows.statistics.class_sizes > 0
    kept = np.flatnonzero(has_documents | (False if names is None else names.named))
    rows = rows.gather(kept)
    sums = with_frequencies(rows.statistics, frequencies)
    all_classes, main_ids, delta_ids = _merge_labels(state, tombstones, rows.labels)
    name_scorer = late_bonus = None
    if names is not None:
        names, weights = names.gather(kept), state.check.name_weights
        name_scorer = names.as_scorer(sums.class_sizes, weights)
        late_bonus = names.late_bonus(sums.class_sizes, weights)
    return DeltaSegment(
        classes=rows.labels,
        statistics=sums,
        n_occurrences=n_occurrences,
        residuals=rows.residuals,
        corpus=corpus,
        collection_model=shares,
        smallest_share=smallest,
        scorer=rows.scorer,
        tombstones=tombstones,
        all_classes=all_classes,
        main_ids=main_ids,
        delta_ids=delta_ids,
        name_scorer=name_scorer,
        late_bonus=late_bonus,
    )


def gather_names(state: LongTailState, labels: NDArray[Any]) -> ClassNames | None:
    """Return the names of classes; documents change none, so the main segment has them all."""
    if state.names is None:
        return None
    return state.names.gather(look_up(state.classes, labels))


def _count_occurrences(state: LongTailState) -> float:
    """Return the sum of all counts of the model."""
    if state.delta is not None:
        return state.delta.n_occurrences
    return float(state.statistics.class_lengths.sum())


def _change_frequencies(
    state: LongTailState, taught: TaughtSums, direction: int
) -> tuple[Integers, Integers]:
    """Return the document frequencies of all documents, and which terms have another idf by them.

    Those are terms that the last fit had not seen.
    """
    segment = state.statistics if state.delta is None else state.delta.statistics
    terms = taught.terms
    frequencies = copy_with_capacity(segment.document_frequencies)
    if taught.frequencies.dtype.kind == "f":
        frequencies = frequencies.astype(np.float64)  # documents that count as a fraction
    frequencies[terms] += direction * taught.frequencies
    if np.any(frequencies[terms] < 0):
        raise ValueError(
            "cannot subtract documents that were never added. "
            "Give the same documents with the same labels as when they were added."
        )
    # A removed class leaves its document frequencies behind; see `statistics.editing`. They are
    # clipped when documents go: when documents come, no term is in more of them than before.
    if direction < 0:
        n_documents = merged_class_sizes(state).sum().item() - taught.statistics.n_documents
        if np.any(frequencies > n_documents):
            frequencies = np.minimum(frequencies, n_documents)
            terms = np.flatnonzero(frequencies != segment.document_frequencies)
    return frequencies, _unseen_terms(state, terms)


def gather_sums(
    state: LongTailState, labels: NDArray[Any]
) -> tuple[ClassStatistics, ClassResiduals, Integers]:
    """Return sums (without frequencies) and residuals of classes as they are now.

    And their rows in the main segment.
    """
    in_main = look_up(state.classes, labels)
    delta, main = state.delta, without_frequencies(state.statistics)
    if delta is None:
        return main.gather(in_main), state.residuals.gather(in_main), in_main
    in_delta = look_up(delta.classes, labels)
    gone = (in_main >= 0) & delta.tombstones[in_main]
    in_main = np.where(gone, -1, in_main)
    sums = without_frequencies(delta.statistics).gather(in_delta)
    sums = sums + main.gather(in_main)
    residuals = splice_rows([state.residuals, delta.residuals], in_main, in_delta)
    return sums, residuals, in_main


def _unseen_terms(state: LongTailState, terms: Integers) -> Integers:
    """Return the terms that the last fit had not seen: their idf is about to change."""
    fitted = state.corpus.document_frequencies
    late = terms >= len(fitted)
    late[~late] = fitted[terms[~late]] == 0
    return terms[late]


def _labels_with_terms(state: LongTailState, terms: Integers) -> NDArray[Any]:
    """Return the labels of classes that have one of the unseen terms, in either segment."""
    index, delta = state.index, state.delta
    if not len(terms):
        return state.classes[:0]
    if np.any(index.dense_row_ids[terms] >= 0):  # only a class that is stale can have one
        stale = np.flatnonzero(state.stale)
        sums = without_frequencies(state.statistics).gather(stale)
        rows = stale[find_classes_with(sums, terms)]
    else:
        _, entries = gather_rows(index.indptr, terms)
        rows = np.unique(index.classes[entries]).astype(np.int64)
    if delta is None:
        return state.classes[rows]
    in_delta = delta.classes[find_classes_with(delta.statistics, terms)]
    return np.union1d(state.classes[rows[~delta.tombstones[rows]]], in_delta)


def _merge_labels(
    state: LongTailState, tombstones: NDArray[np.bool_], labels: NDArray[Any]
) -> tuple[NDArray[Any], Integers, Integers]:
    """Return all labels, sorted, and the class ids of the main and of the delta classes."""
    main, before = state.classes, state.all_classes
    n_alive = len(main) - int(np.count_nonzero(tombstones))
    class_ids = look_up(before, labels)
    is_new = class_ids < 0
    if n_alive + len(labels) == len(before) + np.count_nonzero(is_new):  # no label goes
        main_ids = np.arange(len(main)) if state.delta is None else state.delta.main_ids
        main_ids = np.where(tombstones, -1, main_ids)
        if not is_new.any():
            return before, main_ids, class_ids
        positions = np.searchsorted(before, labels[is_new])
        class_ids = shift_ids(class_ids, positions)
        class_ids[is_new] = positions + np.arange(len(positions))
        widened = before.astype(np.result_type(before, labels), copy=False)
        all_classes = np.insert(widened, positions, labels[is_new])
        return all_classes, shift_ids(main_ids, positions), class_ids
    alive = main[~tombstones]
    delta_ids = np.searchsorted(alive, labels) + np.arange(len(labels))
    is_delta = np.zeros(len(alive) + len(labels), np.bool_)
    is_delta[delta_ids] = True
    all_classes = np.empty(len(is_delta), np.result_type(alive, labels))
    all_classes[delta_ids], all_classes[~is_delta] = labels, alive
    main_ids = np.full(len(main), -1)
    main_ids[~tombstones] = np.flatnonzero(~is_delta)
    return all_classes, main_ids, delta_ids
