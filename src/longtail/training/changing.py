"""What changes do to a `LongTailState`: a state in, a state out, nothing changed in place.

Documents and edits of classes go into the overlay; base and overlay are put together when the model
is saved, and when `refine` brings up to date what all classes share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.model import overlay as overlays
from longtail.model import parents
from longtail.model.class_tables import Rows
from longtail.model.corpus import Corpus
from longtail.model.entry import Changes, Entry
from longtail.model.names import ClassNames
from longtail.model.overlay import Overlay
from longtail.model.scorer import ClassResiduals, LinearScorer, build_scorer
from longtail.model.state import LongTailState
from longtail.model.statistics import ClassStatistics, differ
from longtail.model.weighting import Profile, estimate_collection_model
from longtail.retrieval.index import build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.sparse import Integers, append_constant, splice_rows, stack_rows
from longtail.training.outcomes import Calibrations

# What follows from the base alone, and stays whatever is changed.
_OF_BASE = (
    "ranking_scorer",
    "ranking_residuals",
    "name_scorer",
    "current_corpus",
    "shares",
    "smallest_share",
    "meanings",
)


def take_in(state: LongTailState, changes: Changes, n_jobs: int | None = None) -> LongTailState:
    """Return the state after changes.

    Raises
    ------
    RefusedError
        If sums or labels forbid them.
    """
    if changes.n_new_terms:
        state = grow_terms(state, len(state.term_weights) + changes.n_new_terms)
    overlay = overlays.change(
        overlays.overlay_of(state),
        changes,
        lambda after, ids, sums: _make_rows(state, after, ids, sums, n_jobs),
    )
    memory = None if state.memory is None else state.memory.take_in(changes)
    after = replace(
        _recalibrate(state, changes),
        overlay=overlay,
        memory=memory,
        pending=_take_pending(state, changes),
    )
    return _edit_parents(state, after, changes)


def _make_rows(
    state: LongTailState,
    overlay: Overlay,
    ids: Integers,
    sums: ClassStatistics,
    n_jobs: int | None,
) -> Rows:
    """Return what the overlay holds of classes with these sums."""
    residuals = [state.residuals, *(t.residuals for t in overlay.tiers if t.residuals is not None)]
    return Rows(
        ids,
        sums,
        splice_rows(residuals, *overlay.locate(ids)),
        score_changed(state, sums, n_jobs),
        _name_classes(state, overlay, ids),
        state.check.name_weights,
        state.check.meaning_centers,
    )


def keep_hidden(state: LongTailState, ids: Integers, residuals: ClassResiduals) -> LongTailState:
    """Return a state without changes in which classes without documents have residuals.

    The base has no rows of them; what they have comes into effect with their next document.
    """
    overlay = state.overlay
    assert overlay is not None
    rows = _make_rows(state, overlay, ids, overlay.gather(ids), None)
    rows = replace(rows, residuals=residuals)
    return replace(state, overlay=replace(overlay, tiers=(rows,)))


def score_changed(
    state: LongTailState, sums: ClassStatistics, n_jobs: int | None = None
) -> LinearScorer:
    """Return the scorer of classes whose sums have changed since the base was built.

    A function of the sums and of what all classes share, so that they are the same bits as in a
    base that is built anew.
    """
    profile = Profile(sums, state.current_corpus, state.shares)
    return build_scorer(profile, state.ranking_weights, n_jobs)


def _name_classes(state: LongTailState, overlay: Overlay, ids: Integers) -> ClassNames:
    """Return the names of classes by the texts that they were given last."""
    rows = overlay.base_rows[ids]
    names = ClassNames.none(len(ids)) if state.names is None else state.names.gather(rows)
    return name_again(names, overlay.texts(ids), state.current_corpus)


def name_again(names: ClassNames, texts: Iterable[tuple[int, Entry]], corpus: Corpus) -> ClassNames:
    """Return names with some rows made anew from texts, by the idf of a corpus."""
    given = list(texts)
    if not given:
        return names
    rows = [
        ClassNames.of(replace(text.counts, n_terms=0), corpus) if text.text else ClassNames.none(1)
        for _, text in given
    ]
    n_classes = len(names.named)
    sources = np.arange(n_classes)
    sources[[i for i, _ in given]] = n_classes + np.arange(len(given))
    return stack_rows([names, *rows]).gather(sources)


def _take_pending(state: LongTailState, changes: Changes) -> dict[int, Entry]:
    """Return the live entries that observed something."""
    gone = {entry.number for entry in changes.minus}
    pending = {n: entry for n, entry in state.pending.items() if n not in gone}
    taught = [entry for entry in changes.plus if entry.action == "teach"]
    return pending | {entry.number: entry for entry in taught if entry.learned is not None}


def _recalibrate(state: LongTailState, changes: Changes) -> LongTailState:
    """Return the state with probabilities as the outcomes of all live entries have them."""
    plus, minus = (
        {entry.number: entry.learned for entry in entries if entry.action == "recalibrate"}
        for entries in (changes.plus, changes.minus)
    )
    if not plus and not minus:
        return state
    before = state.calibrations or Calibrations(state.calibrator, {})
    calibrator, after = before.change(state.calibrator, plus, minus)
    return replace(state, calibrator=calibrator, calibrations=after)


def _edit_parents(before: LongTailState, after: LongTailState, changes: Changes) -> LongTailState:
    """Return a state after changes with the parents that live entries give."""
    actions = {entry.action for entry in (*changes.plus, *changes.minus)}
    if actions.isdisjoint({*parents.ACTIONS, "rename"}):
        return _keep(before, after)
    gone = {entry.number for entry in changes.minus}
    edits = {n: edit for n, edit in before.parent_edits.items() if n not in gone}
    edits |= {e.number: e.learned for e in changes.plus if e.action in parents.ACTIONS}
    edited = _keep(before, replace(after, parent_edits=edits), same_parents=False)
    _ = edited.current_hierarchy  # refuses cycles
    return edited


def grow_terms(state: LongTailState, n_terms: int) -> LongTailState:
    """Add terms that no document has had yet."""
    n_new = n_terms - len(state.term_weights)
    grown = replace(
        state,
        statistics=state.statistics.grow_terms(n_terms),
        collection_model=append_constant(state.collection_model, n_new),
        term_weights=append_constant(state.term_weights, n_new, 1.0),
        pruning=state.pruning.grow_terms(n_terms),
        index=state.index.grow_terms(n_terms),
    )
    if state.overlay is not None:
        grown = replace(grown, overlay=state.overlay.grow_terms(grown.base))
    known = {
        "current_corpus": state.current_corpus.grow_terms(n_terms),
        "shares": append_constant(state.shares, n_new, state.smallest_share),
    }
    return _keep(state, grown, known)


def _keep(
    before: LongTailState,
    after: LongTailState,
    grown: Mapping[str, Any] | None = None,
    *,
    same_parents: bool = True,
) -> LongTailState:
    """Let a state of the same base use what was derived from it; but for what has grown."""
    names = (*_OF_BASE, "current_hierarchy") if same_parents else _OF_BASE
    of_same = same_parents and after.calibrator is before.calibrator
    if of_same and after.all_classes is before.all_classes:
        names = (*names, "back_off")
    known = {name: vars(before)[name] for name in names if name in vars(before)}
    return replace(after, known=known | dict(grown or {}))


# ---- base and overlay as one


def find_stale(state: LongTailState) -> NDArray[np.bool_]:
    """Return which classes have other documents than when their residuals were learned."""
    overlay = state.overlay
    if overlay is None:
        return state.stale
    in_base, *in_tiers = overlay.locate(overlay.ids)
    rows = overlay.base_rows[overlay.ids]
    stale = np.append(state.stale, False)[rows]
    stale[rows < 0] = True
    base = state.statistics.without_frequencies()
    for tier, found in zip(overlay.tiers, in_tiers, strict=True):
        here = np.flatnonzero(found >= 0)
        sums, before = tier.statistics.gather(found[here]), base.gather(rows[here])
        stale[here] |= differ(sums, before)
    return stale & ((in_base >= 0) | (state.class_sizes > 0))


def merge_learned(state: LongTailState) -> LongTailState:
    """Return the state without an overlay; its index is out of date: `merge` builds it."""
    overlay = state.overlay
    if overlay is None:
        return state
    sources, tiers = overlay.locate(overlay.ids), overlay.tiers
    statistics = overlay.statistics()
    residuals = [state.residuals, *(t.residuals for t in tiers if t.residuals is not None)]
    scorers = [state.scorer, *(t.scorer for t in tiers if t.scorer is not None)]
    memory = state.memory
    base_names = ClassNames.none(len(state.classes)) if state.names is None else state.names
    tables = [base_names, *(t.names for t in tiers if t.names is not None)]
    names = splice_rows(tables, *sources)
    return replace(
        state,
        classes=overlay.all_classes,
        statistics=statistics,
        residuals=splice_rows(residuals, *sources),
        scorer=splice_rows(scorers, *sources, indices=statistics.indices),
        stale=find_stale(state),
        names=names if names.named.any() else None,
        memory=None if memory is None else memory.settle(overlay, len(statistics.indices)),
        calibrator=state.calibrator.move_classes(state.find_today()),
        calibrations=None,
        in_use=state.in_use.wait([e.learned for _, e in sorted(state.pending.items())]),
        pending={},
        hierarchy=state.current_hierarchy,
        parent_edits={},
        overlay=None,
    )


def merge(state: LongTailState, n_jobs: int | None = None) -> LongTailState:
    """Return the same model without an overlay."""
    if state.overlay is None:
        return merge_learned(state)
    return _index(merge_learned(state), n_jobs)


def derive(state: LongTailState, n_jobs: int | None = None) -> LongTailState:
    """Compute everything that follows from the sums and from what all classes share."""
    state = replace(state, scorer=build_scorer(state.profile(), state.ranking_weights, n_jobs))
    return _index(state, n_jobs)


def _index(state: LongTailState, n_jobs: int | None) -> LongTailState:
    """Return the state with an index of its scorer."""
    index = build_index(state.ranking_scorer, state.statistics.n_terms, n_jobs)
    return replace(state, index=index, known={"ranking_scorer": state.ranking_scorer})


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
