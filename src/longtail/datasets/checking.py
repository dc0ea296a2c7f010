"""Labelled documents -> what is odd about them, to look at before a fit.

In: chunks of documents, labels and line numbers. Out: a `DataCheck`. Documents leave a hash and a
few numbers behind, so a table may be larger than memory. Two texts are the same document if they
differ in case, space and punctuation only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from longtail._constants import FREQUENCY_BANDS

_TOKENS = re.compile(r"\w+")
_LETTERS = re.compile(r"[^\W\d_]{3,}")  # words of a label that a text would use
_MAX_EXAMPLES = 10  # of each finding
_SEPARATORS = ";|,"  # that people put between labels; the first of equally frequent ones is taken
_MIN_NAMED = 5  # documents of a class of which half have its name


@dataclass(frozen=True)
class Finding:
    """One kind of oddity: how many documents or classes, and where to find some of them."""

    name: str
    count: int
    share: float
    examples: list[str]
    advice: str

    @classmethod
    def among(cls, n: int, name: str, count: int, examples: list[str], advice: str) -> Finding:
        """Return a finding of `count` among n documents or classes."""
        return cls(name, count, count / max(n, 1), examples, advice)


@dataclass(frozen=True)
class DataCheck:
    """Sizes and oddities of a table of labelled documents."""

    n_documents: int
    n_classes: int
    median_words: int  # words of the document in the middle; terms, for counts
    class_sizes: dict[str, int]  # number of classes by how many documents they have
    findings: list[Finding]  # what is odd; empty where nothing is


def check_documents(
    chunks: Iterable[tuple[Any, Sequence[Any], Sequence[int]]],
    against: Iterable[tuple[Any, Sequence[Any], Sequence[int]]] = (),
) -> DataCheck:
    """Look for what spoils a model: duplicates, contradictions, empty texts, labels that leak.

    Parameters
    ----------
    chunks : iterable of (documents, labels, lines)
        Documents are texts, or the rows of a sparse matrix of counts. A label set is a tuple.
    against : iterable of (documents, labels, lines), optional
        Documents for testing, which should not be among the others.

    Raises
    ------
    ValueError
        If there are no documents.

    Examples
    --------
    >>> texts = ["A bear!", "a bear", "the fox", "owl, barn owl"]
    >>> found = check_documents([(texts, ["bear", "fox", "Fox ", "owl"], [1, 2, 3, 4])])
    >>> for finding in found.findings[:2]:
    ...     print(finding.count, finding.name)
    2 documents that are there twice with different labels
    2 labels that differ by case or space only
    """
    seen = _Seen()
    for documents, labels, lines in chunks:
        seen.add(documents, labels, lines)
    n = seen.n_documents
    if not n:
        raise ValueError("there are no documents to check.")
    n_shared, shared, n_against = seen.compare(against)
    sizes = np.array(list(seen.sizes.values()))
    counts = {
        name.replace("-", " to "): int(np.count_nonzero((sizes >= low) & (sizes <= (high or n))))
        for name, low, high in FREQUENCY_BANDS
    }
    overlap = Finding.among(
        n_against,
        "documents that are also in the other table",
        n_shared,
        shared,
        "Leave them out of one of the two: a test with documents of the training is too good.",
    )
    findings = [found for found in (*_findings(seen), overlap) if found.count]
    return DataCheck(
        n_documents=n,
        n_classes=len(sizes),
        median_words=int(np.median(np.concatenate(seen.lengths))),
        class_sizes=counts,
        findings=findings,
    )


def find_label_separator(labels: Iterable[str]) -> str | None:
    """Return the mark that most labels contain, as where several stand in one column.

    Most are more than half of the distinct labels, for each of these would become a class: a few
    large classes with a comma in their names raise no question.

    Examples
    --------
    >>> find_label_separator(["bear; fox", "fox", "bear", "fox; owl", "bear; owl"])
    ';'
    >>> find_label_separator(["drm/amd, display"] * 9 + ["mm", "net"])
    """
    distinct = set(labels)
    counts = {mark: sum(mark in label for label in distinct) for mark in _SEPARATORS}
    mark = max(counts, key=counts.__getitem__)
    return mark if 2 * counts[mark] > len(distinct) else None


@dataclass(slots=True)
class _Documents:
    """Documents that are the same."""

    line: int
    label: Any
    n_again: int = 0
    is_contradicted: bool = False


@dataclass
class _Seen:
    """The parts of the documents that the checks need."""

    n_documents: int = 0
    sizes: Counter[Any] = field(default_factory=Counter)
    first: dict[int, _Documents] = field(default_factory=dict)
    lengths: list[Any] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    contradicted: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    n_empty: int = 0
    named: Counter[Any] = field(default_factory=Counter)
    names: dict[Any, frozenset[str]] = field(default_factory=dict)

    def add(self, documents: Any, labels: Sequence[Any], lines: Sequence[int]) -> None:
        """Add some documents."""
        lengths = []
        for terms, label, line in zip(_terms(documents), _plain(labels), lines, strict=True):
            lengths.append(len(terms))
            self.n_documents += 1
            each = label if isinstance(label, tuple) else (label,)
            self.sizes.update(each)
            if not terms:
                self.n_empty += 1
                _keep_example(self.empty, f"line {line}")
                continue
            self._compare_with_first(_hash(terms), label, line)
            for one in each:
                tokens = self._name(one)
                if tokens and tokens.issubset(terms):
                    self.named[one] += 1
        self.lengths.append(np.array(lengths, np.int64))

    def _compare_with_first(self, key: int, label: Any, line: int) -> None:
        first = self.first.get(key)
        if first is None:
            self.first[key] = _Documents(line, label)
            return
        first.n_again += 1
        if first.label == label:
            _keep_example(self.repeated, f"lines {first.line} and {line} ({label})")
        else:
            first.is_contradicted = True
            _keep_example(
                self.contradicted, f"{first.label} (line {first.line}), {label} (line {line})"
            )

    def _name(self, label: Any) -> frozenset[str]:
        """Return the words of a label that a text would use; a number has none."""
        if label not in self.names:
            tokens = _LETTERS.findall(label.casefold()) if isinstance(label, str) else []
            self.names[label] = frozenset(tokens)
        return self.names[label]

    def compare(self, against: Iterable[tuple[Any, Any, Any]]) -> tuple[int, list[str], int]:
        """Return how many other documents are among these, where, and how many there are."""
        n_shared, n_documents = 0, 0
        examples: list[str] = []
        for documents, _, lines in against:
            for terms, line in zip(_terms(documents), lines, strict=True):
                n_documents += 1
                found = self.first.get(_hash(terms)) if terms else None
                if found is not None:
                    n_shared += 1
                    _keep_example(examples, f"line {line} there is line {found.line} here")
        return n_shared, examples, n_documents


def _findings(seen: _Seen) -> Iterator[Finding]:
    """Yield all kinds of findings, the gravest first; some may be empty."""
    n = seen.n_documents
    contradicted = sum(1 + d.n_again for d in seen.first.values() if d.is_contradicted)
    yield Finding.among(
        n,
        "documents that are there twice with different labels",
        contradicted,
        seen.contradicted,
        "One of the labels is wrong, or the document has several. No model can get them all.",
    )
    groups: dict[str, list[str]] = {}
    for label in seen.sizes:
        if isinstance(label, str):
            groups.setdefault(" ".join(label.casefold().split()), []).append(label)
    alike = [labels for labels in groups.values() if len(labels) > 1]
    yield Finding.among(
        len(seen.sizes),
        "labels that differ by case or space only",
        sum(map(len, alike)),
        [" / ".join(repr(label) for label in labels) for labels in alike[:_MAX_EXAMPLES]],
        "They are classes of their own. Write them the same way, or merge them in the model.",
    )
    yield Finding.among(
        n,
        "documents without a word",
        seen.n_empty,
        seen.empty,
        "They can only be guessed. Leave them out, or choose more columns for the text.",
    )
    yield Finding.among(
        n,
        "documents that are there again with the same label",
        sum(d.n_again for d in seen.first.values() if not d.is_contradicted),
        seen.repeated,
        "They count several times. If copies end up in training and test, the test is too good.",
    )
    leaking = [
        f"{label}: {named:,} of {seen.sizes[label]:,}"
        for label, named in seen.named.most_common()
        if seen.sizes[label] >= _MIN_NAMED and 2 * named >= seen.sizes[label]
    ]
    yield Finding.among(
        n,
        "documents that contain the name of their class",
        sum(seen.named.values()),
        leaking[:_MAX_EXAMPLES],
        "If new documents will not have it (a heading, a tag, a path), take it out of the text; "
        "listed are classes in which at least half of the documents have it.",
    )
    alone = [label for label, size in seen.sizes.items() if size == 1]
    yield Finding.among(
        len(seen.sizes),
        "classes of one document",
        len(alone),
        [str(label) for label in alone[:_MAX_EXAMPLES]],
        "Every class has one document: is this column the label? Its values look like ids."
        if len(alone) == len(seen.sizes)
        else "They can be predicted. Fit holds none of their documents out: what it expects of "
        "them comes from classes that are left with one document. "
        f"About {len(alone) / sum(seen.sizes.values()):.0%} of the labels of new documents will be "
        "of classes that are not here (Good-Turing), if they are like these; where documents have "
        "one label, --unknown of predict and evaluate takes that into account.",
    )


def _terms(documents: Any) -> Iterator[Sequence[Any]]:
    """Yield the words of each text, or the (term, count) pairs of each row of counts."""
    if not hasattr(documents, "indptr"):
        for text in documents:
            yield _TOKENS.findall(text.casefold())
        return
    for row in range(documents.shape[0]):
        entries = slice(documents.indptr[row], documents.indptr[row + 1])
        terms, counts = documents.indices[entries].tolist(), documents.data[entries].tolist()
        yield sorted(zip(terms, counts, strict=True))


def _plain(labels: Any) -> list[Any]:
    """Return labels as Python values."""
    return list(labels.tolist() if hasattr(labels, "tolist") else labels)


def _hash(terms: Sequence[Any]) -> int:
    """Return 64 bits of a document: among ten million, one pair in 10^5 tables is confused."""
    content = "\n".join(map(str, terms)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def _keep_example(examples: list[str], example: str) -> None:
    """Keep an example, if there are not enough yet."""
    if len(examples) < _MAX_EXAMPLES:
        examples.append(example)
