"""Readers against a plain parser built on split, on valid files and on files changed a little."""

import re
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.datasets import DataFormatError, read_extreme, read_lshtc, read_svmlight, streams
from tests.conftest import examples

LABEL = re.compile(r"([-+]?[0-9]+)(?:\.0*)?")
COUNT = re.compile(r"[-+]?(?=\.?[0-9])([0-9]*\.?[0-9]*)(?:[eE][-+]?[0-9]+)?")
BLANKS = " \t\r"


class BadLineError(Exception):
    """Has the number of the first line that cannot be read."""

    def __init__(self, line):
        super().__init__(line)
        self.line = line


def check(condition, line):
    if not condition:
        raise BadLineError(line)


def split_labels(text, line):
    """Take the labels off the front of a line; return them and the tokens left."""
    labels = []
    rest = text.strip(BLANKS)
    while rest or labels:
        token = re.match(r"[^ \t\r,:]*", rest).group()
        after = rest[len(token) :]
        if after.startswith(":") and not labels:
            break
        match = LABEL.fullmatch(token)
        check(match and not after.startswith(":"), line)
        labels.append(int(match.group(1)))
        check(abs(labels[-1]) < 10**18, line)
        rest = after.strip(BLANKS)
        if not rest.startswith(","):
            break
        rest = rest[1:].strip(BLANKS)
    return labels, [token for token in re.split(f"[{BLANKS}]+", rest) if token]


def read_pair(token, line, first_term, last_term):
    """Return term and count of one token."""
    term, colon, count = token.partition(":")
    check(colon and re.fullmatch("[0-9]+", term), line)
    check(first_term <= int(term) <= last_term, line)
    match = COUNT.fullmatch(count)
    check(match, line)
    check(not (count.startswith("-") and re.search("[1-9]", match.group(1))), line)
    value = abs(float(count))
    check(value <= 2**53, line)
    return int(term), value


def plain_rows(text, n_before, *, svmlight=False, sizes=None, first_term=0, skip=False):
    """Return (documents as label lists and term dicts, lowest and highest term written)."""
    n_documents, n_terms, n_labels = sizes or (None, 10**7, None)
    documents, written = [], []
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    for line, content in enumerate(lines, start=n_before + 1):
        if svmlight:
            content = content.split("#")[0]
        if not content.strip(BLANKS) and (sizes is None or len(documents) >= n_documents):
            continue
        check(sizes is None or len(documents) < n_documents, line)
        labels, tokens = split_labels(content, line)
        check(labels or skip, line)
        check(sizes is None or all(0 <= label < n_labels for label in labels), line)
        if svmlight and tokens and tokens[0].startswith("qid:"):
            tokens.pop(0)
        terms = defaultdict(float)
        for token in tokens:
            last_term = n_terms if svmlight else n_terms - 1
            term, count = read_pair(token, line, first_term, last_term)
            written.append(term)
            terms[term] += count
        documents.append((sorted(set(labels)), terms))
    check(documents, None)
    return documents, min(written, default=1), max(written, default=-1)


def plain_svmlight(text):
    documents, lowest, highest = plain_rows(text, 0, svmlight=True)
    first = 0 if lowest == 0 else 1
    return documents, first, max(highest + 1 - first, 0)


def plain_lshtc(text):
    header, _, rest = text.partition("\n")
    if re.fullmatch(r"[ \t]*[A-Za-z][^:]*", header.rstrip("\r\n")):
        documents, _, highest = plain_rows(rest, 1)
    else:
        documents, _, highest = plain_rows(text, 0)
    return documents, 0, highest + 1


def plain_extreme(text):
    header, _, rest = text.partition("\n")
    sizes = header.split()
    check(len(sizes) == 3 and all(re.fullmatch("[0-9]{1,18}", size) for size in sizes), 1)
    sizes = tuple(map(int, sizes))
    check(sizes[1] <= 10**7, 1)
    documents, _, _ = plain_rows(rest, 1, sizes=sizes, skip=True)
    check(len(documents) == sizes[0], 1)
    return documents, 0, sizes[1]


READERS = {
    "svmlight": (read_svmlight, plain_svmlight),
    "lshtc": (read_lshtc, plain_lshtc),
    "extreme": (read_extreme, plain_extreme),
}

counts = st.one_of(
    st.integers(0, 50).map(str),
    st.floats(0, 2**53).map(repr),
    st.floats(0, 1).map(lambda value: f"{value:.6f}"),
    st.from_regex(r"[0-9]{1,3}(\.[0-9]{0,25})?([eE][-+]?[0-9]{1,2})?", fullmatch=True).filter(
        lambda text: float(text) <= 2**53
    ),
)
blanks = st.sampled_from([" ", "  ", "\t", " \t "])
commas = st.sampled_from([",", ", ", " ,"])


@st.composite
def files(draw, name):
    """Text of a valid file."""
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    fewest = 0 if name == "extreme" else 1
    lines = []
    for _ in range(draw(st.integers(1, 6))):
        labels = draw(st.lists(st.integers(0, 9), min_size=fewest, max_size=4))
        terms = draw(st.lists(st.tuples(st.integers(0, 12), counts), max_size=6))
        pairs = draw(blanks).join(f"{term}:{count}" for term, count in terms)
        query = draw(st.sampled_from(["", "qid:3 "])) if name == "svmlight" else ""
        comment = draw(st.sampled_from(["", " # 1:x"])) if name == "svmlight" else ""
        line = draw(commas).join(map(str, labels)) + draw(blanks) + query + pairs
        lines.append(line + comment)
    header = {
        "extreme": f"{len(lines)} 13 10{ends}",
        "lshtc": draw(st.sampled_from(["", "Data\n"])),
    }
    last = draw(st.sampled_from(["", ends]))
    if name == "extreme" and not lines[-1].strip(BLANKS):
        last = ends
    return header.get(name, "") + ends.join(lines) + last


@st.composite
def changed_files(draw, name):
    """Text of a file with up to three characters inserted, deleted or replaced."""
    text = draw(files(name))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        new = draw(st.sampled_from([*"\n\r \t,:.+-eE0159#qnax", "", ":1", "e99", "nan", "\x00"]))
        text = text[:at] + new + text[at + draw(st.integers(0, 1)) :]
    return text


def outcome(function, argument, error_type):
    """Return what a function gives and None, or None and its error."""
    try:
        return function(argument), None
    except error_type as error:
        return None, error


def assert_same(path, text, name, block_bytes):
    """Compare reader and plain parser: the same rows, or the same line refused."""
    read, plain = READERS[name]
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK_BYTES", block_bytes)
        expected, refused = outcome(plain, text, BadLineError)
        found, error = outcome(read, path, DataFormatError)
    if refused is not None or error is not None:
        assert refused is not None, error
        assert error is not None, f"line {refused.line} was read"
        assert error.line == refused.line
        return
    documents, first, n_terms = expected
    expected = [
        (number, label, terms)
        for number, (labels, terms) in enumerate(documents)
        for label in labels
    ]
    assert found.documents.tolist() == [number for number, _, _ in expected]
    assert found.y.tolist() == [label for _, label, _ in expected]
    assert found.n_unlabelled == sum(not labels for labels, _ in documents)
    assert found.X.shape == (len(expected), n_terms)
    found.X.check_format(full_check=True)
    for row, (_, _, terms) in enumerate(expected):
        part = slice(found.X.indptr[row], found.X.indptr[row + 1])
        kept = sorted((term - first, count) for term, count in terms.items() if count)
        assert list(zip(found.X.indices[part], found.X.data[part], strict=True)) == kept


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("readers") / "data.txt"


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
@examples(150)
def test_valid_files(path, name, data):
    text = data.draw(files(name))
    READERS[name][1](text)  # refuses none of them
    assert_same(path, text, name, data.draw(st.sampled_from([8, 1 << 22])))


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
@examples(300)
def test_changed_files(path, name, data):
    text = data.draw(changed_files(name))
    assert_same(path, text, name, data.draw(st.sampled_from([8, 1 << 22])))


@given(value=st.floats(0, 2**53), digits=st.integers(1, 25))
@examples(300)
def test_numbers_equal_python_floats(path, value, digits):
    texts = [repr(value), f"{value:.{digits}g}", f"{value:.{digits}f}", f"{value:.{digits}e}"]
    texts = [text for text in texts if float(text) <= 2**53]
    path.write_text("1 " + " ".join(f"{term}:{text}" for term, text in enumerate(texts)))
    expected = np.array([float(text) for text in texts])
    assert np.array_equal(read_lshtc(path, n_terms=4).X.toarray()[0, : len(texts)], expected)
