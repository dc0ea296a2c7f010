"""Blocks of lines, ``label,label term:count term:count ...`` -> labels and counts.

One regular expression is the grammar; it has no way back, so a line costs time in proportion to
its length. Lines that it matches are read together, block by block; a line that it does not match,
or that breaks a limit, is looked at alone to word what is wrong with it.

scikit-learn's `load_svmlight_file` is not used: it refuses terms that are not sorted, as those of
the LSHTC files. Where they are sorted first, 100 MB of such lines take 11.8 CPU seconds, here 4.2;
100 MB of sorted ones take 4.6 to 6.3, here 3.8. It also names no line in its errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from longtail.sparse import Floats, Integers

# Beyond 2**53 a double no longer holds every whole number: sums of counts would not be exact.
LARGEST_COUNT = 2**53
# A label has at most eighteen digits.
LARGEST_LABEL = 10**18 - 1

_BLANKS = b" \t\r"
_LABEL = rb"[-+]?0*+(?:[0-9]{1,18}+|(?<=0))(?:\.0*+)?(?=[ \t\r,]|$)"
# A minus sign is allowed before zeros only.
_COUNT = rb"(?:\+|-(?=[0.]++(?:[eE \t\r]|$)))?(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
_LINE = re.compile(
    rb"[ \t\r]*+(?P<labels>" + _LABEL + rb"(?:[ \t\r]*+,[ \t\r]*+" + _LABEL + rb")*+)?+"
    rb"[ \t\r]*+(?P<query>qid:[^ \t\r]*+[ \t\r]*+)?+"
    rb"(?P<pairs>(?:[0-9]++:" + _COUNT + rb"(?:[ \t\r]++|$))*+)"
)
_SEPARATORS = bytes.maketrans(b":\t\r", b"   ")
_TOKEN = re.compile(rb"[^ \t\r,:]*+")
_GAP = re.compile(rb"[ \t\r]*+")
_LONGEST_QUOTE = 40


@dataclass(frozen=True)
class Rules:
    """Rules of a format.

    `svmlight` has comments and ``qid:`` tokens; `n_documents` are promised by a header and a blank
    line is one of them; terms and labels are as written in the file.
    """

    svmlight: bool = False
    first_term: int = 0
    last_term: int = 2**31 - 1
    first_label: int = -LARGEST_LABEL
    last_label: int = LARGEST_LABEL
    fewest_labels: int = 0
    n_documents: int | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """The documents of a block, terms as written in the file."""

    labels: Integers  # labels, document after document, ascending and each once within a document
    label_counts: Integers  # how many labels each document has
    X: csr_array[np.float64]  # counts in canonical form
    lines: list[int]  # the line of each document, from 1
    # Over all terms written, zero counts included; `last_term` and -1 if there are none.
    lowest_term: int
    highest_term: int


def parse_block(
    block: bytes,
    n_lines: int,
    n_documents: int,
    rules: Rules,
    on_fault: Callable[[int, str, bytes], None],
) -> Rows:
    """Parse complete lines.

    Parameters
    ----------
    block : bytes
        Complete lines; the last one may lack its newline.
    n_lines, n_documents : int
        Lines and documents of the file before this block.
    rules : Rules
        What the format allows.
    on_fault : callable
        Called with line number, reason and content of each line that cannot be read; such lines
        are left out where it returns.
    """
    lines = block.removesuffix(b"\n").split(b"\n")
    if rules.svmlight and b"#" in block:
        lines = [line.partition(b"#")[0] for line in lines]
    n_promised = rules.n_documents or 0
    line_numbers: list[int] = []
    kept: list[bytes] = []
    for line_number, line in enumerate(lines, n_lines + 1):
        if line.strip(_BLANKS) or n_documents + len(kept) < n_promised:
            kept.append(line)
            line_numbers.append(line_number)
    rows = _read_lines(kept, line_numbers, rules)
    if rows is not None and (rules.n_documents is None or n_documents + len(kept) <= n_promised):
        return rows
    sound = []
    for i, line in enumerate(kept):
        reason = find_fault(line, rules)
        if reason is None and rules.n_documents is not None and n_documents + i >= n_promised:
            reason = (
                f"the header promises {n_promised} documents and here is one more; "
                "correct the header or the file"
            )
        if reason is None:
            sound.append(i)
        else:
            on_fault(line_numbers[i], reason, line)
    rows = _read_lines([kept[i] for i in sound], [line_numbers[i] for i in sound], rules)
    if rows is None:
        raise RuntimeError("lines without fault cannot be read: the grammar and its words differ")
    return rows


def _read_lines(lines: list[bytes], line_numbers: list[int], rules: Rules) -> Rows | None:
    """Read lines together; None if one of them breaks a rule."""
    matches = [match for match in map(_LINE.fullmatch, lines) if match is not None]
    if len(matches) < len(lines):
        return None
    if not rules.svmlight and any(match["query"] for match in matches):
        return None
    labels = [_read_labels(match["labels"]) for match in matches]
    label_counts = np.fromiter(map(len, labels), np.int64, len(labels))
    flat = np.array([label for found in labels for label in found], dtype=np.int64)
    pairs = [match["pairs"] for match in matches]
    term_counts = np.fromiter((text.count(b":") for text in pairs), np.int64, len(pairs))
    values = _read_pairs(pairs, int(term_counts.sum()))
    terms, counts = values[::2], values[1::2]
    lowest, highest = terms.min(initial=rules.last_term), terms.max(initial=-1)
    sound = (
        rules.first_term <= lowest
        and highest <= rules.last_term
        and counts.max(initial=0) <= LARGEST_COUNT
        and (not flat.size or rules.first_label <= flat.min() <= flat.max() <= rules.last_label)
        and rules.fewest_labels <= label_counts.min(initial=LARGEST_LABEL)
    )
    if not sound:
        return None
    indptr = np.concatenate([[0], np.cumsum(term_counts)]).astype(np.int32)
    shape = (len(lines), int(highest) + 1)
    X = csr_array((counts.copy(), terms.astype(np.int32), indptr), shape=shape)
    X.sum_duplicates()
    X.eliminate_zeros()
    return Rows(flat, label_counts, X, line_numbers, int(lowest), int(highest))


def _read_labels(text: bytes | None) -> Sequence[int]:
    """Return the labels of a document, ascending and each once."""
    if text is None:
        return ()
    if b"," not in text:
        return (int(text.partition(b".")[0]),)
    return sorted({int(label.partition(b".")[0]) for label in text.split(b",")})


def _read_pairs(pairs: list[bytes], n_pairs: int) -> Floats:
    """Return terms and counts, one after the other."""
    text = b" ".join([b" ".join(pairs).translate(_SEPARATORS), b""])
    if b"  " in text or text.startswith(b" "):
        text = b" ".join([*text.split(), b""])
    from longtail._kernels import parsing  # imports numba, which tables of text do without

    values: Floats = np.empty(2 * n_pairs, dtype=np.float64)
    parsing.read_numbers(np.frombuffer(text, dtype=np.uint8), values)
    for entry in np.flatnonzero(values < 0).tolist():
        start = -1 - int(values[entry])
        # A number that is too small becomes 0; only zeros may have a minus sign.
        values[entry] = abs(float(text[start : text.index(b" ", start)]))
    return values


def find_fault(line: bytes, rules: Rules) -> str | None:
    """Return what is wrong with a line, None if nothing is."""
    labels, at, reason = _find_label_fault(line, rules)
    if reason is not None:
        return reason
    if len(labels) < rules.fewest_labels:
        found = _quote(line, at)
        return (
            f"the document has no label, the line begins with {found}; "
            "pass unlabelled='skip' to leave such documents out"
        )
    tokens = line[at:].replace(b"\t", b" ").replace(b"\r", b" ").split(b" ")
    tokens = [token for token in tokens if token]
    if rules.svmlight and tokens and tokens[0].startswith(b"qid:"):
        tokens.pop(0)
    return next(filter(None, (_find_pair_fault(token, rules) for token in tokens)), None)


def _find_label_fault(line: bytes, rules: Rules) -> tuple[set[int], int, str | None]:
    """Return the labels that open a line, the offset after them, and what is wrong with one."""
    labels: set[int] = set()
    at = _skip_blanks(line, 0)
    while at < len(line) or labels:
        end = at + len(_TOKEN.match(line, at).group())  # type: ignore[union-attr]
        token, follows = line[at:end], line[end : end + 1]
        if follows == b":" and not labels:
            break
        if follows == b":" or not re.fullmatch(rb"[-+]?[0-9]+(?:\.0*)?", token):
            return labels, at, f"expected a label (a whole number), found {_quote(line, at)}"
        digits = token.partition(b".")[0]
        if len(digits) > 40 or not rules.first_label <= int(digits) <= rules.last_label:
            allowed = f"{rules.first_label} to {rules.last_label}"
            reason = f"the label in {_quote(line, at)} is out of range; allowed are {allowed}"
            return labels, at, reason
        labels.add(int(digits))
        at = _skip_blanks(line, end)
        if line[at : at + 1] != b",":
            break
        at = _skip_blanks(line, at + 1)
    return labels, at, None


def _find_pair_fault(token: bytes, rules: Rules) -> str | None:
    """Return what is wrong with a term and its count."""
    term, colon, count = token.partition(b":")
    found = _quote(token, 0)
    if not colon or not re.fullmatch(rb"[0-9]+", term):
        return (
            f"expected term:count, found {found}; terms are whole numbers from {rules.first_term}"
        )
    if len(term) > 40 or not rules.first_term <= int(term) <= rules.last_term:
        allowed = f"{rules.first_term} to {rules.last_term}"
        return f"the term number in {found} is out of range; allowed are {allowed}"
    if re.fullmatch(_COUNT, count):
        if float(count) <= LARGEST_COUNT:
            return None
        return f"the count in {found} is above 2**53 and would not add up exactly; scale it down"
    if re.fullmatch(rb"-" + _COUNT, count):
        return f"the count in {found} is negative; counts must be 0 or more"
    if re.fullmatch(rb"[-+]?(?:nan|inf|infinity)", count, re.IGNORECASE):
        return f"the count in {found} is not finite; counts must be numbers of 0 or more"
    return f"the count in {found} is not a number; expected term:count"


def _skip_blanks(line: bytes, at: int) -> int:
    """Return the first offset from ``at`` on that holds no blank."""
    return _GAP.match(line, at).end()  # type: ignore[union-attr]


def _quote(line: bytes, at: int) -> str:
    """Return the token around an offset in quotes, shortened."""
    while at > 0 and line[at - 1 : at] not in (b" ", b"\t", b"\r"):
        at -= 1
    token = re.match(rb"[^ \t\r]*", line[at:]).group()  # type: ignore[union-attr]
    shown = token[: 4 * _LONGEST_QUOTE].decode("utf-8", "backslashreplace")
    if not shown:
        return "the end of the line"
    return f"'{shown[:_LONGEST_QUOTE]}...'" if len(shown) > _LONGEST_QUOTE else f"'{shown}'"
