"""What holds for every graph, cover, sample and bound."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longtail.paper import theory
from longtail.paper.theory import FractionalCover, SampleSizes, sampling_constants
from tests.conftest import examples


@st.composite
def graphs(draw, max_vertices=8):
    """A number of vertices and a list of edges between them."""
    n_vertices = draw(st.integers(1, max_vertices))
    possible = [[a, b] for b in range(n_vertices) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(possible), unique_by=tuple)) if possible else []
    return n_vertices, edges


@st.composite
def nested_graphs(draw):
    """A graph and one inside it, the vertices of which are renumbered from 0."""
    n_vertices, edges = draw(graphs())
    kept = sorted(draw(st.sets(st.integers(0, n_vertices - 1), min_size=1)))
    number = {v: i for i, v in enumerate(kept)}
    inside = [[number[a], number[b]] for a, b in edges if a in number and b in number]
    chosen = draw(st.lists(st.sampled_from(inside), unique_by=tuple)) if inside else []
    return (n_vertices, edges), (len(kept), chosen)


@examples(40)
@given(nested_graphs())
def test_lemma_1_chromatic_number_is_monotone(pair):
    outer, inner = pair
    outer_number = theory.fractional_chromatic_number(*outer)
    assert theory.fractional_chromatic_number(*inner) <= outer_number + 1e-9


@examples(40)
@given(graphs())
def test_chromatic_number_is_at_least_vertices_over_largest_independent_set(graph):
    n_vertices, edges = graph
    largest = max(len(s) for s in theory.maximal_independent_sets(n_vertices, edges))
    number = theory.fractional_chromatic_number(n_vertices, edges)
    assert n_vertices / largest - 1e-9 <= number <= n_vertices + 1e-9


@examples(40)
@given(graphs())
def test_single_vertices_always_cover(graph):
    n_vertices, edges = graph
    sets = tuple(np.array([v]) for v in range(n_vertices))
    assert theory.check_cover(edges, n_vertices, FractionalCover(sets, np.ones(n_vertices)))


documents_of_pairs = st.lists(st.integers(0, 5), min_size=1, max_size=18)


@examples(40)
@given(documents_of_pairs)
def test_document_cover_is_exact_proper_and_minimal(documents):
    graph = theory.dependency_graph(documents)
    cover = theory.document_cover(documents)
    assert theory.check_cover(graph.edges, graph.n_vertices, cover)
    number = theory.fractional_chromatic_number(graph.n_vertices, graph.edges)
    assert math.isclose(cover.weight, number, abs_tol=1e-9)


@examples(40)
@given(st.integers(2, 6), st.lists(st.integers(0, 100), min_size=1, max_size=8))
def test_transformation_pairs_the_true_class_with_every_other(n_classes, numbers):
    y = np.array(numbers) % n_classes
    features = np.broadcast_to(np.arange(n_classes)[:, None], (len(y), n_classes, 1))
    pairs = theory.transform(features, y, n_classes)
    assert pairs.n_pairs == len(y) * (n_classes - 1)
    assert np.all(pairs.classes[:, 0] < pairs.classes[:, 1])
    true = np.where(pairs.labels > 0, pairs.classes[:, 0], pairs.classes[:, 1])
    np.testing.assert_array_equal(true, y[pairs.documents])
    assert len({(i, *c) for i, c in zip(pairs.documents, pairs.classes.tolist(), strict=True)}) == (
        pairs.n_pairs
    )


sizes_and_retention = st.lists(
    st.tuples(st.integers(1, 1000), st.floats(0.01, 1.0)), min_size=2, max_size=10
)


@examples(60)
@given(sizes_and_retention)
def test_constants_are_ordered(classes):
    class_sizes, retention = zip(*classes, strict=True)
    theorem, lemma, kept = (
        sampling_constants(class_sizes, retention, form)
        for form in ("theorem", "lemma", "retention")
    )
    total = sum(retention)
    assert math.isclose(lemma.alpha, total * theorem.alpha)
    assert math.isclose(lemma.beta, total * theorem.beta)
    # No distribution can be at least as large as another everywhere and larger somewhere.
    assert lemma.alpha >= 1 - 1e-12
    assert 1 - 1e-12 <= kept.alpha <= kept.beta * (1 + 1e-12)
    for constants in (theorem, lemma):
        assert constants.proved.slow <= math.sqrt(constants.alpha * constants.beta) + 1e-9
    # The variance of π is at most (Z - min π)(max π - Z) <= Z max π.
    assert kept.proved.slow <= math.sqrt(kept.alpha * kept.beta) + 1e-9
    assert kept.proved.fast <= kept.beta


@examples(40)
@given(sizes_and_retention, st.floats(0.001, 0.999), st.integers(1, 9), st.floats(0.0, 1.0))
def test_more_of_anything_lowers_the_bound(classes, delta, adversaries, risk):
    class_sizes, retention = np.array((classes * 6)[:11]).T  # eleven classes, for κ up to 10
    constants = sampling_constants(class_sizes, retention)

    def total(m, sampled, kappa, delta):
        sizes = SampleSizes(m, sampled, kappa, 11)
        complexity = theory.zero_one_complexity_bound(10, sampled)
        return theory.theorem_2a(risk, complexity, constants, sizes, delta).total

    base = total(1000, 100, adversaries, delta)
    assert total(2000, 100, adversaries, delta) <= base
    assert total(1000, 200, adversaries, delta) <= base
    assert total(1000, 100, adversaries + 1, delta) <= base
    assert total(1000, 100, adversaries, delta / 2) >= base
