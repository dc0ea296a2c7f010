"""Label sets in every form in which they come, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from longtail._labels import LabelSets, read_label_sets
from tests.unit.test_sparse import DAMAGE, damaged

LISTS = [["b", "a"], [], ["b"], ["c", "b"]]


def check(sets: object) -> LabelSets:
    assert isinstance(sets, LabelSets)
    return sets


def columns() -> list[object]:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    objects = np.empty(4, object)
    objects[:] = LISTS
    return [
        LISTS,
        tuple(map(tuple, LISTS)),
        [set(labels) for labels in LISTS],
        [np.array(labels, np.str_) for labels in LISTS],
        objects,
        pandas.Series(LISTS),
        polars.Series(LISTS),
        pyarrow.array(LISTS),
        pyarrow.chunked_array([pyarrow.array(LISTS[:1]), pyarrow.array(LISTS[1:])]),
    ]


def test_every_column_of_lists_is_the_same_sets() -> None:
    for column in columns():
        sets = check(read_label_sets(column))
        assert sets.indptr.tolist() == [0, 2, 2, 3, 5]
        assert sets.class_ids.tolist() == [0, 1, 1, 1, 2]
        assert sets.classes.tolist() == ["a", "b", "c"]
        assert sets.form.is_multilabel
        assert not sets.form.is_indicator
        assert sets.to_lists() == [sorted(labels) for labels in LISTS]


@pytest.mark.parametrize("kind", [np.array, sp.csr_array, sp.coo_matrix, sp.csc_array])
@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.float32])
def test_an_indicator_matrix_is_its_columns(kind: object, dtype: type) -> None:
    dense = np.array([[1, 1, 0], [0, 0, 0], [0, 1, 0]], dtype)
    sets = check(read_label_sets(kind(dense)))  # type: ignore[operator]
    assert sets.to_lists() == [[0, 1], [], [1]]
    assert sets.form.n_columns == 3
    assert sets.drop_unused_classes().classes.tolist() == [0, 1]


def test_explicit_zeros_and_duplicates_of_a_sparse_indicator() -> None:
    matrix = sp.csr_array((np.array([0, 1]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    assert check(read_label_sets(matrix)).to_lists() == [[1]]
    doubled = sp.coo_array((np.ones(2), (np.zeros(2, int), np.ones(2, int))), shape=(1, 2))
    with pytest.raises(ValueError, match="document 0 has the value 2"):
        read_label_sets(doubled)


def test_plain_labels_stay_labels_unless_told() -> None:
    assert read_label_sets(["b", "a"]).tolist() == ["b", "a"]  # type: ignore[union-attr]
    assert read_label_sets(np.array([[1], [2]])).shape == (2, 1)  # type: ignore[union-attr]
    assert check(read_label_sets(["b", "a"], multilabel=True)).to_lists() == [["b"], ["a"]]


def test_parts_of_sets() -> None:
    sets = check(read_label_sets(LISTS))
    assert sets.gather(np.array([3, 1, 0])).to_lists() == [["b", "c"], [], ["a", "b"]]
    assert sets.slice(slice(1, 3)).to_lists() == [[], ["b"]]
    assert sets.sizes.tolist() == [2, 0, 1, 2]
    assert sets.class_sizes.tolist() == [1, 3, 1]
    assert sets.has_several
    found = sets.contain(np.array([[0, 2], [0, 1], [1, -1], [2, 0]]))
    assert found.tolist() == [[True, False], [False, False], [True, False], [True, False]]
    assert not LabelSets.single([1, 0], sets.classes).has_several


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["a", "a"]], "label 'a' twice in the set of document 0"),
        ([["a"], ["b", None]], "a label of document 1 is missing"),
        ([[1.0, np.nan]], "a label of document 0 is missing"),
        ([["a"], "b"], "document 1 has 'b'"),
        ([["a"], None], "document 1 has None"),
        ([["a", 1]], "mixes labels of different types"),
        ([[["a"]]], "document 0 has \\['a'\\] of type list"),
        (np.array([[0, 2], [1, 0]]), "document 0 has the value 2"),
        (np.array([[0, np.nan], [1, 0]]), "document 0 has the value nan"),
        (np.array([["a", "b"]]), "Give other labels as a list of lists"),
        (sp.csr_array([[0.5, 1.0]]), "document 0 has the value 0.5"),
    ],
)
def test_what_is_refused(y: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_label_sets(y)


def test_sets_are_refused_where_labels_are_asked_for() -> None:
    with pytest.raises(ValueError, match="multilabel=False"):
        read_label_sets(LISTS, multilabel=False)
    with pytest.raises(ValueError, match='"auto", True or False'):
        read_label_sets(LISTS, multilabel="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.csr_matrix])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_indicator_is_refused(kind: Any, damage: Any) -> None:
    indicator = (np.arange(60).reshape(6, 10) % 3 == 0).astype(np.int64)
    with pytest.raises(ValueError, match=r"y is a damaged cs. matrix of shape"):
        read_label_sets(damaged(kind(indicator), damage))


def test_damaged_indicators_of_other_formats_are_refused() -> None:
    coo = sp.coo_array(np.eye(3))
    coo.coords = (np.array([0, 1, 10**8]), np.array([0, 1, 2]))
    lil = sp.lil_array(np.eye(3))
    lil.rows[1] = [7]
    for matrix in (coo, lil):
        with pytest.raises(ValueError, match="y is a damaged"):
            read_label_sets(matrix)
    with pytest.raises(ValueError, match="y must have two dimensions"):
        read_label_sets(sp.coo_array(np.arange(3)))
    with pytest.raises(ValueError, match="y has 16777217 columns"):
        read_label_sets(sp.csr_array((2, 2**24 + 1)))


def test_an_indicator_that_claims_to_be_canonical_is_not_believed() -> None:
    matrix = sp.csr_array(np.array([[1, 1, 0], [0, 1, 0]]))
    assert matrix.has_canonical_format
    matrix.indices[:2] = [1, 0]
    assert check(read_label_sets(matrix)).class_ids.tolist() == [0, 1, 1]
