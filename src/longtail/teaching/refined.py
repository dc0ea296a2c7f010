"""The result of a `refine`: a new base, in a file beside the model file.

In: a model with its changes. Out: the file, and the entry that names it; or the model that the file
and the changes since make. The model file stays as it is until the journal is folded into it, so a
`refine` can be undone like any other change. What it learned stays as it was learned, whichever
changes before it are undone later; the sums follow the changes that are live.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from longtail.estimators.loading import load as load_file
from longtail.exceptions import ModelFileError
from longtail.model.edits import Refine
from longtail.model.entry import Changes, Entry
from longtail.model.overlay import overlay_of
from longtail.sparse import append_constant
from longtail.store.changes import Change, Row, encode
from longtail.store.container import read_checksum
from longtail.store.files import sync_folder
from longtail.store.journal import Journal, find_refined, refined_path
from longtail.teaching.log import Ledger
from longtail.training.changing import derive, keep_hidden, merge_learned, name_again

Memory = Literal["auto", "never"]

AUTOMATIC = "auto"  # author of a refinement that the teacher began by itself
# Files of automatic refinements that stay, each as large as the model. Undoing more of them needs
# undoing all: then the model is the model file with its changes.
N_KEPT = 2


class Refined(NamedTuple):
    """A refined model in a file of its own."""

    path: Path  # the file, as long as it has no number
    row: Row  # what the journal says of it


def open_file(path: str | os.PathLike[str], memory: Memory | None, *, verify: bool) -> Any:
    """Open a model file without its journal, with or without a memory; see `Teacher`."""
    model = load_file(path, verify=verify)
    return model if memory is None else model._remember(memory)


def write_refined(beside: Path, model: Any, live: Iterable[int], until: int) -> Refined:
    """Refine a model, which only the caller holds, and write it; `live` are its changes.

    `until` is the last change that there was.
    """
    row_ids = overlay_of(model._arrays).ids
    model._apply(Refine())
    model.save(beside)
    facts = {"file": read_checksum(beside), "live": sorted(live), "until": until}
    return Refined(beside, Row(classes=row_ids.astype("<i8").tobytes(), facts=encode(facts)))


def put_in_place(journal: Journal, refined: Refined, change_number: int) -> None:
    """Give the file of a refined model the name that its change has."""
    target = refined_path(journal.model, change_number)
    os.replace(refined.path, target)
    sync_folder(target.parent)


def drop_superseded(path: Path, changes: Sequence[Change]) -> None:
    """Remove files of refinements that are not needed; the journal is held.

    Those of automatic ones but the last, see `N_KEPT`; and those that no change names, because
    whoever made them was stopped before the journal had it.

    Raises
    ------
    OSError
        If one cannot be removed.
    """
    made = {c.number: c.by for c in changes if c.action == "refine"}
    live = sorted(n for n in Ledger.of(changes).live if n in made)
    kept = {n for n, by in made.items() if by != AUTOMATIC} | {*live[-N_KEPT:]}
    for file in find_refined(path):
        if file not in {refined_path(path, change_number) for change_number in kept}:
            file.unlink(missing_ok=True)


def open_refined(
    path: Path,
    base: Any,
    entries: Sequence[Entry],
    ledger: Ledger,
    *,
    verify: bool,
    memory: Memory | None = None,
) -> tuple[Any, int]:
    """Return the model after the changes of a journal of which a `refine` is live.

    And the number of the last change that its base has: it can be taken back by opening alone.
    `base`, which only the caller holds, is the model of the file; `entries` are all changes;
    `memory` is what a `Teacher` was told.

    Raises
    ------
    ModelFileError
        If the file of the `refine` is missing, or not the one that the journal names.
    """
    change_number = ledger.refined
    [entry] = [entry for entry in entries if entry.number == change_number]
    refined = _load(path, entry, base, memory, verify=verify)
    n_ids = overlay_of(base._arrays).n_ids
    until = entry.learned["until"]
    earlier = [e for e in entries if e.number <= until]
    n_ids += sum(len(e.new_classes) for e in earlier)
    _check_fit(path, entry, refined, n_ids, base, earlier)
    live = [e for e in entries if e.number in ledger.in_effect and e.action != "refine"]
    later = [e for e in entries if e.number > until]
    if set(entry.learned["live"]) == {n for n in ledger.in_effect if n <= until}:
        missing = np.setdiff1d(np.arange(n_ids), entry.class_ids).tolist()
        hidden = _find_hidden(base, missing, earlier, ledger)
        gone = set(missing) - hidden.keys()
        if gone.isdisjoint(i for e in later for i in [*e.class_ids.tolist(), e.into]):
            plus = [e for e in live if e.number > until]
            refined._over(entry.class_ids, n_ids, hidden)
            return refined._take_changes(Changes(later, plus)), until
    calibrated = [e for e in live if e.action == "recalibrate" and e.number > until]
    others = [e for e in live if e.action != "recalibrate"]
    base._take_changes(Changes(entries, others))
    _adopt(base, refined, entry)
    model = base._take_changes(Changes((), calibrated)) if calibrated else base
    return model, max(ledger.actions)


def _find_hidden(
    base: Any, missing: Sequence[int], entries: Sequence[Entry], ledger: Ledger
) -> dict[int, Any]:
    """Return the labels of classes that have no documents after entries but are not gone."""
    live = [entry for entry in entries if entry.number in ledger.live]
    renamed = {int(e.class_ids[0]): e.label for e in live if e.action == "rename"}
    gone = {int(e.class_ids[0]) for e in live if e.action in ("merge", "remove")}
    labels = {i: label for entry in entries for i, label in entry.new_classes.items()} | renamed
    overlay = overlay_of(base._arrays)
    there = [i for i in missing if i not in gone]
    return {i: labels[i] if i in labels else overlay.label_of(i) for i in there}


def _load(path: Path, entry: Entry, base: Any, memory: Memory | None, *, verify: bool) -> Any:
    """Open the file that an entry names."""
    file = refined_path(path, entry.number)
    try:
        is_same = read_checksum(file) == entry.learned["file"]
    except FileNotFoundError:
        is_same = False
    if not is_same:
        raise ModelFileError(
            file,
            f"is not there, or not what change {entry.number} (refine) of the journal wrote. Put "
            "it back beside the model file",
        )
    refined = open_file(file, memory, verify=verify)
    if type(refined) is not type(base):
        raise ModelFileError(file, f"holds a {type(refined).__name__}, unlike the model file")
    return refined


def _check_fit(
    path: Path, entry: Entry, refined: Any, n_ids: int, base: Any, earlier: Sequence[Entry]
) -> None:
    """Refuse a file whose classes or terms are not those of the journal."""
    ids = entry.class_ids
    entered = sum(len(e.new_terms.lengths) for e in earlier if e.new_terms is not None)
    n_terms = base._arrays.base.statistics.n_terms + entered
    fits = (
        len(ids) == len(refined.classes_)
        and len(np.unique(ids)) == len(ids)
        and bool(np.all(ids < n_ids))
        and refined._arrays.base.statistics.n_terms == n_terms
    )
    if not fits:
        raise ModelFileError(
            refined_path(path, entry.number), "has other classes or terms than the journal"
        )


def _adopt(model: Any, refined: Any, entry: Entry) -> None:
    """Let a model with other sums have what was learned.

    Texts that classes were given later are weighted by it, as they are where nothing was undone.
    """
    overlay = overlay_of(model._arrays)
    ids, hidden = overlay.ids, overlay.hidden_labels()
    texts = [(row, text) for row, text in overlay.texts(ids) if text.number > entry.number]
    rows = np.full(overlay.n_ids, -1)
    rows[entry.class_ids] = np.arange(len(entry.class_ids))
    learned = refined._arrays

    def adopt(state: Any) -> Any:
        merged = merge_learned(state)
        later = {n: e for n, e in state.pending.items() if n > entry.learned["until"]}
        n_new = merged.statistics.n_terms - learned.statistics.n_terms
        found = rows[ids]
        changed = replace(
            merged,
            corpus=learned.corpus,
            collection_model=append_constant(learned.collection_model, n_new),
            term_weights=append_constant(learned.term_weights, n_new, 1.0),
            feature_weights=learned.feature_weights,
            residuals=learned.residuals.gather(found),
            calibrator=learned.calibrator.move_classes(overlay.outer_ids[entry.class_ids]),
            pruning=learned.pruning.grow_terms(merged.statistics.n_terms),
            check=learned.check,
            stale=merged.stale | (found < 0),
            candidate_factor=learned.candidate_factor,
            in_use=learned.in_use,
            pending=later,
        )
        if changed.names is not None:
            corpus = learned.corpus.with_entered_terms(merged.statistics.n_terms)
            changed = replace(changed, names=name_again(changed.names, texts, corpus))
        return derive(changed)

    if model.takes_texts:
        model._swap(lambda state: state.over(adopt(state.model)))
    else:
        model._swap(adopt)
    model._over(ids, overlay.n_ids, hidden)
    # Those that have no documents now may be taught again.
    kept = np.array([class_id for class_id in hidden if rows[class_id] >= 0], np.int64)
    if len(kept):
        residuals = learned.residuals.gather(rows[kept])
        model._change_arrays(lambda state: keep_hidden(state, kept, residuals))
