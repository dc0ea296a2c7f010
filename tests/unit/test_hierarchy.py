"""Hierarchies: how they are read, what they refuse, and their sums against plain dicts."""

import contextlib
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.exceptions import HierarchyWarning
from longtail.taxonomy import Hierarchy, read_hierarchy, read_paths
from longtail.taxonomy.hierarchy import MAX_DEPTH
from longtail.taxonomy.sums import contain_ancestors, find_best_by_depth, rank_level
from tests import oracle_hierarchy as oracle
from tests.conftest import examples

TREES = np.array(["beech", "elm", "oak", "rose"])
PARENTS = {"oak": "tree", "elm": "tree", "beech": "tree", "tree": "plant", "rose": "plant"}


def as_pairs(hierarchy):
    owners = np.repeat(np.arange(hierarchy.n_nodes), np.diff(hierarchy.indptr))
    return set(
        zip(
            hierarchy.nodes[owners].tolist(),
            hierarchy.nodes[hierarchy.parents].tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize(
    "given",
    [
        PARENTS,
        {child: [parent, parent] for child, parent in PARENTS.items()} | {"plant": None},
        list(PARENTS.items()),
        np.array(list(PARENTS.items())),
        pd.DataFrame({"child": list(PARENTS), "parent": list(PARENTS.values())}),
        [*PARENTS.items(), ("plant", float("nan")), ("plant", ""), ("plant", [])],
        Hierarchy.of(list(PARENTS), list(PARENTS.values())),
    ],
)
def test_every_form_is_read_alike(given):
    hierarchy = read_hierarchy(given, TREES)
    assert as_pairs(hierarchy) == set(PARENTS.items())
    assert hierarchy.path("oak") == ("plant", "tree", "oak")
    children = hierarchy.child_ids(hierarchy.find_one("tree"))
    assert hierarchy.nodes[children].tolist() == ["beech", "elm", "oak"]
    assert hierarchy.branch("tree").tolist() == ["beech", "elm", "oak", "tree"]
    assert [hierarchy.depth(node) for node in ("plant", "tree", "rose", "oak")] == [0, 1, 1, 2]


def test_several_roots_are_below_the_top():
    hierarchy = read_hierarchy({"oak": "tree", "rose": "flower"}, np.array(["oak", "rose"]))
    assert [hierarchy.depth(node) for node in ("tree", "flower", "oak")] == [1, 1, 2]


def test_the_longest_of_several_ways_counts():
    hierarchy = Hierarchy.of(["a", "a", "b", "c"], ["d", "b", "c", "d"])
    assert hierarchy.path("a") == ("d", "c", "b", "a")
    assert hierarchy.parents_of("a") == ["b", "d"]
    assert hierarchy.depth("a") == 3


def test_paths():
    labels = np.array(["/usr/bin", "a b/c", "drm/amd/display", "drm//i915", "net", "x/"])
    assert as_pairs(read_paths(labels, "/")) == {
        ("/usr/bin", "/usr"),
        ("a b/c", "a b"),
        ("drm/amd/display", "drm/amd"),
        ("drm/amd", "drm"),
        ("drm//i915", "drm"),
        ("x/", "x"),
    }


def test_numbers():
    hierarchy = read_hierarchy({3: 30, 5: 30}, np.array([3, 5]))
    assert hierarchy.path(5) == (30, 5)
    with pytest.raises(ValueError, match="there is no node 4"):
        hierarchy.path(4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"oak": "tree", "tree": "oak"}, "cycle, of 2 nodes: 'oak' -> 'tree' -> 'oak'"),
        ({"oak": "oak"}, "cycle, of 1 nodes: 'oak' -> 'oak'"),
        ({f"n{i}": f"n{(i + 1) % 9}" for i in range(9)}, r"of 9 nodes: .* -> \.\.\.\. Remove"),
        ({}, "no pair of a child and a parent"),
        ({"oak": None}, "no pair of a child and a parent"),
        ({1: 2}, "use labels of the same type"),
        ({"oak": 2}, "the labels of the hierarchy: y mixes labels of different types"),
        ({"yew": "tree"}, "none of the 4 classes is in the hierarchy"),
        ([("oak", "tree", "plant")], "must be a mapping of child to parent"),
        (["oak"], "must be a mapping of child to parent"),
        (3, "must be a mapping of child to parent"),
        (
            pd.DataFrame({"child": ["oak"]}),
            "a table of two columns, child and parent; this one has 1",
        ),
        ("/", "no label has '/' in it"),
        ("", "separated by one character at least"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        read_hierarchy(given, TREES)


def test_what_does_not_cover_the_classes_is_said():
    with pytest.warns(
        HierarchyWarning, match="1 of 4 classes are not in the hierarchy, such as 'r"
    ):
        read_hierarchy(dict.fromkeys(TREES[:3], "plant"), TREES)
    with pytest.warns(HierarchyWarning, match="1 node without children, such as 'yew'"):
        read_hierarchy(PARENTS | {"yew": "tree"}, TREES)


def test_hostile_shapes_are_refused_or_cost_little():
    n = 1_000_000
    with pytest.raises(ValueError, match="a chain of 1,000,001 nodes"):
        Hierarchy.of(np.arange(n), np.arange(1, n + 1))
    with pytest.raises(ValueError, match="cycle, of 1,000,000 nodes"):
        Hierarchy.of(np.arange(n), (np.arange(n) + 1) % n)
    with pytest.raises(ValueError, match="has 200,001 levels"):
        read_paths(np.array(["a" + "/a" * 200_000, "b"]), "/")
    with pytest.raises(ValueError, match=f"chain of {MAX_DEPTH + 1:,} nodes"):
        Hierarchy.of(np.arange(MAX_DEPTH), np.arange(1, MAX_DEPTH + 1))
    longest = Hierarchy.of(np.arange(MAX_DEPTH - 1), np.arange(1, MAX_DEPTH))
    assert len(longest.path(0)) == longest.n_levels == MAX_DEPTH
    broad = Hierarchy.of(np.arange(1, n + 1), np.zeros(n, np.int64))
    assert len(broad.child_ids(0)) == n
    assert len(broad.branch(0)) == n + 1
    nodes, sums = find_best_by_depth(
        np.array([[5, 7, 9]]), np.array([[0.5, 0.3, 0.2]]), broad.tree, 2
    )
    assert nodes.tolist() == [[0, 5]]
    assert sums.tolist() == [[1.0, 0.5]]


def test_a_hostile_hierarchy_takes_memory_by_its_nodes_alone():
    """A million levels are refused within some hundred bytes a node, without recursion."""
    n = 1_000_000
    tracemalloc.start()
    for children, parents in (
        (np.arange(n), np.arange(1, n + 1)),
        (np.arange(n), (np.arange(n) + 1) % n),
        (np.arange(1, n + 1), np.zeros(n, np.int64)),
    ):
        with contextlib.suppress(ValueError):
            Hierarchy.of(children, parents)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400 * n  # a cycle is walked in a dict


LABELS_LIKE_PATHS = ["/", "//", "a/", "/a", "a//b", "a/ /b", "../..", "a/../b", ".", "a/b/"]


def test_labels_that_look_like_paths_are_labels():
    pairs = [(label, f"above {label}") for label in LABELS_LIKE_PATHS]
    hierarchy = read_hierarchy(pairs, np.array(sorted(LABELS_LIKE_PATHS)))
    for label in LABELS_LIKE_PATHS:
        assert hierarchy.path(label) == (f"above {label}", label)


def test_paths_with_empty_levels_have_the_levels_that_are_there():
    hierarchy = read_paths(np.array(sorted(LABELS_LIKE_PATHS)), "/")
    assert hierarchy.path("a//b") == ("a", "a//b")
    assert hierarchy.path("a/b/") == ("a", "a/b", "a/b/")
    assert hierarchy.path("a/../b") == ("a", "a/..", "a/../b")
    assert set(hierarchy.nodes.tolist()) <= {*LABELS_LIKE_PATHS, "a", "a/..", "a/b", "..", "a/ "}


@st.composite
def graphs(draw):
    """A hierarchy of up to 12 nodes as a dict, and rankings of its nodes."""
    n = draw(st.integers(2, 12))
    names = [f"n{i:02}" for i in range(n)]
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    order = rng.permutation(n)
    parents = {}
    for i in range(1, n):
        above = rng.choice(order[:i], min(i, int(rng.integers(0, 3))), replace=False)
        if len(above):
            parents[names[order[i]]] = {names[p] for p in above}
    parents.setdefault(names[order[-1]], {names[order[0]]})
    rankings = []
    for _ in range(int(rng.integers(1, 6))):
        chosen = rng.choice(n, int(rng.integers(1, n + 1)), replace=False)
        masses = np.sort(rng.integers(1, 5, len(chosen)) / 8)[::-1]
        rankings.append([(names[c], m) for c, m in zip(chosen, masses.tolist(), strict=True)])
    return parents, rankings


def to_arrays(hierarchy, rankings):
    width = max(map(len, rankings))
    nodes, shares = np.full((len(rankings), width), -1), np.zeros((len(rankings), width))
    for row, ranking in enumerate(rankings):
        total = sum(mass for _, mass in ranking)
        kept = [(label, mass) for label, mass in ranking if label in hierarchy.nodes]
        for column, (label, mass) in enumerate(kept):
            nodes[row, column] = hierarchy.find_one(label)
            shares[row, column] = mass / total
    return nodes, shares


@examples(100)
@given(graphs())
def test_sums_equal_those_of_plain_dicts(graph):
    parents, rankings = graph
    pairs = [(child, parent) for child, above in parents.items() for parent in above]
    hierarchy = Hierarchy.of([c for c, _ in pairs], [p for _, p in pairs])
    known = set(hierarchy.nodes.tolist())
    rankings = [[pair for pair in ranking if pair[0] in known] for ranking in rankings]
    rankings = [ranking for ranking in rankings if ranking] or [[(next(iter(known)), 0.5)]]
    for node in known:
        assert hierarchy.depth(node) == oracle.depth(node, parents)
        assert set(hierarchy.parents_of(node)) == parents.get(node, set())
        assert set(hierarchy.branch(node)) == {
            n for n in known if node in oracle.ancestors(n, parents)
        }
    nodes, shares = to_arrays(hierarchy, rankings)
    n_levels = int(hierarchy.depths.max()) + 1
    best, totals = find_best_by_depth(nodes, shares, hierarchy.tree, n_levels)
    for row, ranking in enumerate(rankings):
        wanted = oracle.sums(ranking, parents)
        for level in range(n_levels):
            at_level = {n: s for n, s in wanted.items() if oracle.depth(n, parents) == level}
            highest = max(at_level.values(), default=0.0)
            assert totals[row, level] == pytest.approx(highest, abs=1e-12)
            if at_level:
                assert at_level[hierarchy.nodes[best[row, level]]] == pytest.approx(highest)
        starts = nodes[row, :1]
        found = contain_ancestors(starts, best[row : row + 1], hierarchy.tree)[0]
        above = oracle.ancestors(ranking[0][0], parents)
        assert found.tolist() == [n >= 0 and hierarchy.nodes[n] in above for n in best[row]]
        for level in range(1, n_levels):
            top, sums = rank_level(
                nodes[row : row + 1], shares[row : row + 1], hierarchy.tree, level, 12
            )
            shallow = {c: m for c, m in ranking if oracle.depth(c, parents) < level}
            total = sum(mass for _, mass in ranking)
            expected = {n: s for n, s in wanted.items() if oracle.depth(n, parents) == level}
            expected |= {c: m / total for c, m in shallow.items()}
            given = dict(
                zip(hierarchy.nodes[top[0][top[0] >= 0]], sums[0][top[0] >= 0], strict=True)
            )
            assert given == pytest.approx(expected)
