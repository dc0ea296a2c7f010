"""Folders of counts, as benchmarks read them."""

import json
import lzma

import numpy as np
import pytest
from benchmark_data import write_counts
from hypothesis import given
from hypothesis import strategies as st
from longtail_bench.data import find_data_set, find_data_sets, load_counts, name_data_set
from longtail_bench.label_set_data import LabelSetDataset
from longtail_bench.table_data import (
    TableColumns,
    draw_test_documents,
    load_data,
    load_single_labels,
)

from longtail.datasets import DataFormatError
from tests.conftest import make_problem


@pytest.fixture
def letters(tmp_path):
    problem = make_problem(n_documents=300, n_classes=20, n_terms=60)
    return write_counts(tmp_path / "data" / "letters", problem.X, problem.y, 220)


def test_sets_are_found_by_name(letters):
    (letters.parent / "empty").mkdir()
    assert find_data_sets(letters.parent) == {"letters": letters}
    assert find_data_set("letters", letters.parent) == letters
    assert find_data_set(letters, None) == letters


def test_absent_sets_say_where_was_looked(letters, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder of data sets at .*nowhere"):
        find_data_sets(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"counts\.npz is missing in each folder of"):
        find_data_sets(letters)
    with pytest.raises(
        FileNotFoundError, match=r"no data set digits: .*digits/counts\.npz.*letters"
    ):
        find_data_set("digits", letters.parent)
    with pytest.raises(FileNotFoundError, match=r"counts\.npz is missing in .*data"):
        load_counts(letters.parent)


def test_counts_without_names(letters):
    problem = make_problem(n_documents=300, n_classes=20, n_terms=60)
    data = load_counts(letters)
    np.testing.assert_array_equal(data.X_train.toarray(), problem.X[:220])
    np.testing.assert_array_equal(data.X_test.toarray(), problem.X[220:])
    np.testing.assert_array_equal(data.y_test, problem.y[220:])
    np.testing.assert_array_equal(data.classes, np.arange(20))
    np.testing.assert_array_equal(data.terms, np.arange(60))


def test_names_and_classes_without_training_documents(tmp_path):
    X, y = np.eye(4, 3) + 1, np.array([2, 0, 1, 2])
    folder = write_counts(tmp_path / "unseen", X, y, n_train=2)
    (folder / "classes.txt.xz").write_bytes(lzma.compress(b"zero\none\ntwo\n"))
    (folder / "terms.txt.xz").write_bytes(lzma.compress(b"a\nb\nc\n"))
    data = load_counts(folder)
    assert data.n_train_classes == 2
    assert data.n_unseen == 1
    assert data.classes.tolist() == ["zero", "two", "one"]
    assert data.classes[data.y_train].tolist() == ["two", "zero"]
    assert data.classes[data.y_test].tolist() == ["one", "two"]
    assert data.terms.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"test_indptr": None}, "there is no array test_indptr"),
        ({"train_y": np.array([0])}, "one class id for each"),
        ({"train_y": np.array([0, 7, 1])}, "class ids from 0 to 1; got 0 to 7"),
        ({"train_indices": np.array([0, 1, 9, 0, 1, 2, 0, 1, 2])}, "cannot be read"),
        ({"shape": np.array([3, 1])}, "cannot be read"),
        ({"train_y": np.array([None, 1, 1])}, "cannot be read"),
    ],
)
def test_bad_counts(tmp_path, replaced, message):
    folder = write_counts(
        tmp_path / "bad", np.ones((4, 3)), np.array([0, 1, 1, 0]), n_train=3, **replaced
    )
    with pytest.raises(DataFormatError, match=message):
        load_counts(folder)


def test_counts_that_are_no_archive(tmp_path):
    (tmp_path / "counts.npz").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(DataFormatError, match="cannot be read"):
        load_counts(tmp_path)


def test_wrong_number_of_names(letters):
    (letters / "classes.txt.xz").write_bytes(lzma.compress(b"one\ntwo\n"))
    with pytest.raises(DataFormatError, match="must have 20 lines"):
        load_counts(letters)


def write_table(path, n_documents=60):
    lines = [f"class {i % 6},term{i % 6} word{i % 7} common" for i in range(n_documents)]
    path.write_text("\n".join(["label,body", *lines, "alone,single common"]) + "\n")
    return path


def test_a_table_is_split_and_counted(tmp_path):
    path = write_table(tmp_path / "animals.csv")
    assert find_data_set(path, None) == path
    assert name_data_set(path) == "animals"
    data = load_data(path, TableColumns(["body"], "label"))
    again = load_data(path, TableColumns(["body"], "label"))
    assert (data.X_test != again.X_test).nnz == 0
    assert data.X_train.shape[0] + data.X_test.shape[0] == 61
    assert data.X_test.shape[0] == 12
    assert data.n_unseen == 0
    assert "alone" in data.classes[data.y_train]
    assert "single" not in data.terms  # in one training document only
    for document, c in zip(data.X_test.toarray(), data.y_test, strict=True):
        named = [term for term, n in zip(data.terms, document, strict=True) if n]
        assert f"term{data.classes[c][-1]}" in named


def test_a_table_needs_its_columns(tmp_path):
    path = write_table(tmp_path / "animals.csv")
    with pytest.raises(ValueError, match=r"--text is missing: animals\.csv is a table"):
        load_data(path)
    with pytest.raises(ValueError, match="--label is missing"):
        load_data(path, TableColumns(["body"]))
    with pytest.raises(DataFormatError, match="no column"):
        load_data(path, TableColumns(["text"], "label"))
    path.write_text("label,body\na,one\nb,two\n")
    with pytest.raises(DataFormatError, match="every class has a single document"):
        load_data(path, TableColumns(["body"], "label"))


def test_documents_to_test_come_from_a_second_table(tmp_path):
    path = write_table(tmp_path / "animals.csv")
    test = tmp_path / "test.csv"
    test.write_text("label,body\nclass 2,term2 word1\nnew,term1 unheard\nclass 0,term0\n")
    data = load_data(path, TableColumns(["body"], "label", test=test))
    assert data.X_train.shape[0] == 61
    assert data.classes[data.y_test].tolist() == ["class 2", "new", "class 0"]
    assert (data.n_train_classes, data.n_unseen) == (7, 1)
    assert "unheard" not in data.terms
    assert data.test_texts == ["term2 word1", "term1 unheard", "term0"]
    assert len(data.train_texts) == 61
    for text, row in zip(data.train_texts, data.X_train.toarray(), strict=True):
        assert set(data.terms[row > 0].tolist()) <= set(text.split())


def test_tables_of_label_sets(tmp_path):
    path = tmp_path / "animals.jsonl"
    sets = [[f"c{i % 5}", f"c{(i + i % 3) % 5}"][: 1 + (i % 3 > 0)] for i in range(60)]
    rows = [{"body": " ".join(f"t{c}" for c in labels), "y": labels} for labels in sets]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = load_data(path, TableColumns(["body"], "y"))
    assert isinstance(data, LabelSetDataset)
    assert (data.X_train.shape[0], data.X_test.shape[0], data.n_train_classes) == (48, 12, 5)
    for texts, labels in ((data.train_texts, data.train), (data.test_texts, data.test)):
        found = [sorted(f"tc{c}" for c in row) for row in labels.to_lists()]
        assert found == [sorted(text.split()) for text in texts]
    with pytest.raises(ValueError, match="documents have label sets"):
        load_single_labels(path, TableColumns(["body"], "y"))
    joined = tmp_path / "animals.csv"
    lines = [f"{row['body']},{'; '.join(row['y'])}\n" for row in rows]
    joined.write_text("".join(["body,y\n", *lines]))
    separated = load_data(joined, TableColumns(["body"], "y", ";"))
    assert separated.test.to_lists() == data.test.to_lists()
    assert (separated.X_train != data.X_train).nnz == 0
    test = tmp_path / "test.jsonl"
    test.write_text('{"body": "tc1 tc0", "y": ["a new one", "c1", "c0"]}\n')
    data = load_data(path, TableColumns(["body"], "y", test=test))
    assert (data.n_train_classes, data.test.to_lists()) == (5, [[0, 1, 5]])
    test.write_text('{"body": "tc1 tc0", "y": "c1"}\n')
    with pytest.raises(DataFormatError, match="'y' holds one label each, but lists in animals"):
        load_data(path, TableColumns(["body"], "y", test=test))


def test_a_file_of_counts_is_a_data_set(letters):
    file = letters / "counts.npz"
    assert find_data_set(file, None) == file
    assert name_data_set(file) == name_data_set(letters) == "letters"
    assert (load_data(file).X_train != load_data(letters).X_train).nnz == 0


@given(st.lists(st.integers(0, 5), min_size=1, max_size=80))
def test_no_class_loses_all_its_documents(labels):
    y = np.unique(labels, return_inverse=True)[1]
    tested = draw_test_documents(y)
    for c in range(y.max() + 1):
        n, n_tested = np.count_nonzero(y == c), np.count_nonzero(tested[y == c])
        assert n_tested < n
        assert n_tested <= 0.2 * n + 1
