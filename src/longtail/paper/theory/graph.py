"""Which pairs depend on each other, and how to cut them into independent sets (Definition 1).

In comes the document of each pair; out come the dependency graph, its exact proper fractional cover
and the fractional chromatic number χ*, the price that a bound pays for the dependence: N dependent
pairs count as N / χ* independent ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from longtail._validation import check_integer
from longtail.sparse import Floats, Integers

# A graph of n vertices has up to 3^(n/3) maximal independent sets; 10,000 of them are a second of
# work.
MAX_INDEPENDENT_SETS = 10_000
# Weights come out of a linear program: equal to 1 means within this.
WEIGHT_TOLERANCE = 1e-9


@dataclass(frozen=True)
class DependencyGraph:
    """Vertices 0 .. n_vertices - 1 and the edges between dependent ones, (E, 2) int64."""

    n_vertices: int
    edges: Integers


@dataclass(frozen=True)
class FractionalCover:
    """The sets C_k and weights ω_k of Definition 1.

    Attributes
    ----------
    sets : tuple of ndarray of int64
        The vertices of each set.
    weights : ndarray of shape (J,), float64
        ω_k, in [0, 1].
    """

    sets: tuple[Integers, ...]
    weights: Floats

    @property
    def weight(self) -> float:
        """W(C), the sum of the weights; χ* is its smallest value over all covers."""
        return float(self.weights.sum())


@dataclass(frozen=True)
class CoverReport:
    """The conditions of Definition 1 that a cover satisfies; true if it satisfies all of them.

    Attributes
    ----------
    proper : bool
        No set holds two connected vertices (i).
    exact : bool
        The weights are in [0, 1] and those of the sets around any vertex add up to 1 (ii).
    weight : float
        W(C).
    problems : tuple of str
        One sentence for each violation found.
    """

    proper: bool
    exact: bool
    weight: float
    problems: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.proper and self.exact


def dependency_graph(documents: npt.ArrayLike) -> DependencyGraph:
    """Connect every two pairs that share a document.

    Parameters
    ----------
    documents : array-like of shape (N,)
        The document of each pair, as in ``TransformedSet.documents``.

    Returns
    -------
    DependencyGraph
        A clique for each document; of K - 1 vertices for T(S), of κ for T_κ(S_π).

    Examples
    --------
    >>> dependency_graph([0, 0, 1]).edges.tolist()
    [[0, 1]]
    """
    owners = np.asarray(documents)
    edges = [
        np.stack([members[i] for i in np.triu_indices(len(members), k=1)], axis=1)
        for members in _members_by_document(owners)
    ]
    joined = np.concatenate(edges) if edges else np.empty((0, 2), dtype=np.int64)
    return DependencyGraph(n_vertices=len(owners), edges=joined.astype(np.int64))


def document_cover(documents: npt.ArrayLike) -> FractionalCover:
    """Cover the dependency graph with one pair of each document in every set, all weights 1.

    Set k holds the k-th pair of every document that has one. Two of its pairs never share a
    document, so each set is independent, and each pair is in exactly one: an exact proper
    fractional cover. It has K - 1 sets for T(S) and κ sets for T_κ(S_π). A document's pairs form a
    clique, and no independent set holds two of a clique, so no cover weighs less: χ* is K - 1, or
    κ.

    Parameters
    ----------
    documents : array-like of shape (N,)
        The document of each pair.

    Examples
    --------
    >>> [members.tolist() for members in document_cover([0, 0, 1, 1]).sets]
    [[0, 2], [1, 3]]
    """
    owners = np.asarray(documents)
    rank = np.empty(len(owners), dtype=np.int64)
    for members in _members_by_document(owners):
        rank[members] = np.arange(len(members))
    n_sets = int(rank.max()) + 1 if len(rank) else 0
    sets = tuple(np.flatnonzero(rank == k).astype(np.int64) for k in range(n_sets))
    return FractionalCover(sets=sets, weights=np.ones(n_sets))


def check_cover(edges: npt.ArrayLike, n_vertices: int, cover: FractionalCover) -> CoverReport:
    """Check Definition 1 for any graph and any cover.

    Parameters
    ----------
    edges : array-like of shape (E, 2)
        Pairs of connected vertices.
    n_vertices : int
        Number of vertices.
    cover : FractionalCover
        The sets and weights to check.

    Returns
    -------
    CoverReport
        True exactly if ``cover`` is an exact proper fractional cover; its ``problems`` say why not.

    Examples
    --------
    >>> cover = FractionalCover((np.array([0, 1]),), np.array([1.0]))
    >>> check_cover([[0, 1]], 2, cover).problems
    ('set 0 holds the connected vertices 0 and 1',)
    """
    checked = _checked_edges(edges, n_vertices)
    if len(cover.sets) != len(cover.weights):
        raise ValueError(
            f"cover must have one weight for each set; got {len(cover.sets)} sets "
            f"and {len(cover.weights)} weights."
        )
    improper = _connected_inside(checked, n_vertices, cover.sets)
    inexact = _weight_problems(n_vertices, cover)
    return CoverReport(
        proper=not improper,
        exact=not inexact,
        weight=cover.weight,
        problems=tuple(improper + inexact),
    )


def fractional_chromatic_number(n_vertices: int, edges: npt.ArrayLike) -> float:
    """Return χ* of a small graph by linear programming over its maximal independent sets.

    Minimises Σ_k ω_k subject to Σ_{k: v ∈ C_k} ω_k >= 1 for every vertex v. Definition 1 asks for
    equality over all independent sets; the optimum is the same. Every exact cover grows to one by
    maximal sets of equal weight that covers with >=; and from a set that over-covers a vertex, the
    vertex can be taken out for part of the weight, since a subset of an independent set is
    independent.

    Components are solved one by one: χ* of a disjoint union is the largest χ* of its parts.

    Parameters
    ----------
    n_vertices : int
        Number of vertices, at least 1.
    edges : array-like of shape (E, 2)
        Pairs of connected vertices.

    Raises
    ------
    ValueError
        If a component has more than ``MAX_INDEPENDENT_SETS`` maximal independent sets.

    Examples
    --------
    >>> round(fractional_chromatic_number(5, [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]), 6)
    2.5
    """
    checked = _checked_edges(edges, n_vertices)
    adjacency = sp.coo_array(
        (np.ones(len(checked), dtype=np.int8), (checked[:, 0], checked[:, 1])),
        shape=(n_vertices, n_vertices),
    )
    n_components, component = connected_components(adjacency, directed=False)
    return max(
        _connected_chromatic_number(np.flatnonzero(component == c), checked)
        for c in range(n_components)
    )


def maximal_independent_sets(
    n_vertices: int, edges: npt.ArrayLike, limit: int = MAX_INDEPENDENT_SETS
) -> list[Integers]:
    """List the independent sets that no vertex can be added to.

    These are the maximal cliques of the complement graph, found by the algorithm of Bron and
    Kerbosch with pivots.

    Parameters
    ----------
    n_vertices : int
        Number of vertices.
    edges : array-like of shape (E, 2)
        Pairs of connected vertices.
    limit : int, default 10_000
        Give up beyond that many sets.

    Raises
    ------
    ValueError
        If there are more than ``limit`` sets.

    Examples
    --------
    >>> [s.tolist() for s in maximal_independent_sets(3, [[0, 1], [1, 2]])]
    [[0, 2], [1]]
    """
    checked = _checked_edges(edges, n_vertices)
    all_classes = set(range(n_vertices))
    others = [all_classes - {v} for v in range(n_vertices)]
    for a, b in checked.tolist():
        others[a].discard(b)
        others[b].discard(a)
    found: list[Integers] = []
    for members in _maximal_cliques(others, [], all_classes, set()):
        if len(found) == limit:
            raise ValueError(
                f"edges describe a graph of {n_vertices} vertices with more than {limit} maximal "
                "independent sets, too many for the linear program. Use a smaller graph; for pairs "
                "that share documents, document_cover gives the answer at any size."
            )
        found.append(np.array(sorted(members), dtype=np.int64))
    return sorted(found, key=lambda members: members.tolist())


def _members_by_document(owners: npt.NDArray[np.generic]) -> list[npt.NDArray[np.intp]]:
    """Return the pairs of each document, in the order in which they were given."""
    if owners.ndim != 1:
        raise ValueError(
            f"documents must be one-dimensional, one entry for each pair; got shape {owners.shape}."
        )
    if len(owners) == 0:
        return []
    order = np.argsort(owners, kind="stable")
    starts = np.flatnonzero(np.diff(owners[order])) + 1
    return list(np.split(order, starts))


def _checked_edges(edges: npt.ArrayLike, n_vertices: int) -> Integers:
    """Return the edges as an (E, 2) array of two different known vertices each."""
    check_integer("n_vertices", n_vertices, 1)
    given = np.asarray(edges)
    if given.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or not np.issubdtype(given.dtype, np.integer):
        raise ValueError(
            "edges must be an array of vertex numbers of shape (n_edges, 2); "
            f"got shape {given.shape} and dtype {given.dtype}."
        )
    if given.min() < 0 or given.max() >= n_vertices:
        raise ValueError(
            f"edges must join vertices from 0 to n_vertices - 1 (here {n_vertices - 1}); "
            f"got {given.min()} to {given.max()}."
        )
    loops = np.flatnonzero(given[:, 0] == given[:, 1])
    if len(loops):
        raise ValueError(
            f"edges must join two different vertices; edge {loops[0]} joins "
            f"{given[loops[0], 0]} with itself. Leave it out."
        )
    return given.astype(np.int64)


def _connected_inside(edges: Integers, n_vertices: int, sets: Sequence[npt.ArrayLike]) -> list[str]:
    """Name an edge inside each set that has one: violations of (i)."""
    problems = []
    for k, members in enumerate(sets):
        inside = np.zeros(n_vertices, dtype=bool)
        inside[_checked_members(k, members, n_vertices)] = True
        within = np.flatnonzero(inside[edges[:, 0]] & inside[edges[:, 1]])
        if len(within):
            a, b = edges[within[0]]
            problems.append(f"set {k} holds the connected vertices {a} and {b}")
    return problems


def _weight_problems(n_vertices: int, cover: FractionalCover) -> list[str]:
    """Name the weights outside [0, 1] and the vertices whose weights miss 1: violations of (ii)."""
    problems = [
        f"weight {k} is {weight:g}, outside [0, 1]"
        for k, weight in enumerate(cover.weights)
        if not 0.0 <= weight <= 1.0 + WEIGHT_TOLERANCE
    ]
    total = np.zeros(n_vertices)
    for k, (members, weight) in enumerate(zip(cover.sets, cover.weights, strict=True)):
        total[np.unique(_checked_members(k, members, n_vertices))] += weight
    wrong = np.flatnonzero(np.abs(total - 1.0) > WEIGHT_TOLERANCE)
    problems += [f"the weights around vertex {v} add up to {total[v]:g}, not 1" for v in wrong]
    return problems


def _checked_members(k: int, members: npt.ArrayLike, n_vertices: int) -> Integers:
    """Return the vertices of set k, which must be known ones."""
    checked = np.asarray(members, dtype=np.int64)
    if checked.size and (checked.min() < 0 or checked.max() >= n_vertices):
        raise ValueError(
            f"cover must hold vertices from 0 to n_vertices - 1 (here {n_vertices - 1}); "
            f"set {k} holds {checked.min()} to {checked.max()}."
        )
    return checked


def _connected_chromatic_number(vertices: npt.NDArray[np.intp], edges: Integers) -> float:
    """Solve the linear program for one component."""
    inside = np.isin(edges[:, 0], vertices)
    renumbered = np.searchsorted(vertices, edges[inside]).astype(np.int64)
    sets = maximal_independent_sets(len(vertices), renumbered)
    membership = np.zeros((len(vertices), len(sets)))
    for k, members in enumerate(sets):
        membership[members, k] = 1.0
    solution = linprog(
        c=np.ones(len(sets)), A_ub=-membership, b_ub=-np.ones(len(vertices)), bounds=(0.0, 1.0)
    )
    return float(np.asarray(solution.x).sum())


def _maximal_cliques(
    neighbours: list[set[int]], clique: list[int], candidates: set[int], seen: set[int]
) -> Iterator[list[int]]:
    """Yield the maximal cliques that extend ``clique`` (Bron and Kerbosch, with pivot)."""
    if not candidates and not seen:
        yield list(clique)
        return
    pivot = max(candidates | seen, key=lambda v: len(candidates & neighbours[v]))
    for v in sorted(candidates - neighbours[pivot]):
        yield from _maximal_cliques(
            neighbours, [*clique, v], candidates & neighbours[v], seen & neighbours[v]
        )
        candidates = candidates - {v}
        seen = seen | {v}
