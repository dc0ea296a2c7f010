"""Random draws that depend on (seed, item, draw) alone, never on what was drawn before."""

from __future__ import annotations

import numpy as np

from longtail_bench._kernels.jit import inner

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@inner
def mix(value):
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@inner
def random_bits(seed, item, draw):
    """Return 64 random bits for one draw of one item."""
    value = mix(np.uint64(seed) + _GOLDEN)
    value = mix(value + np.uint64(item) * _GOLDEN + _GOLDEN)
    return mix(value + np.uint64(draw) * _GOLDEN + _GOLDEN)


@inner
def uniform(seed, item, draw):
    """Return a number in [0, 1), a multiple of 2^-53."""
    return (random_bits(seed, item, draw) >> np.uint64(11)) * 2.0**-53
