"""Back-off in plain dicts and recursion, importing nothing of ours.

A hierarchy is a dict node -> set of parents; nodes that are not in it are roots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Parents = Mapping[str, set[str]]


def ancestors(node: str, parents: Parents) -> set[str]:
    """Return a node and all above it."""
    found = {node}
    for parent in parents.get(node, ()):
        found |= ancestors(parent, parents)
    return found


def steps(node: str, parents: Parents) -> int:
    """Return the length of the longest way from a root."""
    return max((1 + steps(parent, parents) for parent in parents.get(node, ())), default=0)


def depth(node: str, parents: Parents) -> int:
    """Return how far a node is from the top; a single root of the hierarchy is the top."""
    nodes = set(parents) | {parent for some in parents.values() for parent in some}
    roots = [root for root in nodes if not parents.get(root)]
    if node not in nodes:
        return 1
    return steps(node, parents) + (len(roots) != 1)


def sums(
    ranking: Iterable[tuple[str, float]], parents: Parents, total: float | None = None
) -> dict[str, float]:
    """Return the share of each node, of the probability of all candidates."""
    ranking = list(ranking)
    total = sum(probability for _, probability in ranking) if total is None else total
    found: dict[str, float] = {}
    for label, probability in ranking:
        for node in ancestors(label, parents):
            found[node] = found.get(node, 0.0) + probability / total
    return found


def deepest(shares: Mapping[str, float], parents: Parents, threshold: float) -> str | None:
    """Return the deepest node that reaches a share; of several the likelier, then the first."""
    reaching = [node for node, share in shares.items() if share >= threshold]
    reaching = [node for node in reaching if depth(node, parents) > 0]
    if not reaching:
        return None
    return min(reaching, key=lambda node: (-depth(node, parents), -shares[node], node))


def sweep(
    documents: Sequence[tuple[Mapping[str, float], str]], parents: Parents, threshold: float
) -> tuple[int, int]:
    """Return how many documents are answered at a threshold, and how many correctly."""
    answers = [(deepest(shares, parents, threshold), truth) for shares, truth in documents]
    given = [(node, truth) for node, truth in answers if node is not None]
    return len(given), sum(node in ancestors(truth, parents) for node, truth in given)
