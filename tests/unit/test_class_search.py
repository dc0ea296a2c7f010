"""Search among names: an index with changes gives what a new index of everything gives."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longtail.class_search import ClassSearch, compare, fold
from tests.conftest import examples

NAMES = st.text("abc é", min_size=1, max_size=6).filter(lambda name: bool(name.strip()))
CLASSES = st.dictionaries(NAMES, st.none() | NAMES, min_size=1, max_size=12)


def make(described: dict[str, str | None], before: ClassSearch | None = None) -> ClassSearch:
    texts = {label: text for label, text in described.items() if text}
    return ClassSearch.index(np.unique(list(described)), texts, before)


@examples(100)
@given(CLASSES, CLASSES, CLASSES, NAMES)
def test_changes_are_found_as_if_all_was_indexed_anew(
    first: dict[str, str | None], second: dict[str, str | None], third: dict[str, str | None],
    query: str,
) -> None:  # fmt: skip
    names = make(third, make(second, make(first)))
    assert names.search(query, 50) == make(third).search(query, 50)


def test_a_class_goes_before_another_of_the_same_text_whatever_changed_last() -> None:
    described = {"b": None, "a": "b"}
    names = make(described, make({"a": None}, make({"a": "b"})))
    assert (
        names.search("b", 9) == make(described).search("b", 9) == [("b", "prefix"), ("a", "prefix")]
    )


def test_a_text_that_stays_after_a_change_is_found_by_its_new_words_alone() -> None:
    names = make({"a": "second", "b": None}, make({"a": "second"}, make({"a": "first"})))
    assert names.search("second", 9) == [("a", "prefix")]
    assert names.search("first", 9) == []


@examples(100)
@given(CLASSES, NAMES)
def test_every_name_with_a_prefix_is_found_exact_ones_first(
    described: dict[str, str | None], query: str
) -> None:
    found = make(described).search(query, 100)
    named = {label: {fold(label), fold(text or label)} for label, text in described.items()}
    expected = {
        label for label, names in named.items() if any(n.startswith(fold(query)) for n in names)
    }
    assert {label for label, how in found if how == "prefix"} == expected
    exact = {label for label, names in named.items() if fold(query) in names}
    assert {label for label, _ in found[: len(exact)]} == exact
    assert len({label for label, _ in found}) == len(found)


def test_a_word_of_a_name_goes_before_names_that_are_only_alike() -> None:
    names = ClassSearch.index(np.array(["onerous one", "terror", "x onerror=alert"]))
    assert names.search("onerror", 3)[0] == ("x onerror=alert", "fuzzy")


@examples(200)
@given(
    st.text("ab\0é\U0001f43b", min_size=1, max_size=90),
    st.lists(st.text("ab\0é\U0001f43b", max_size=90), max_size=5),
)
def test_likeness_is_that_of_the_longest_common_subsequence(query: str, names: list[str]) -> None:
    letters = query[:64].rstrip("\0")
    expected = []
    for name in names:
        start = name[: len(query[:64]) + 2]
        longest = [0] * (len(start) + 1)
        for letter in letters.replace("\0", "\1"):
            row = [0]
            for j, other in enumerate(start):
                is_same = letter == other
                row.append(longest[j] + 1 if is_same else max(row[j], longest[j + 1]))
            longest = row
        expected.append(2.0 * longest[-1] / (len(query[:64]) + len(start)))
    assert compare(query, names).tolist() == expected


def test_the_work_of_a_search_is_bounded() -> None:
    """Counted in calls of functions: letters are compared all at once."""
    letters = ("".join(some) for some in itertools.product("ab", repeat=11))
    names = ClassSearch.index(np.array([(start * 90)[:990] for start in letters]))
    n_calls = 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal n_calls
        n_calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        found = names.search("ab" * 500, 500)
    finally:
        sys.setprofile(None)
    assert len(found) == 500
    assert n_calls < 100_000
