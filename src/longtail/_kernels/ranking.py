"""Top-k of each row: score descending, then class ascending."""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import kernel, subroutine


@subroutine
def comes_before(score, c, other_score, other):
    """Return whether a class ranks before another: higher score, then lower class id."""
    return score > other_score or (score == other_score and c < other)


@subroutine
def keep_best(score, c, size, scores, classes):
    """Insert a class into a ranking of `size` entries, best first; returns the new size.

    The arrays hold as many as are wanted; what falls off the end is lost. Insertion is quick
    because rankings are short and most classes fall short of the last entry at once.
    """
    wanted = len(scores)
    if size == wanted:
        if not comes_before(score, c, scores[wanted - 1], classes[wanted - 1]):
            return size
        position = wanted - 1
    else:
        position = size
        size += 1
    while position > 0 and comes_before(score, c, scores[position - 1], classes[position - 1]):
        scores[position] = scores[position - 1]
        classes[position] = classes[position - 1]
        position -= 1
    scores[position] = score
    classes[position] = c
    return size


@subroutine
def fill_rest(size, scores, classes):
    """Fill what a ranking of `size` entries leaves free."""
    for n in range(size, len(scores)):
        scores[n] = -np.inf
        classes[n] = -1


@kernel
def rank_topk(classes, scores, block, top):
    """Fill the best classes of each row, best first; -1 is no class, with a score of -inf."""
    for i in range(block.first, block.last):
        size = np.int64(0)
        for column in range(classes.shape[1]):
            if classes[i, column] >= 0:
                size = keep_best(
                    scores[i, column], classes[i, column], size, top.scores[i], top.classes[i]
                )
        fill_rest(size, top.scores[i], top.classes[i])


@kernel
def rerank(classes, pair_scores, block, scratch, top):
    """Fill the best classes of each row by rescored score among the candidates, the best by score.

    -1 is no class, with a score of -inf. The scratch is as long as there are candidates; its keys
    are a class and its column, so that ties go to the lower class.
    """
    scores, rescored = pair_scores
    for i in range(block.first, block.last):
        n_candidates = np.int64(0)
        for column in range(classes.shape[1]):
            if classes[i, column] >= 0:
                n_candidates = keep_best(
                    scores[i, column],
                    np.int64(classes[i, column]) << 32 | column,
                    n_candidates,
                    scratch.scores,
                    scratch.keys,
                )
        size = np.int64(0)
        for n in range(n_candidates):
            column = scratch.keys[n] & 0xFFFFFFFF
            size = keep_best(
                rescored[i, column], classes[i, column], size, top.scores[i], top.classes[i]
            )
        fill_rest(size, top.scores[i], top.classes[i])
