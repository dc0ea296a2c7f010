"""Every random draw in plain Python integers: slow, obvious, and importing nothing of ours.

A draw is a hash of (seed, document, draw), so it depends on nothing that was drawn before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, SplitMix64's increment


def mix(value: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


def random_bits(seed: int, document: int, draw: int) -> int:
    """64 bits: mix seed, document and draw in one after the other."""
    value = mix((seed + GOLDEN) & MASK)
    value = mix((value + (document + 1) * GOLDEN) & MASK)
    return mix((value + (draw + 1) * GOLDEN) & MASK)


def uniform(seed: int, document: int, draw: int = 0) -> float:
    """The upper 53 bits as a number in [0, 1)."""
    return (random_bits(seed, document, draw) >> 11) / 2**53


def hold_out(
    labels: Sequence[Sequence[int]], n: int, seed: int, may_be_empty: Collection[int] = ()
) -> list[int]:
    """The n documents of lowest draw; the document of highest draw of each class always stays.

    Unless the class may lose all.
    """
    draws = {i: uniform(seed, i) for i in range(len(labels))}
    classes = {c for own in labels for c in own if c not in may_be_empty}
    stay = {max((i for i in draws if c in labels[i]), key=draws.__getitem__) for c in classes}
    return sorted((i for i in draws if i not in stay), key=draws.__getitem__)[:n]


def draw_labels(
    labels: Sequence[Sequence[int]], n: int, seed: int, without: Collection[int] = ()
) -> list[tuple[int, int]]:
    """The n (document, place of the label) pairs of lowest draw among those that share a class."""
    flat = [c for own in labels for c in own]
    shared = [
        (i, place)
        for i, own in enumerate(labels)
        for place, c in enumerate(own)
        if flat.count(c) > 1 and i not in without
    ]
    return sorted(shared, key=lambda pair: uniform(seed, *pair))[:n]


def draw_documents(n_documents: int, n: int, seed: int, used: Collection[int]) -> list[int]:
    """The n used documents of lowest draw, apart from the draws of those that are held out."""
    draws = {i: uniform(seed ^ 0x5E9A, i) for i in range(n_documents) if i in used}
    return sorted(draws, key=draws.__getitem__)[:n]


def draw_pairs(
    labels: Sequence[int], n_classes: int, examples_per_class: float, adversaries: int, seed: int
) -> tuple[list[int], list[list[int]]]:
    """Algorithm 1: keep a document with π = min(1, examples_per_class / n_c), draw κ adversaries.

    Returns the documents kept and the adversaries of each.
    """
    sizes = [list(labels).count(c) for c in range(n_classes)]
    kept = [
        i
        for i, c in enumerate(labels)
        if uniform(seed, i) < min(1.0, examples_per_class / max(sizes[c], 1))
    ]
    return kept, [draw_adversaries(labels[i], i, n_classes, adversaries, seed) for i in kept]


def draw_adversaries(true: int, document: int, n_classes: int, kappa: int, seed: int) -> list[int]:
    """Floyd's sample of κ of the K - 1 other classes, without replacement (Bentley, 1987)."""
    others = [c for c in range(n_classes) if c != true]
    kappa = min(kappa, len(others))
    drawn: list[int] = []
    for j in range(kappa):
        top = len(others) - kappa + j
        pick = random_bits(seed, document, j + 1) % (top + 1)
        drawn.append(top if pick in drawn else pick)
    return [others[pick] for pick in drawn]
