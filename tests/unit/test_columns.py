"""Columns of texts and labels: every form gives the same, nothing is confused, errors say where."""

from __future__ import annotations

import numpy as np
import pytest

from longtail._columns import as_labels, as_texts, join_labels

BIG = 2**53


@pytest.mark.parametrize(
    ("y", "dtype"),
    [
        (["a", "b"], "<U1"),
        (("a", "b"), "<U1"),
        ([np.str_("a"), "b"], "<U1"),
        (np.array(["a", "b"], object), "O"),
        (np.array(["a", "b"], np.dtypes.StringDType()), "<U1"),
        ([1, 2], "int64"),
        ([1, np.int8(2)], "int64"),
        ([2**63, 1], "uint64"),
        (np.array([1, 2], np.int16), "int16"),
        (np.array([1, 2], object), "int64"),
        ([True, False], "bool"),
        ([1.0, 2], "float64"),
        ([BIG, BIG + 1], "int64"),
        (iter(["a", "b"]), "<U1"),
    ],
)
def test_labels_keep_their_type(y, dtype):
    assert as_labels(y).dtype == dtype


def test_labels_of_libraries():
    pandas, polars, pyarrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    for column in (
        pandas.Series(["b", "a"]),
        pandas.Series(["b", "a"], dtype="string"),
        pandas.Categorical(["b", "a"]),
        polars.Series(["b", "a"]),
        polars.Series(["b", "a"], dtype=polars.Categorical),
        pyarrow.array(["b", "a"]),
        pyarrow.chunked_array([["b"], ["a"]]),
        pyarrow.array(["b", "a"]).dictionary_encode(),
    ):
        assert as_labels(column).tolist() == as_texts(column) == ["b", "a"]
    ids = [BIG + 1, 3]
    for column in (
        pandas.Series(ids),
        pandas.Series(ids, dtype="Int64"),
        pandas.Categorical(ids),
        polars.Series(ids),
        pyarrow.array(ids),
    ):
        assert as_labels(column).dtype == np.int64
        assert as_labels(column).tolist() == ids


def test_missing_values_of_libraries():
    pandas, polars, pyarrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    for column in (
        ["a", pandas.NA],
        pandas.Series(["a", None], dtype="string"),
        pandas.Series(["a", None]),
        pandas.Series([1, None], dtype="Int64"),
        pandas.Series([1, None]),
        pandas.Categorical(["a", None]),
        polars.Series(["a", None]),
        pyarrow.array(["a", None]),
        np.array(["a", np.nan], np.dtypes.StringDType(na_object=np.nan)),
        np.array([1.0, np.nan]),
        ["a", float("nan")],
        ["a", None],
    ):
        with pytest.raises(ValueError, match="the label of document 1 is missing"):
            as_labels(column)
    with pytest.raises(ValueError, match="document 1 is missing"):
        as_texts(pandas.Series(["a", None]))
    for table in (
        pandas.DataFrame({"a": ["x"]}),
        polars.DataFrame({"a": ["x"]}),
        pyarrow.table({"a": ["x"]}),
    ):
        with pytest.raises(ValueError, match="texts must have one dimension"):
            as_texts(table)
        with pytest.raises(ValueError, match="y must have one dimension"):
            as_labels(table)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y should be a 1d array"),
        ("label", r"y must be a list of labels; got one str"),
        ({"a", "b"}, "got a set, whose order is not that of documents"),
        ({"a": 1}, "got a dict"),
        (["a", {"b"}], r"document 1 has \{'b'\} of type set"),
        (["a", ("b",)], r"document 1 has \('b',\) of type tuple"),
        ([b"a"], "document 0 has b'a' of type bytes"),
        (np.array(["2026-01-01"], "M8[D]"), "document 0 has datetime.date"),
        ([1, "a"], r"different types: 1 \(document 0\), 'a' \(document 1\)"),
        ([np.str_("a"), np.int64(1)], r"'a' \(document 0\), 1 \(document 1\)"),
        ([True, 2], "different types: True"),
        ([1.0, BIG + 1], f"the label {BIG + 1} of document 1 has no equal among floats"),
        ([0.5, 10**400], "has no equal among floats"),
        ([2**63, -1], "which no integer of 64 bits holds"),
        ([10**30], "which no integer of 64 bits holds"),
        (["x", "x\0"], r"the label 'x\\x00' of document 1 ends with a NUL"),
        (np.array(["x", "x\0"], object), "ends with a NUL"),
    ],
)
def test_what_is_no_column_of_labels(y, message):
    with pytest.raises(ValueError, match=message):
        as_labels(y)


def test_one_long_label_does_not_widen_the_others():
    labels = as_labels(["a" * 1_000_000, *map(str, range(1000))])
    assert labels.dtype == object
    assert len(np.unique(labels)) == 1001


def test_chunks_of_labels_are_checked_together():
    assert join_labels([np.array(["a"]), np.array(["bcd"])]).tolist() == ["a", "bcd"]
    joined = join_labels([np.array([1]), np.array([2**63], np.uint64)])
    assert joined.dtype == np.uint64
    with pytest.raises(ValueError, match="different types"):
        join_labels([np.array([1]), np.array(["a"])])
    with pytest.raises(ValueError, match="no equal among floats"):
        join_labels([np.array([BIG + 1]), np.array([1.0])])
