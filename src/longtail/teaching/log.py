"""Changes as numbers, and as rows of a journal.

In: an `Entry` and what people gave; or changes of a journal, which anybody may have written, and
how many classes and terms there were before them. Out: rows; or entries, every number of which is
in its bounds before a kernel sees it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._columns import as_labels
from longtail._constants import N_OBSERVED
from longtail.model import parents
from longtail.model.embeddings import ONE
from longtail.model.entry import NO_ROWS, Entry, NewTerms
from longtail.model.parents import Parents
from longtail.sparse import SMALLEST_COUNT, CountMatrix, Integers, offsets_from_lengths
from longtail.store.changes import Change, Row, encode, find_live
from longtail.training.observed import Observed
from longtail.training.outcomes import Outcomes

_LARGEST_BATCH = 1 << 19  # characters and terms of the documents in a row; at most 12 bytes each
_LARGEST_COUNT = 2.0**62
_LARGEST_TERM = 2**31
OF_FLAGSHIP = ("describe", "recalibrate", "refine", *parents.ACTIONS)


@dataclass(frozen=True)
class Ledger:
    """Which changes of a journal there are, and which of them are live."""

    actions: dict[int, str]  # what each change does, by its number, ascending
    undos: tuple[Change, ...]  # those that take others back
    live: frozenset[int]  # numbers of those in effect

    @classmethod
    def of(cls, changes: Sequence[Change]) -> Ledger:
        """Return the ledger of a whole journal."""
        return cls({}, (), frozenset()).extend(changes)

    def extend(self, changes: Sequence[Change]) -> Ledger:
        """Return the ledger with more changes at its end."""
        new = {change.number: change.action for change in changes}
        undos = tuple(change for change in changes if change.action == "undo")
        actions, undos = {**self.actions, **new}, (*self.undos, *undos)
        if len(undos) == len(self.undos):
            return Ledger(actions, undos, self.live | new.keys())
        return Ledger(actions, undos, find_live(actions, undos))

    @property
    def in_effect(self) -> set[int]:
        """Numbers of the live changes that do something by themselves."""
        return {
            change_number for change_number in self.live if self.actions[change_number] != "undo"
        }

    @property
    def refined(self) -> int:
        """Number of the last live `refine`; 0 where there is none."""
        refined = (n for n in self.live if self.actions[n] == "refine")
        return max(refined, default=0)


# ---- entries as rows


def as_rows(entry: Entry, shown: dict[str, Any]) -> list[Row]:
    """Return the rows of a change.

    `shown` is what people see of it: documents and labels as they were given, or the names of an
    edit.
    """
    if entry.action in ("teach", "forget"):
        return list(_document_rows(entry, shown))
    if entry.action == "recalibrate":
        return list(_outcome_rows(entry.learned, shown))
    if entry.action in parents.ACTIONS:
        given: Parents = entry.learned
        if given.is_whole:
            shown = {"n_nodes": len(given.labels), "nodes": given.labels.tolist()}
        terms = given.parents.astype("<i4").tobytes()
        return [Row(_int64(given.ids), _int64(given.children), terms, b"", encode(shown))]
    classes = [*entry.class_ids.tolist(), *([entry.into] if entry.into >= 0 else [])]
    counts = entry.counts
    sizes = np.diff(counts.indptr) if counts.n_documents else np.zeros(0, np.int64)
    if entry.action == "describe":
        shown = shown | {"is_new": bool(entry.new_classes)}
    shown = shown | _embedding_facts(counts)
    return [Row(_int64(classes), _int64(sizes), *_encode_counts(counts), encode(shown))]


def _document_rows(entry: Entry, shown: dict[str, Any]) -> Iterator[Row]:
    """Yield rows with some of the documents each."""
    facts: dict[str, Any] = {}
    if entry.new_classes:
        facts["classes"] = list(entry.new_classes.values())
    if entry.new_terms is not None:
        ends = np.cumsum(entry.new_terms.lengths)
        text = entry.new_terms.utf8.tobytes()
        starts = ends - entry.new_terms.lengths
        facts["terms"] = [
            text[a:b].decode("utf-8") for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
    seen: Observed | None = entry.learned
    if seen is not None:
        facts["observed"] = [seen.sums.tolist(), *seen.documents.tolist()]
    data = encode(facts) if facts else b""
    for rows in _slices(entry, shown):
        counts = entry.counts.slice(rows)
        content = encode({name: values[rows] for name, values in shown.items()})
        sizes = _int64(np.diff(counts.indptr))
        if counts.embeddings is not None:
            data = encode(facts | _embedding_facts(counts))
        yield Row(_int64(entry.class_ids[rows]), sizes, *_encode_counts(counts), data, content)
        data, facts = b"", {}


def _embedding_facts(counts: CountMatrix) -> dict[str, str]:
    """Return the embeddings of documents as JSON holds them; nothing where there are none."""
    if counts.embeddings is None:
        return {}
    return {"embeddings": base64.b64encode(counts.embeddings.astype("<i2").tobytes()).decode()}


def _slices(entry: Entry, shown: dict[str, Any]) -> Iterator[slice]:
    """Yield which documents go into each row; each has one at least."""
    sizes = np.diff(entry.counts.indptr)
    if entry.counts.embeddings is not None:
        sizes = sizes + entry.counts.embeddings.shape[1]
    for values in shown.values():
        sizes = sizes + [len(v) + 2 if isinstance(v, str) else 4 for v in values]
    start = total = 0
    for i, size in enumerate(sizes.tolist()):
        if i > start and total + size > _LARGEST_BATCH:
            yield slice(start, i)
            start, total = i, 0
        total += size
    yield slice(start, len(sizes))


def _outcome_rows(seen: Outcomes, shown: dict[str, Any]) -> Iterator[Row]:
    """Yield a row with all outcomes and some documents, then rows with the other documents."""
    blobs = (
        _int64(seen.positions),
        _int64(seen.lengths) + _int64(seen.keys),
        seen.is_unknown.astype("<i4").tobytes(),
        np.ascontiguousarray(seen.scores, "<f8").tobytes(),
    )
    empty = Entry(0, "teach", counts=_no_documents(len(shown["labels"])))
    for rows in _slices(empty, shown):
        content = encode({name: values[rows] for name, values in shown.items()})
        yield Row(*blobs, b"", content)
        blobs = (b"", b"", b"", b"")


def _no_documents(n: int) -> CountMatrix:
    return CountMatrix(np.zeros(n + 1, np.int64), NO_ROWS.indices, NO_ROWS.data, 0)


def _int64(values: Any) -> bytes:
    return np.asarray(values, "<i8").tobytes()


def _encode_counts(counts: CountMatrix) -> tuple[bytes, bytes]:
    """Return terms and counts as bytes."""
    if len(counts.indices) and int(counts.indices.max()) >= _LARGEST_TERM:
        raise ValueError(f"a journal holds documents of at most {_LARGEST_TERM:,} terms.")
    narrow = counts.data.astype("<f4")
    is_exact = np.array_equal(narrow, counts.data)
    data = narrow if is_exact else counts.data.astype("<f8")
    return counts.indices.astype("<i4").tobytes(), data.tobytes()


# ---- rows as entries


class Bounds(NamedTuple):
    """Bounds of the numbers of an entry."""

    # How many persistent ids of classes and terms there are before it.
    n_ids: int
    n_terms: int
    takes_texts: bool  # whether terms may enter
    learns: bool  # whether there are class texts, outcomes and refinements
    n_dimensions: int | None = None  # of documents and class texts that must have embeddings


def read_entries(changes: Sequence[Change], bounds: Bounds) -> list[Entry]:
    """Return the entries of changes that follow each other, each number in its bounds.

    Raises
    ------
    ModelFileError
        Which change does not fit the model, and why.
    """
    entries: list[Entry] = []
    limits: list[tuple[int, int]] = []
    n_ids, n_terms = bounds.n_ids, bounds.n_terms
    documents = _read_documents([c for c in changes if c.action in ("teach", "forget")])
    for change in changes:
        if change.action == "undo":
            continue
        if change.action in OF_FLAGSHIP and not bounds.learns:
            raise misfit(change, "models of this kind have nothing of it")
        of_rows = change.facts_of_rows  # decoded once: a journal has thousands
        if change.action in ("teach", "forget"):
            entry = _read_taught(change, of_rows[0], *next(documents), n_ids)
        else:
            entry = _read_edit(change, of_rows[0], n_ids)
        if entry.counts.n_documents:
            given = [facts.get("embeddings") for facts in of_rows]
            entry = _with_embeddings(change, entry, given, bounds.n_dimensions)
        n_ids += len(entry.new_classes)
        if entry.new_terms is not None:
            if not bounds.takes_texts:
                raise misfit(change, "it brings terms, and the model takes counts")
            n_terms += len(entry.new_terms.lengths)
        entries.append(entry)
        limits.append((n_ids, n_terms))
    known = {change.number: change for change in changes}
    wrong = _find_unsound(entries)
    if wrong is not None:
        raise misfit(known[wrong.number], "what it observed is out of bounds")
    fault = _find_fault(entries, np.array(limits, np.int64).reshape(-1, 2))
    if fault is not None:
        raise misfit(known[entries[fault[0]].number], fault[1])
    return entries


def _find_unsound(entries: Sequence[Entry]) -> Entry | None:
    """Return the first entry that observed what cannot be; all are looked at together first."""
    found = [entry for entry in entries if isinstance(entry.learned, Observed)]
    if not found:
        return None
    seen = [entry.learned for entry in found]
    documents, sums = [one.documents for one in seen], [one.sums for one in seen]
    if Observed(np.concatenate(documents), np.stack(sums)).is_sound():
        return None
    return next(entry for entry in found if not entry.learned.is_sound())


def misfit(change: Change, reason: object) -> Exception:
    """Return the error of a change that does not fit the model."""
    return change.error(f"({change.action}) does not fit the model: {reason}")


def _read_taught(
    change: Change, facts: dict[str, Any], class_ids: Integers, counts: CountMatrix, n_ids: int
) -> Entry:
    """Return an entry of documents, with the classes and terms that begin with it."""
    new = {n_ids + i: label for i, label in enumerate(facts.get("classes", ()))}
    terms = _read_terms(change, facts.get("terms", ()))
    return Entry(
        change.number,
        change.action,
        class_ids,
        counts,
        new_classes=new,
        new_terms=terms,
        learned=_read_observed(facts.get("observed", ())),
    )


def _read_observed(given: Sequence[list[float]]) -> Observed | None:
    """Return what was observed of documents before they were taught."""
    if not given:
        return None
    sums, *rows = given
    documents = np.array(rows, np.float64).reshape(len(rows), N_OBSERVED)
    return Observed(documents, np.array(sums, np.float64))


def _with_embeddings(
    change: Change, entry: Entry, given: Sequence[str | None], n_dimensions: int | None
) -> Entry:
    """Return an entry with the embeddings of its documents or of its text."""
    if n_dimensions is None:
        if any(given):
            raise misfit(change, "it has embeddings, and the model has none")
        return entry
    n_documents = entry.counts.n_documents
    try:
        data = b"".join(base64.b64decode(text or "", validate=True) for text in given)
    except ValueError:
        raise misfit(change, "its embeddings are no numbers") from None
    if len(data) != 2 * n_documents * n_dimensions:
        raise misfit(change, f"it has not {n_dimensions} numbers of meaning for each document")
    vectors = np.frombuffer(data, "<i2").reshape(n_documents, n_dimensions).astype(np.int16)
    if np.any(np.abs(vectors.astype(np.int64)) > ONE):
        raise misfit(change, "an embedding is out of bounds")
    return replace(entry, counts=replace(entry.counts, embeddings=vectors))


def _read_edit(change: Change, facts: dict[str, Any], n_ids: int) -> Entry:
    """Return an entry without documents; its numbers are not checked yet."""
    action, classes = change.action, _array(change, "classes", "<i8")
    if action == "recalibrate":
        return Entry(change.number, action, learned=_read_outcomes(change, classes))
    if action == "refine":
        return Entry(change.number, action, classes, learned=facts)
    if action in parents.ACTIONS:
        given = _read_parents(change, facts, classes, n_ids)
        return Entry(change.number, action, given.ids[given.ids >= 0], learned=given)
    if len(classes) != (2 if action == "merge" else 1):
        raise change.error(f"has the action {action}, but what it needs is missing")
    entry = Entry(change.number, action, classes[:1])
    if action == "rename":
        return replace(entry, label=facts["new"])
    if action == "merge":
        return replace(entry, into=int(classes[1]))
    if action == "describe":
        new = {n_ids: facts["label"]} if facts["is_new"] else {}
        [row] = change.rows
        if not row.sizes:  # the text is taken away
            return replace(entry, new_classes=new, text="")
        [(_, counts)] = _read_documents([replace(change, rows=(row,))])
        return replace(entry, counts=counts, new_classes=new, text=facts["text"])
    return entry


def _read_parents(
    change: Change, facts: dict[str, Any], class_ids: Integers, n_ids: int
) -> Parents:
    """Return what a change says of the parents of nodes."""
    is_whole = change.action == "hierarchy"
    nodes = facts["nodes"] if is_whole else [facts["label"], *facts["parents"]]
    children, above = _array(change, "sizes", "<i8"), _array(change, "terms", "<i4")
    n_nodes = len(nodes)
    sound = (
        len(class_ids) == n_nodes
        and len(children) == len(above)
        and not np.any(class_ids < -1)
        and np.all((children >= 0) & (children < n_nodes))
        and np.all((above >= 0) & (above < n_nodes))
        and (is_whole or not children.any())
    )
    if not sound:
        raise misfit(change, "its parents are out of bounds")
    try:
        labels = as_labels(nodes)
    except ValueError as error:
        raise misfit(change, error) from None
    return Parents(labels, class_ids, children, above.astype(np.int64), is_whole, n_ids)


def _read_documents(changes: Sequence[Change]) -> Iterator[tuple[Integers, CountMatrix]]:
    """Yield class ids and counts of the documents of each change, all read together.

    Neither ids nor counts are checked yet.
    """
    if not changes:
        return
    rows = [row for change in changes for row in change.rows]
    n_rows = [len(change.rows) for change in changes]
    owners = np.repeat(np.arange(len(changes)), n_rows)
    n_bytes = np.array([list(map(len, row[:4])) for row in rows], np.int64)
    for column, (name, size) in enumerate(zip(Row._fields, (8, 8, 4, 4), strict=False)):
        partial = np.flatnonzero(n_bytes[:, column] % size)
        if len(partial):
            raise changes[owners[partial[0]]].error(f"has {name} that are cut off")
    of_documents, of_terms = n_bytes[:, 1] // 8, n_bytes[:, 2] // 4
    is_wide = n_bytes[:, 3] == 2 * n_bytes[:, 2]
    wrong = (n_bytes[:, 0] != n_bytes[:, 1]) | ~(is_wide | (n_bytes[:, 3] == n_bytes[:, 2]))
    sizes = np.frombuffer(b"".join([row.sizes for row in rows]), "<i8")
    ends, term_ends = np.cumsum(of_documents), np.cumsum(of_terms)
    of_sizes = np.repeat(np.arange(len(rows)), of_documents)
    wrong[of_sizes[(sizes < 0) | (sizes > term_ends[-1])]] = True
    indptr = offsets_from_lengths(np.clip(sizes, 0, term_ends[-1]))
    wrong |= indptr[ends] != term_ends
    if wrong.any():
        raise misfit(changes[owners[np.flatnonzero(wrong)[0]]], "its numbers do not fit each other")
    classes = np.frombuffer(b"".join([row.classes for row in rows]), "<i8")
    terms = np.frombuffer(b"".join([row.terms for row in rows]), "<i4")
    if is_wide.any():
        kinds = np.where(is_wide, "<f8", "<f4").tolist()
        parts = [np.frombuffer(row.counts, kind) for row, kind in zip(rows, kinds, strict=True)]
        counts = np.concatenate(parts).astype(np.float64)
    else:
        counts = np.frombuffer(b"".join([row.counts for row in rows]), "<f4").astype(np.float64)
    first = 0
    for last in ends[np.cumsum(n_rows) - 1].tolist():
        begin, end = indptr[first], indptr[last]
        table = CountMatrix(
            indptr[first : last + 1] - begin, terms[begin:end], counts[begin:end], 0
        )
        yield classes[first:last], table
        first = last


def _array(change: Change, name: str, kind: str) -> NDArray[Any]:
    """Return the numbers of all rows of a change."""
    data = b"".join([getattr(row, name) for row in change.rows])
    if len(data) % np.dtype(kind).itemsize:
        raise change.error(f"has {name} that are cut off")
    return np.frombuffer(data, kind)


def _read_terms(change: Change, terms: Sequence[str]) -> NewTerms | None:
    """Return the terms that enter."""
    if not terms:
        return None
    try:
        encoded = [term.encode("utf-8") for term in terms]
    except UnicodeEncodeError:
        raise misfit(change, "a term is no text") from None
    if not all(encoded):
        raise misfit(change, "a term is empty")
    lengths = np.array([len(term) for term in encoded], np.int64)
    return NewTerms(np.frombuffer(b"".join(encoded), np.uint8), lengths)


def _read_outcomes(change: Change, positions: Integers) -> Outcomes:
    """Return what a `recalibrate` saw."""
    lengths, is_unknown = _array(change, "sizes", "<i8"), _array(change, "terms", "<i4")
    scores, n = _array(change, "counts", "<f8"), len(positions)
    n_columns = len(scores) // n if n else 1
    sound = (
        len(lengths) == 2 * n == 2 * len(is_unknown)
        and len(scores) == n * n_columns
        and np.all((positions >= -1) & (positions < n_columns))
        and np.all((lengths[:n] >= 0) & (lengths[:n] < 2**53))
        and np.all((is_unknown == 0) | (is_unknown == 1))
        and not np.any(np.isnan(scores) | (scores == np.inf))
        and bool(np.all(np.abs(scores[np.isfinite(scores)]) <= _LARGEST_COUNT))
        and (n_columns > 0 or not n)
    )
    if not sound:
        raise misfit(change, "its outcomes are out of bounds")
    scores, known = scores.reshape(n, n_columns), is_unknown.astype(np.bool_)
    return Outcomes(scores, positions, known, lengths[:n], lengths[n:])


def _find_fault(entries: list[Entry], limits: Integers) -> tuple[int, str] | None:
    """Return the first entry with a number that is out of bounds, and what is wrong."""
    if not entries:
        return None
    n_ids, n_terms = limits.T
    ids = np.concatenate([entry.class_ids for entry in entries])
    of_ids = np.repeat(np.arange(len(entries)), [len(entry.class_ids) for entry in entries])
    tables = [entry.counts for entry in entries]
    terms = np.concatenate([table.indices for table in tables])
    counts = np.concatenate([table.data for table in tables])
    of_terms = np.repeat(np.arange(len(entries)), [len(table.indices) for table in tables])
    falls = np.zeros(len(terms), np.bool_)
    falls[1:] = terms[1:] <= terms[:-1]
    starts = np.concatenate([table.indptr[:-1] for table in tables])
    before = np.repeat(
        offsets_from_lengths(np.array([len(table.indices) for table in tables]))[:-1],
        [table.n_documents for table in tables],
    )
    firsts = starts + before
    falls[firsts[firsts < len(terms)]] = False
    into = np.array([entry.into for entry in entries])
    checks = (
        (of_ids, (ids < 0) | (ids >= n_ids[of_ids]), "a class is out of bounds"),
        (np.arange(len(entries)), into >= n_ids, "a class is out of bounds"),
        (of_terms, (terms < 0) | (terms >= n_terms[of_terms]), "a term is out of bounds"),
        (of_terms, falls, "the terms of a document do not ascend"),
        (
            of_terms,
            ~((counts >= SMALLEST_COUNT) & (counts <= _LARGEST_COUNT)),
            "a count is out of bounds",
        ),
    )
    for owners, wrong, reason in checks:
        if wrong.any():
            return int(owners[np.flatnonzero(wrong)[0]]), reason
    return None


def read_again(changes: Sequence[Change], bounds: Bounds) -> list[Entry]:
    """Return entries that were read before: their classes and terms have their ids already."""
    entries = []
    for change in changes:
        [entry] = read_entries([change], bounds)
        entries.append(replace(entry, new_classes={}, new_terms=None))
    return entries
