"""The classes that changes concern, beside a base that stays as it is.

In: a base (labels and sums of classes, as they were fitted or opened), and entries that take effect
or lose it. Out: an `Overlay`, with the sums that these classes have now. Sums are integers, so they
are the same in whatever order the entries came, and an entry that is taken back leaves no trace.

The overlay is two tiers of rows: a small one, which every change copies, and a large one, into
which the small one goes when it is full. A class that is in a tier, or is gone, is passed over in
the base. Nothing of the base is ever written to; only saving and `refine` put the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from longtail._caching import cached_property
from longtail._columns import align_labels, as_labels, as_plain, show_label
from longtail._constants import WEIGHT_BITS
from longtail._labels import LabelSets
from longtail._validation import check_same_kind, look_up
from longtail.model.class_tables import Flags, Rows, splice_sums
from longtail.model.entry import Changes, Documents, Entry
from longtail.model.meaning import Meanings, Table
from longtail.model.statistics import (
    NEVER_ADDED,
    ClassStatistics,
    check_total,
    combine,
    find_impossible,
)
from longtail.retrieval.search import Segment
from longtail.sparse import (
    Integers,
    append_constant,
    are_integral,
    copy_with_capacity,
    count_terms,
    gather_rows,
)

# Rows of the small tier, of which every change makes a copy; more where the large tier is so large
# that putting the two together costs more.
SMALL_TIER = 256
SMALL_SHARE = 1 / 32


class RefusedError(ValueError):
    """A change that sums or labels forbid; `class_ids` are the persistent ids concerned."""

    def __init__(self, message: str, class_ids: Iterable[int]) -> None:
        super().__init__(message)
        self.class_ids = frozenset(class_ids)


class Base(NamedTuple):
    """The classes below an overlay: sorted labels, sums, and which of them have a text."""

    classes: NDArray[Any]
    statistics: ClassStatistics
    named: Flags | None = None


@dataclass(frozen=True)
class ClassEdits:
    """The live edits of a class, by the number of their entry; the last of a kind counts."""

    entries: dict[int, Entry] = field(default_factory=dict)

    def with_entry(self, entry: Entry) -> ClassEdits:
        """Return the edits with one more."""
        return ClassEdits({**self.entries, entry.number: entry})

    def without(self, change_number: int) -> ClassEdits:
        """Return the edits without that of an entry."""
        return ClassEdits({n: entry for n, entry in self.entries.items() if n != change_number})

    def of_kind(self, action: str) -> list[Entry]:
        """Return the edits of a kind, in the order of their numbers."""
        found = [entry for entry in self.entries.values() if entry.action == action]
        return sorted(found, key=lambda entry: entry.number)

    def last(self, action: str) -> Entry | None:
        """Return the edit of a kind that counts."""
        found = self.of_kind(action)
        return found[-1] if found else None

    @property
    def is_part(self) -> bool:
        """Whether the class was merged into another."""
        return bool(self.of_kind("merge"))


_NO_EDITS = ClassEdits()


@dataclass(frozen=True, eq=False)
class Overlay:
    """The classes that changes concern."""

    base: Base  # what it lies on
    row_ids: Integers  # (n_base,) int64: persistent id of each class of the base
    # (n_ids,) int64: row of each persistent id in the base; -1 for classes that came later.
    base_rows: Integers
    # What classes without a row in the base were called first, or when it was built.
    labels: dict[int, Any]
    edits: dict[int, ClassEdits]  # the live edits of classes
    tiers: tuple[Rows, ...]  # the large one, if there is any, and the small one
    # Of the classes that were merged, and of those that they are a part of: the sums of their own
    # documents alone.
    apart: Rows
    # (n_ids,) bool: whether a class is there: it has documents or a text, and was not removed or
    # merged.
    visible: Flags
    # (n_ids,) int64: place of each class among all labels, sorted, which is its id to the outside;
    # -1 where it is not there.
    ranks: Integers
    all_classes: NDArray[Any]  # (n_classes,): their labels, sorted
    # (n_terms,): of all documents and of all classes that are there; the first counts those of
    # removed classes as well, whose sums do not tell how many of their documents had a term.
    document_frequencies: Integers
    class_frequencies: Integers
    n_occurrences: float  # sum of all counts
    next_number: int = 1  # of an entry that no log numbers
    # Ids below it that have neither a row in the base nor a label were gone when it was built.
    n_closed: int = 0

    @classmethod
    def over(
        cls,
        base: Base,
        row_ids: Integers | None = None,
        n_ids: int = 0,
        hidden: dict[int, Any] | None = None,
    ) -> Self:
        """Return an overlay without any change; ids without a row were used before it.

        Those of `hidden` have a label still, and come back with documents; the others are gone.
        """
        n_classes, statistics, nothing = len(base.classes), base.statistics, np.zeros(0, np.int64)
        row_ids = np.arange(n_classes) if row_ids is None else row_ids
        n_ids = max(n_ids, n_classes)
        base_rows, ranks = np.full(n_ids, -1), np.full(n_ids, -1)
        base_rows[row_ids] = ranks[row_ids] = np.arange(n_classes)
        return cls(
            base=base,
            row_ids=row_ids,
            base_rows=base_rows,
            labels=hidden or {},
            edits={},
            tiers=(),
            apart=Rows(nothing, statistics.without_frequencies().gather(nothing)),
            visible=base_rows >= 0,
            ranks=ranks,
            all_classes=base.classes,
            document_frequencies=statistics.document_frequencies,
            class_frequencies=statistics.class_frequencies,
            n_occurrences=float(statistics.class_lengths.sum()),
            n_closed=n_ids,
        )

    @property
    def n_ids(self) -> int:
        """How many persistent ids were ever used."""
        return len(self.base_rows)

    @property
    def sums(self) -> list[ClassStatistics]:
        """The sums of the base and of each tier."""
        return [self.base.statistics, *(tier.statistics for tier in self.tiers)]

    @cached_property
    def ids(self) -> Integers:
        """Persistent id of each class, in the order of the labels."""
        ids = np.empty(len(self.all_classes), np.int64)
        there = np.flatnonzero(self.ranks >= 0)
        ids[self.ranks[there]] = there
        return ids

    @cached_property
    def outer_ids(self) -> Integers:
        """Class id among all labels that has the documents of each persistent id; -1 for none."""
        outer_ids = self.ranks.copy()
        for class_id, edits in self.edits.items():
            if edits.is_part:
                outer_ids[class_id] = self.ranks[_root(self, class_id)]
        return outer_ids

    @cached_property
    def tombstones(self) -> tuple[Integers, ...]:
        """Rows of the base and of each tier that are not there, or are in a later tier."""
        hidden = ~self.visible[self.row_ids]
        found = []
        for tier in self.tiers:
            rows = self.base_rows[tier.ids]
            hidden[rows[rows >= 0]] = True
        for position, tier in enumerate(self.tiers):
            gone = ~self.visible[tier.ids]
            for later in self.tiers[position + 1 :]:
                gone |= later.find(tier.ids) >= 0
            found.append(np.flatnonzero(gone))
        return (np.flatnonzero(hidden), *found)

    def locate(self, ids: Integers) -> list[Integers]:
        """Return the row of each persistent id in the base and in each tier; -1 where it has none.

        Each is in one of them at most.
        """
        found = [tier.find(ids) for tier in self.tiers]
        is_found = np.zeros(len(ids), np.bool_)
        for rows in reversed(found):
            rows[is_found] = -1
            is_found |= rows >= 0
        return [np.where(is_found, -1, self.base_rows[ids]), *found]

    def label_of(self, class_id: int) -> Any:
        """Return what a class is called, whether it is there or not."""
        renamed = self.edits.get(class_id, _NO_EDITS).last("rename")
        if renamed is not None:
            return renamed.label
        row = int(self.base_rows[class_id])
        if row < 0:
            return self.labels[class_id]
        return as_plain(self.base.classes[row])

    def find_hidden(self) -> dict[Any, int]:
        """Return the classes that have a label and neither documents nor text now, by label."""
        hidden = self.hidden_labels()
        return {label: i for i, label in reversed(hidden.items())}  # the first one counts

    def hidden_labels(self) -> dict[int, Any]:
        """Return the labels of these classes by their persistent ids, ascending."""
        hidden = np.flatnonzero(~self.visible).tolist()
        return {i: self.label_of(i) for i in hidden if self.is_root(i)}

    def is_root(self, class_id: int) -> bool:
        """Return whether a class was neither removed nor merged."""
        is_old = class_id < self.n_closed and self.base_rows[class_id] < 0
        if is_old and class_id not in self.labels:  # gone for good when the base was built
            return False
        edits = self.edits.get(class_id)
        return edits is None or not (edits.of_kind("remove") or edits.is_part)

    def texts(self, ids: Integers) -> list[tuple[int, Entry]]:
        """Return the texts that some persistent ids were given last, each with its position."""
        edited = [
            (i, class_id) for i, class_id in enumerate(ids.tolist()) if class_id in self.edits
        ]
        found = [(i, self.edits[class_id].last("describe")) for i, class_id in edited]
        return [(i, entry) for i, entry in found if entry is not None]

    def gather(self, ids: Integers) -> ClassStatistics:
        """Return the sums of some persistent ids, without document frequencies."""
        return splice_sums(self.sums, *self.locate(ids))

    def terms_of(self, ids: Integers) -> Iterator[NDArray[Any]]:
        """Yield the terms of some persistent ids, table by table, repeated as they are."""
        for table, rows in zip(self.sums, self.locate(ids), strict=True):
            yield table.indices[gather_rows(table.indptr, rows[rows >= 0])[1]]

    def pick(self, ids: Integers, *arrays: NDArray[Any]) -> NDArray[Any]:
        """Return the values of some persistent ids; 0 where one has none.

        The arrays hold those of the base and of each tier; an empty one has none at all.
        """
        picked = np.zeros(len(ids), np.int64)
        for array, rows in zip(arrays, self.locate(ids), strict=True):
            if len(array):
                picked = picked + np.where(rows < 0, 0, array[rows])
        return picked

    def sizes_of(self, ids: Integers) -> Integers:
        """Return the number of documents of some persistent ids."""
        return self.pick(ids, *(table.class_sizes for table in self.sums))

    def have_text(self, ids: Integers) -> Flags:
        """Return which persistent ids have a text."""
        of_base = np.zeros(0, np.bool_) if self.base.named is None else self.base.named
        return self.pick(ids, of_base, *(tier.named for tier in self.tiers)) > 0

    def class_sizes(self) -> Integers:
        """Return the number of documents of each class that is there, in the order of labels."""
        return self.sizes_of(self.ids)

    def statistics(self) -> ClassStatistics:
        """Return the sums of all classes that are there, in the order of labels."""
        sums = self.gather(self.ids)
        frequencies = self.document_frequencies
        if frequencies.dtype.kind == "f" and are_integral(frequencies):
            frequencies = frequencies.astype(np.int64)
        return replace(sums, document_frequencies=frequencies)

    def segments(
        self, main: Segment, n_terms: int, max_unindexed: int, dense_share: float
    ) -> tuple[Segment, ...]:
        """Return what is searched: the base, and the tiers that have a class that is there.

        A tier of at most `max_unindexed` classes that has no index yet comes without one.
        """
        of_main, *of_tiers = self.tombstones
        n_of_all = len(main.scorer.biases)
        assert main.index is not None
        found = [
            Segment(
                main.scorer,
                main.residuals,
                replace(main.index, tombstones=of_main),
                self.ranks[self.row_ids],
            )
        ]
        for tier, gone in zip(self.tiers, of_tiers, strict=True):
            if len(gone) < len(tier.ids):
                class_ids, index = self.ranks[tier.ids], None
                if tier.has_index or len(tier.ids) > max_unindexed:
                    index = tier.index(n_terms, n_of_all, dense_share=dense_share)
                    index = replace(index, tombstones=gone)
                else:
                    class_ids[gone] = -1
                residuals = tier.ranking_residuals.as_scorer
                found.append(Segment(tier.ranking_scorer, residuals, index, class_ids))
        return tuple(sorted(found, key=lambda segment: segment.index is None))

    @cached_property
    def searched(self) -> list[int]:
        """Which of the base and the tiers are searched: those that have a class that is there."""
        of_tiers = zip(self.tiers, self.tombstones[1:], strict=True)
        kept = [i for i, (tier, gone) in enumerate(of_tiers, 1) if len(gone) < len(tier.ids)]
        return [0, *kept]

    def tables(self, main: Meanings) -> tuple[Table, ...]:
        """Return the directions of all classes, in the order of `segments`."""
        found = []
        for i in self.searched:
            ids = self.ranks[self.row_ids if i == 0 else self.tiers[i - 1].ids]
            ids[self.tombstones[i]] = -1
            found.append(Table(main if i == 0 else self.tiers[i - 1].meanings, ids))
        return tuple(found)

    def grow_terms(self, base: Base) -> Self:
        """Return the overlay over the same base with terms that no document has."""
        n_new = base.statistics.n_terms - len(self.class_frequencies)
        return replace(
            self,
            base=base,
            document_frequencies=append_constant(self.document_frequencies, n_new),
            class_frequencies=append_constant(self.class_frequencies, n_new),
        )


def overlay_of(state: Any) -> Overlay:
    """Return the overlay of a model; an empty one where it has none."""
    overlay: Overlay = state.overlay or Overlay.over(state.base)
    return overlay


# Of classes whose sums are given, their rows.
Finish = Callable[[Overlay, Integers, ClassStatistics], Rows]


def change(before: Overlay, changes: Changes, finish: Finish) -> Overlay:
    """Return the overlay after changes; the ids and terms that they declare are new.

    Raises
    ------
    RefusedError
        If a class would have fewer documents than none, or two classes the same label.
    """
    of_base = before.base.statistics
    before = _declare(before, changes)
    after, edited, changed_ids = _edit(before, changes)
    taught = [
        _sum_documents(documents, of_base.sublinear)
        for documents in changes.documents(len(before.class_frequencies))
    ]
    for sums in taught:
        changed_ids.update(sums.ids.tolist())
    frequencies, n_occurrences = _change_frequencies(before, taught)
    # A class whose part has changed changes as well, and so does one that it is no longer part of.
    changed_ids |= _roots(before, changed_ids)
    roots = _roots(after, changed_ids)
    ids = np.array(sorted(edited | changed_ids | roots), np.int64)
    members = _members(after, roots)
    own_ids = np.array(sorted({member for group in members.values() for member in group}), np.int64)
    own_sums = _gather_own(before, own_ids)
    for sums in taught:
        summand = sums.statistics.gather(look_up(sums.ids, own_ids))
        own_sums = combine(own_sums, summand, sums.direction)  # may be negative until all is in it
    root_ids = np.array(sorted(members), np.int64)
    total = _sum_groups(own_sums, own_ids, [members[root] for root in root_ids.tolist()])
    _check_sums(root_ids, total, frequencies)
    # The sums of all classes are only put together when a model is saved; that must not fail then.
    bits = max(of_base.count_bits, total.count_bits)
    check_total(n_occurrences, bits)
    if len(root_ids):
        after = replace(
            after,
            tiers=_put(before.tiers, finish(after, root_ids, total)),
            apart=_keep_apart(before, members, own_ids, own_sums),
            document_frequencies=frequencies,
            n_occurrences=n_occurrences,
        )
    after = _show(before, after, ids)
    subtracted = [sums.terms for sums in taught if sums.direction < 0]
    if subtracted:
        _check_frequencies(after, np.concatenate([total.indices, *subtracted]), ids, bits)
    may_be_empty = edited or subtracted
    if may_be_empty and not after.class_sizes().any():
        raise RefusedError(
            "cannot forget the last document of a model; fit a new one instead.", ids.tolist()
        )
    return after


class _Taught(NamedTuple):
    """Sums of documents that come or go; nothing in it has the length of the vocabulary."""

    ids: Integers  # persistent ids of their classes
    statistics: ClassStatistics  # of each class, without document frequencies
    terms: Integers  # of the documents, ascending
    frequencies: Integers  # in how many of the documents each of these is
    n_occurrences: float  # sum of all counts
    direction: int  # 1 or -1


def _sum_documents(documents: Documents, sublinear: bool) -> _Taught:
    """Sum the documents of each class, at a cost of their own terms."""
    counts, weights = documents.counts, documents.weights
    ids, class_ids = np.unique(documents.class_ids, return_inverse=True)
    terms, entries = np.unique(counts.indices, return_inverse=True)
    indices = entries.astype(counts.indices.dtype)
    compact = replace(counts, indices=indices, n_terms=len(terms))
    labels = LabelSets.single(class_ids, np.arange(len(ids)), weights)
    sums = ClassStatistics.from_counts(compact, labels, len(ids), sublinear=sublinear)
    total = counts.data.sum(dtype=np.float64) if weights is None else sums.class_lengths.sum()
    return _Taught(
        ids,
        replace(sums, indices=terms[sums.indices]).without_frequencies(),
        terms.astype(np.int64),
        sums.document_frequencies,
        float(total),
        documents.direction,
    )


def _declare(before: Overlay, changes: Changes) -> Overlay:
    """Return the overlay with room for the classes that entries begin."""
    new = {i: label for entry in changes.declared for i, label in entry.new_classes.items()}
    change_number = max((entry.number for entry in changes.declared), default=0)
    before = replace(before, next_number=max(before.next_number, change_number + 1))
    if not new:
        return before
    n_new = len(new)
    if sorted(new) != list(range(before.n_ids, before.n_ids + n_new)):
        raise RefusedError("new classes must have the next ids", new)
    classes = before.base.classes
    check_same_kind(_label_array(list(new.values()), classes), classes)
    return replace(
        before,
        base_rows=append_constant(before.base_rows, n_new, -1),
        labels={**before.labels, **new},
        visible=append_constant(before.visible, n_new, False),
        ranks=append_constant(before.ranks, n_new, -1),
    )


def _edit(before: Overlay, changes: Changes) -> tuple[Overlay, set[int], set[int]]:
    """Return the overlay with the edits of classes as they are after changes.

    And the classes that are edited, and those of them whose sums or texts are others now.
    """
    edits_of, edited, changed_ids = dict(before.edits), set[int](), set[int]()
    for entries, is_live in ((changes.plus, True), (changes.minus, False)):
        for entry in entries:
            if entry.action not in ("rename", "merge", "remove", "describe"):
                continue
            class_id = int(entry.class_ids[0])
            edits = edits_of.get(class_id, _NO_EDITS)
            edits = edits.with_entry(entry) if is_live else edits.without(entry.number)
            edits_of[class_id] = edits
            edited.add(class_id)
            if entry.action == "merge":
                changed_ids |= {class_id, entry.into}
            elif entry.action == "describe":
                changed_ids.add(class_id)
    if not edited:
        return before, edited, changed_ids
    for class_id in edited:
        edits = edits_of[class_id]
        if len(edits.of_kind("merge")) > 1:
            raise RefusedError("a class would be a part of two others.", [class_id])
        if edits.is_part and edits.of_kind("remove"):
            raise RefusedError("a class would be removed and a part of another.", [class_id])
        if not edits.entries:
            del edits_of[class_id]
    return replace(before, edits=edits_of), edited, changed_ids


def _root(overlay: Overlay, class_id: int) -> int:
    """Return the class into which a class was merged in the end; usually itself."""
    seen = {class_id}
    while class_id in overlay.edits:
        merged = overlay.edits[class_id].last("merge")
        if merged is None:
            break
        class_id = merged.into
        if class_id in seen:
            raise RefusedError("a class would be a part of itself", seen)
        seen.add(class_id)
    return class_id


def _roots(overlay: Overlay, ids: Iterable[int]) -> set[int]:
    return {_root(overlay, class_id) for class_id in ids}


def _members(overlay: Overlay, roots: set[int]) -> dict[int, list[int]]:
    """Return what each of some classes consists of: itself, and those merged into it."""
    members = {root: [root] for root in roots}
    for class_id, edits in overlay.edits.items():
        if edits.is_part and (root := _root(overlay, class_id)) in members:
            members[root].append(class_id)
    return members


def _gather_own(overlay: Overlay, ids: Integers) -> ClassStatistics:
    """Return the sums of the documents of classes without those that are merged into them."""
    apart = overlay.apart.find(ids)
    rows = [np.where(apart >= 0, -1, found) for found in overlay.locate(ids)]
    return splice_sums([*overlay.sums, overlay.apart.statistics], *rows, apart)


def _sum_groups(
    own_sums: ClassStatistics, own_ids: Integers, groups: list[list[int]]
) -> ClassStatistics:
    """Return the sums of groups of classes."""
    longest = max(map(len, groups), default=1)
    if longest == 1:
        return own_sums
    total = None
    for position in range(longest):
        ids = np.array([group[position] if position < len(group) else -1 for group in groups])
        summand = own_sums.gather(np.where(ids < 0, -1, np.searchsorted(own_ids, ids)))
        total = summand if total is None else total + summand
    assert total is not None
    return total


def _keep_apart(
    before: Overlay, members: dict[int, list[int]], own_ids: Integers, own_sums: ClassStatistics
) -> Rows:
    """Return the sums of classes that are part of others, and of these others."""
    merged = [member for group in members.values() if len(group) > 1 for member in group]
    if not merged and not len(before.apart.ids):
        return before.apart
    ids = np.array(sorted(merged), np.int64)
    left = np.setdiff1d(before.apart.ids, own_ids)
    stay = before.apart.gather(look_up(before.apart.ids, left))
    return Rows(ids, own_sums.gather(np.searchsorted(own_ids, ids))).put_over(stay)


def _change_frequencies(before: Overlay, taught: list[_Taught]) -> tuple[Integers, float]:
    """Return document frequencies and the sum of all counts after documents came and went."""
    frequencies, n_occurrences = before.document_frequencies, before.n_occurrences
    if not taught:
        return frequencies, n_occurrences
    if any(sums.frequencies.dtype.kind == "f" for sums in taught):
        frequencies = frequencies.astype(np.float64)  # documents that count as a fraction
    frequencies = copy_with_capacity(frequencies)
    for sums in taught:
        frequencies[sums.terms] += sums.direction * sums.frequencies
        n_occurrences += sums.direction * sums.n_occurrences
    return frequencies, n_occurrences


def _check_sums(ids: Integers, sums: ClassStatistics, frequencies: Integers) -> None:
    """Refuse sums of documents that were never added."""
    wrong = find_impossible(sums)
    if wrong.any() or np.any(frequencies < 0):
        concerned = ids[wrong].tolist() if wrong.any() else ids.tolist()
        raise RefusedError(NEVER_ADDED, concerned)


def _check_frequencies(after: Overlay, terms: Integers, ids: Integers, count_bits: int) -> None:
    """Refuse sums of classes that have a term which fewer documents have.

    A document that was never added can be in the sums of a class term by term. Once it is
    subtracted, the model could not be saved.
    """
    of_documents, of_classes = after.document_frequencies, after.class_frequencies
    # Documents may count as fractions, the least of which is a unit; fractions may add up to ones.
    least = 2.0**-WEIGHT_BITS if count_bits else 1
    if np.any(of_documents[terms] < least * of_classes[terms]):
        raise RefusedError(NEVER_ADDED, ids.tolist())


def _put(tiers: tuple[Rows, ...], rows: Rows) -> tuple[Rows, ...]:
    """Return the tiers with other rows of some classes."""
    large = tiers[0] if len(tiers) == 2 else None
    small = rows.put_over(tiers[-1]) if tiers else rows
    n_large = 0 if large is None else len(large.ids)
    if len(small.ids) <= max(SMALL_TIER, SMALL_SHARE * n_large):
        return (small,) if large is None else (large, small)
    merged = small if large is None else small.put_over(large)
    return merged, merged.gather(np.zeros(0, np.int64))


def _show(before: Overlay, after: Overlay, ids: Integers) -> Overlay:
    """Return the overlay in which those classes are visible that are there, each in its place."""
    is_root = np.array([after.is_root(class_id) for class_id in ids.tolist()], np.bool_)
    visible = after.visible.copy()
    visible[ids] = is_root & ((after.sizes_of(ids) > 0) | after.have_text(ids))
    after = replace(after, visible=visible)
    was = before.visible
    frequencies = copy_with_capacity(after.class_frequencies)
    for overlay, shown, sign in ((before, was, -1), (after, visible, 1)):
        for listed in overlay.terms_of(ids[shown[ids]]):
            if len(listed) > len(frequencies):
                frequencies += sign * count_terms(listed, len(frequencies))
            else:
                terms, counts = np.unique(listed, return_counts=True)
                frequencies[terms] += sign * counts
    after = replace(after, class_frequencies=frequencies)
    if any(_is_renamed(before, after, class_id) for class_id in ids[visible[ids]].tolist()):
        return _rank_all(after)
    if np.any(was[ids] & ~visible[ids]):
        return _rank_all(after)
    come = ids[visible[ids] & ~was[ids]]
    return _insert(after, come) if len(come) else after


def _is_renamed(before: Overlay, after: Overlay, class_id: int) -> bool:
    """Return whether a class that is there has another label than before."""
    edits, others = before.edits.get(class_id), after.edits.get(class_id)
    return edits is not others and before.label_of(class_id) != after.label_of(class_id)


def _insert(overlay: Overlay, ids: Integers) -> Overlay:
    """Return the overlay with places for classes that were not there; the others keep theirs."""
    labels = _labels_of(overlay, ids)
    order = np.argsort(labels, kind="stable")
    labels, ids, before = labels[order], ids[order], overlay.all_classes
    positions = np.searchsorted(before, labels)
    _check_distinct(overlay, labels, positions, ids)
    ranks = overlay.ranks + np.searchsorted(positions, overlay.ranks, side="right")
    ranks[overlay.ranks < 0] = -1
    ranks[ids] = positions + np.arange(len(ids))
    widened = before.astype(np.result_type(before, labels), copy=False)
    return replace(overlay, ranks=ranks, all_classes=np.insert(widened, positions, labels))


def _rank_all(overlay: Overlay) -> Overlay:
    """Return the overlay with the places of all classes."""
    renamed = [i for i, edits in overlay.edits.items() if edits.last("rename") is not None]
    is_own = overlay.visible & (overlay.base_rows >= 0)
    is_own[renamed] = False
    rows = np.sort(overlay.base_rows[is_own])
    ids = np.flatnonzero(overlay.visible & ~is_own)
    alive = overlay.base.classes[rows]
    ranks = np.full(overlay.n_ids, -1)
    ranks[overlay.row_ids[rows]] = np.arange(len(rows))
    overlay = replace(overlay, ranks=ranks, all_classes=alive)
    return _insert(overlay, ids) if len(ids) else overlay


def _check_distinct(
    overlay: Overlay, labels: NDArray[Any], positions: Integers, ids: Integers
) -> None:
    """Refuse labels, sorted, that are there twice, or are those of other classes."""
    twice = np.zeros(len(labels), np.bool_)
    twice[1:] = labels[1:] == labels[:-1]
    others = np.roll(ids, 1)
    if len(overlay.all_classes):
        outer_ids = np.minimum(positions, len(overlay.all_classes) - 1)
        is_there = overlay.all_classes[outer_ids] == labels
        twice |= is_there
        others = np.where(is_there, overlay.ids[outer_ids], others)
    if twice.any():
        first = int(np.flatnonzero(twice)[0])
        raise RefusedError(
            f"two classes would be called {show_label(labels[first])}.",
            [int(ids[first]), int(others[first])],
        )


def _labels_of(overlay: Overlay, ids: Integers) -> NDArray[Any]:
    """Return the labels of classes, in the type of those of the base where that holds them."""
    named = [overlay.label_of(class_id) for class_id in ids.tolist()]
    return _label_array(named, overlay.base.classes)


def _label_array(labels: list[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels in the type of some classes where that holds them exactly."""
    given = np.asarray(as_labels(labels))
    if given.dtype.kind in "iufb" and classes.dtype.kind in "iufb":
        cast = given.astype(classes.dtype)
        return cast if np.array_equal(cast, given) else given
    return align_labels(given, classes)
