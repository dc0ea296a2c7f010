"""How results print, and what they give to other tools."""

from __future__ import annotations

import typing

import numpy as np
import pytest

import longtail
from longtail import LongTailClassifier, Teacher, TextClassifier, TopK


@pytest.fixture
def top():
    classes = np.array([["ship", "boat"], ["<b>", ""], ["", ""]])
    scores = np.array([[0.75, 0.2], [0.9, 0.0], [0.0, 0.0]])
    valid = np.array([[True, True], [True, False], [False, False]])
    return TopK(classes, scores, valid, none=np.array([0.05, 0.1, 1.0]))


def test_a_document_of_a_ranking(top):
    assert top[0] == [("ship", 0.75), ("boat", 0.2)]
    assert top[-2] == [("<b>", 0.9)]
    assert top[2] == []
    with pytest.raises(IndexError):
        top[3]


def test_several_documents_of_a_ranking(top):
    last = top[1:]
    assert isinstance(last, TopK)
    assert last[0] == [("<b>", 0.9)]
    assert last.none.tolist() == [0.1, 1.0]
    classes, scores = top  # still unpacks
    assert classes is top.classes
    assert scores is top.scores


def test_a_ranking_prints_as_a_list(top):
    assert repr(top).splitlines() == [
        "TopK(3 documents, k=2)",
        "  0: ship 0.75, boat 0.2",
        "  1: <b> 0.9",
        "  2: no candidate",
    ]
    many = TopK(np.full((12, 1), "owl"), np.ones((12, 1)))
    assert repr(many).splitlines()[-1] == "  ... 2 more"


def test_a_ranking_is_a_table_in_a_notebook(top):
    table = top._repr_html_()
    assert table.count("<tr>") == 1 + 2 + 1 + 1
    assert "&lt;b&gt;" in table
    assert "<b>" not in table


def test_a_ranking_as_a_data_frame(top):
    frame = top.to_pandas()
    assert frame.columns.tolist() == ["document", "rank", "class", "score"]
    assert frame.values.tolist() == [[0, 1, "ship", 0.75], [0, 2, "boat", 0.2], [1, 1, "<b>", 0.9]]


def test_a_teacher_says_what_it_teaches(tmp_path):
    path = tmp_path / "letters.longtail"
    LongTailClassifier(random_state=0).fit([[1, 0], [0, 1]], ["a", "b"]).save(path)
    teacher = Teacher(path)
    assert repr(teacher) == f"Teacher({str(path)!r}): LongTailClassifier of 2 classes"
    teacher.teach([[1, 1]], ["c"])
    assert repr(teacher).endswith("of 3 classes")
    teacher.undo()
    assert repr(teacher).endswith("of 2 classes")


@pytest.mark.parametrize(
    "method",
    [longtail.load, TextClassifier.predict, LongTailClassifier.predict, Teacher.model.fget],
)
def test_what_methods_return_is_typed(method):
    assert typing.get_type_hints(method)["return"] is not typing.Any
