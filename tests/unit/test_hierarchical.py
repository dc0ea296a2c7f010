"""Hierarchical measures against cases computed by hand, and against hiclass."""

import numpy as np
import pytest

from longtail import TextClassifier
from longtail.metrics import hierarchical_scores
from longtail.metrics.evaluation import evaluate
from longtail.taxonomy import Hierarchy

#        animal                   (the only root: the top)
#     bird     mammal
#   owl duck  cat  dog
#              tabby
PAIRS = {"bird": "animal", "mammal": "animal", "owl": "bird", "duck": "bird", "cat": "mammal",
         "dog": "mammal", "tabby": "cat"}  # fmt: skip
ANIMALS = Hierarchy.of(list(PAIRS), list(PAIRS.values()))


@pytest.mark.parametrize(
    ("true", "predicted", "precision", "recall", "lca_f1", "distance"),
    [
        ("owl", "owl", 1, 1, 1, 0),
        ("owl", "duck", 1 / 2, 1 / 2, 2 / 4, 2),  # they meet in bird
        ("owl", "bird", 1, 1 / 2, 2 / 3, 1),  # a back-off
        ("owl", "tabby", 0, 0, 2 / 7, 5),  # they meet at the top
        ("tabby", "dog", 1 / 2, 1 / 3, 2 / 5, 3),
        ("owl", None, 0, 0, 2 / 4, 2),  # no answer is the top
        ("owl", "newt", 0, 0, 2 / 5, 3),  # no node: below the top
        ("newt", "newt", 1, 1, 1, 0),
        ("owl", "animal", 0, 0, 2 / 4, 2),  # the top itself says nothing
    ],
)
def test_cases_by_hand(true, predicted, precision, recall, lca_f1, distance):
    found = hierarchical_scores(ANIMALS, [true], [predicted])
    assert (found.precision, found.recall) == pytest.approx((precision, recall))
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
    assert found.f1 == pytest.approx(f1)
    assert (found.lca_f1, found.distance) == pytest.approx((lca_f1, distance))


def test_levels():
    true = ["owl", "owl", "tabby", "dog", "newt"]
    found = hierarchical_scores(ANIMALS, true, ["duck", "owl", "cat", "bird", "owl"])
    assert found.levels == {1: (3 / 5, 5), 2: (2 / 4, 4), 3: (0.0, 1)}


def test_several_parents_and_roots():
    graph = Hierarchy.of(["a", "a", "b", "c", "e"], ["x", "y", "x", "y", "z"])
    assert hierarchical_scores(graph, ["a"], ["b"]).distance == 2
    assert hierarchical_scores(graph, ["a"], ["c"]).distance == 2
    assert hierarchical_scores(graph, ["b"], ["c"]).distance == 4  # over the top above x and y
    assert hierarchical_scores(graph, ["a"], ["b"]).recall == pytest.approx(1 / 3)


def test_label_sets():
    found = hierarchical_scores(ANIMALS, [["owl", "cat"], []], [["duck"], ["dog"]])
    assert found.precision == pytest.approx(1 / 4)
    assert found.recall == pytest.approx(1 / 4)
    assert np.isnan(found.lca_f1)


def test_numbers_that_are_no_nodes():
    hierarchy = Hierarchy.of([10, 11], [20, 20])
    assert hierarchical_scores(hierarchy, [10], [0]).precision == 0
    assert hierarchical_scores(hierarchy, [1], [1]).precision == 1


def test_equal_to_hiclass():
    hiclass = pytest.importorskip("hiclass.metrics")
    rng = np.random.default_rng(0)
    parents = {f"c{i}": f"b{i // 4}" for i in range(32)} | {f"b{i}": f"a{i // 3}" for i in range(8)}
    hierarchy = Hierarchy.of(list(parents), list(parents.values()))
    true, predicted = ([f"c{i}" for i in rng.integers(0, 32, 500)] for _ in range(2))
    paths = [np.array([hierarchy.path(label) for label in labels]) for labels in (true, predicted)]
    found = hierarchical_scores(hierarchy, true, predicted)
    for name in ("precision", "recall", "f1"):
        assert getattr(found, name) == pytest.approx(getattr(hiclass, name)(*paths))


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [(["owl"], [], "1 true and 0 predicted"), ([], [], "no documents")],
)
def test_what_is_refused(true, predicted, message):
    with pytest.raises(ValueError, match=message):
        hierarchical_scores(ANIMALS, true, predicted)


@pytest.mark.filterwarnings("ignore::longtail.exceptions.UncalibratedWarning")
def test_evaluate_measures_where_there_is_a_hierarchy():
    texts = ["a brown bear", "bears eat honey", "the red fox", "a fox runs", "an owl hoots"]
    labels = ["mammal/bear", "mammal/bear", "mammal/fox", "mammal/fox", "bird/owl"]
    model = TextClassifier(random_state=0).fit(texts, labels)
    assert "hierarchical" not in evaluate(model, [(texts, labels)]).as_dict()
    result = evaluate(model.set_hierarchy("/"), [(["honey", "red bears"], [labels[0], labels[2]])])
    found = result.as_dict()["hierarchical"]
    assert found["levels"][1] == (1.0, 2)
    assert found["f1"] >= 0.75
