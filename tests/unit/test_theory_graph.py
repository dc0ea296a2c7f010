"""Definition 1, Figure 2 and the fractional chromatic number."""

import numpy as np
import pytest

from longtail.paper import theory
from longtail.paper.theory import FractionalCover, graph

FIVE_CYCLE = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]


def test_toy_graph_is_a_triangle_for_each_document():
    toy = theory.dependency_graph(theory.toy_example().documents)
    corners = [(0, 1), (0, 2), (1, 2)]
    triangles = [[first + a, first + b] for first in (0, 3, 6, 9) for a, b in corners]
    assert toy.n_vertices == 12
    assert toy.edges.tolist() == triangles


def test_toy_cover_is_the_three_columns_of_figure_2():
    cover = theory.document_cover(theory.toy_example().documents)
    assert [members.tolist() for members in cover.sets] == [
        [0, 3, 6, 9],
        [1, 4, 7, 10],
        [2, 5, 8, 11],
    ]
    assert cover.weight == 3.0


def test_toy_chromatic_number_is_three():
    toy = theory.dependency_graph(theory.toy_example().documents)
    assert theory.fractional_chromatic_number(12, toy.edges) == pytest.approx(3.0)


def test_chromatic_number_over_the_whole_toy_graph_at_once_is_three():
    # Joined to one component by no edge at all: the 3^4 sets of the undivided graph.
    toy = theory.dependency_graph(theory.toy_example().documents)
    assert len(theory.maximal_independent_sets(12, toy.edges)) == 81
    assert graph._connected_chromatic_number(np.arange(12), toy.edges) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("n_vertices", "edges", "expected"),
    [
        (1, [], 1.0),
        (4, [], 1.0),
        (2, [[0, 1]], 2.0),
        (5, FIVE_CYCLE, 2.5),
        (7, [[i, (i + 1) % 7] for i in range(7)], 7 / 3),
        (6, [[i, (i + 1) % 6] for i in range(6)], 2.0),
        (4, [[a, b] for a in range(4) for b in range(a)], 4.0),
        # A five-cycle and a triangle apart from it: the larger of the two.
        (8, [*FIVE_CYCLE, [5, 6], [6, 7], [5, 7]], 3.0),
    ],
)
def test_chromatic_numbers_known_by_hand(n_vertices, edges, expected):
    assert theory.fractional_chromatic_number(n_vertices, edges) == pytest.approx(expected)


def test_sampled_pairs_need_only_as_many_sets_as_adversaries():
    documents = np.repeat(np.arange(50), 4)
    cover = theory.document_cover(documents)
    edges = theory.dependency_graph(documents).edges
    assert theory.check_cover(edges, 200, cover)
    assert cover.weight == 4.0
    assert theory.fractional_chromatic_number(200, edges) == pytest.approx(4.0)


def test_documents_may_have_different_numbers_of_pairs_in_any_order():
    documents = [2, 0, 2, 1, 2]
    cover = theory.document_cover(documents)
    assert [members.tolist() for members in cover.sets] == [[0, 1, 3], [2], [4]]
    assert theory.check_cover(theory.dependency_graph(documents).edges, 5, cover)


def test_fractional_weights_are_accepted():
    # The five-cycle: its five maximal independent sets, half of each; every vertex is in two.
    sets = tuple(np.array([i, (i + 2) % 5]) for i in range(5))
    report = theory.check_cover(FIVE_CYCLE, 5, FractionalCover(sets, np.full(5, 0.5)))
    assert report
    assert report.weight == 2.5


def test_checker_tells_improper_from_inexact():
    improper = FractionalCover((np.array([0, 1]),), np.array([1.0]))
    report = theory.check_cover([[0, 1]], 2, improper)
    assert (report.proper, report.exact, bool(report)) == (False, True, False)
    assert report.problems == ("set 0 holds the connected vertices 0 and 1",)

    inexact = FractionalCover((np.array([0]), np.array([1])), np.array([1.0, 0.5]))
    report = theory.check_cover([[0, 1]], 2, inexact)
    assert (report.proper, report.exact) == (True, False)
    assert report.problems == ("the weights around vertex 1 add up to 0.5, not 1",)


def test_checker_refuses_weights_outside_the_unit_interval():
    cover = FractionalCover((np.array([0]), np.array([0])), np.array([2.0, -1.0]))
    report = theory.check_cover([], 1, cover)
    assert report.problems == ("weight 0 is 2, outside [0, 1]", "weight 1 is -1, outside [0, 1]")


def test_a_vertex_named_twice_in_a_set_counts_once():
    assert theory.check_cover([], 1, FractionalCover((np.array([0, 0]),), np.array([1.0])))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.check_cover([[0, 2]], 2, FractionalCover((), np.array([]))), "got 0 to 2"),
        (lambda: theory.fractional_chromatic_number(2, [[1, 1]]), "edge 0 joins 1 with itself"),
        (lambda: theory.fractional_chromatic_number(0, []), "n_vertices must be an integer"),
        (lambda: theory.fractional_chromatic_number(3, [[0, 1, 2]]), r"shape \(n_edges, 2\)"),
        (
            lambda: theory.check_cover([], 1, FractionalCover((np.array([3]),), np.array([1.0]))),
            "set 0 holds 3 to 3",
        ),
        (
            lambda: theory.check_cover([], 1, FractionalCover((), np.array([1.0]))),
            "got 0 sets and 1 weights",
        ),
        (lambda: theory.dependency_graph([[0, 1]]), "documents must be one-dimensional"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_graph_too_large_for_the_program_is_refused():
    # Ten triangles have 3^10 maximal independent sets.
    edges = theory.dependency_graph(np.repeat(np.arange(10), 3)).edges
    with pytest.raises(ValueError, match="more than 1000 maximal independent sets"):
        theory.maximal_independent_sets(30, edges, limit=1000)
