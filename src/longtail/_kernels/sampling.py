"""Random draws that depend on (seed, document, draw) alone, never on what was drawn before.

Chunks, threads and workers therefore agree by construction.
"""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import allocating_kernel, kernel, subroutine

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
TO_UNIT = 2.0**-53


@subroutine
def mix(value):
    """Scramble 64 bits (the finaliser of SplitMix64: every input bit reaches every output bit)."""
    value = (value ^ (value >> np.uint64(30))) * MIX_1
    value = (value ^ (value >> np.uint64(27))) * MIX_2
    return value ^ (value >> np.uint64(31))


@subroutine
def random_bits(seed, document, draw):
    """Return 64 random bits for one draw of one document."""
    value = mix(np.uint64(seed) + GOLDEN)
    value = mix(value + np.uint64(document) * GOLDEN + GOLDEN)
    return mix(value + np.uint64(draw) * GOLDEN + GOLDEN)


@subroutine
def uniform(seed, document, draw):
    """Return a number in [0, 1), a multiple of 2^-53."""
    return (random_bits(seed, document, draw) >> np.uint64(11)) * TO_UNIT


@kernel
def keep_documents(y, probabilities, seed, keep):
    """Draw 0 of each document decides whether it is kept, with the probability of its class."""
    for document in range(len(y)):
        keep[document] = uniform(seed, document, 0) < probabilities[y[document]]


@allocating_kernel
def fill_adversaries(true_classes, documents, n_classes, seed, block, classes):
    """Fill the rows of the block: the true class, then distinct others, uniformly drawn.

    Floyd's algorithm over the n_classes - 1 other classes. The remainder of 64 random bits is
    uniform to within n_classes / 2^64.
    """
    n_others = n_classes - 1
    n_drawn = classes.shape[1] - 1
    drawn_for = np.full(n_others, -1, np.int64)
    for row in range(block.first, block.last):
        document = documents[row]
        true_class = true_classes[row]
        classes[row, 0] = true_class
        for j in range(n_drawn):
            top = n_others - n_drawn + j
            pick = np.int64(random_bits(seed, document, j + 1) % np.uint64(top + 1))
            if drawn_for[pick] == row:
                pick = top
            drawn_for[pick] = row
            classes[row, j + 1] = pick if pick < true_class else pick + 1
