"""Exponential and logarithm by additions, multiplications and divisions alone.

These are rounded alike on every machine. The C library has other code for processors with fused
multiplication, and numpy for those with wide vectors; they differ in the last bit. Reductions and
polynomials are those of FreeBSD's msun (Sun Microsystems 1993), with larger sums: 99 in 100 results
are the C library's, the others their neighbours.
"""

from __future__ import annotations

import math

import numpy as np

from longtail._kernels.jit import bits_of, from_bits, kernel, subroutine

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_PER_LN2 = 1.44269504088896338700
_LARGEST_EXPONENT, _SMALLEST_EXPONENT = 709.782712893383973096, -745.13321910194110842

# (1 - exp(-r)) / (1 + exp(-r)) in powers of r^2, for |r| <= ln(2) / 2.
_P1, _P2, _P3 = 1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05
_P4, _P5 = -1.65339022054652515390e-06, 4.13813679705723846039e-08

# ln((1 + s) / (1 - s)) in powers of s^2, for 1 + f = (1 + s) / (1 - s) near 1.
_L1, _L2, _L3 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01
_L4, _L5, _L6 = 2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01
_L7 = 1.479819860511658591e-01

_BIAS, _MANTISSA_BITS = 1023, 52
_MANTISSA = (1 << _MANTISSA_BITS) - 1
_HIGH_HALF = ~((1 << 27) - 1)
_ROOT_HALF = 0x3FE6A09E00000000  # bits of about 1 / sqrt(2)
_FROM_ROOT_HALF = 0x3FF0000000000000 - _ROOT_HALF
_SMALLEST_NORMAL = 2.0**-1022


@subroutine
def exp(x):
    """Return e to the power of x."""
    x = np.float64(x)
    if not x <= _LARGEST_EXPONENT:
        return x + math.inf  # infinite, or no number
    if x < _SMALLEST_EXPONENT:
        return 0.0
    k = np.int64(np.floor(x * _PER_LN2 + 0.5))
    high, low = x - k * _LN2_HIGH, k * _LN2_LOW
    r = high - low
    square = r * r
    p = square * (_P1 + square * (_P2 + square * (_P3 + square * (_P4 + square * _P5))))
    c = r - p
    rest = r * (r * c - 2.0 * p) / (4.0 - 2.0 * c)
    # The power is 1 + r + r^2 / 2 + rest. Half of the bits of r have an exact square, and what the
    # first sums lose is added at the end: nearly all results are the nearest numbers.
    r_high = from_bits(bits_of(r) & _HIGH_HALF)
    square_high, square_low = 0.5 * r_high * r_high, 0.5 * (r - r_high) * (r + r_high)
    first = 1.0 + high
    second = first + square_high
    lost = (high - (first - 1.0)) + (square_high - (second - first))
    y = second + (lost + (rest + square_low - low))
    half = k // 2  # in two steps: 2^k alone may be no normal number
    return y * _power_of_two(half) * _power_of_two(k - half)


@subroutine
def _power_of_two(k):
    """Return 2^k."""
    return from_bits((k + _BIAS) << _MANTISSA_BITS)


@subroutine
def log(x):
    """Return the natural logarithm of x."""
    x = np.float64(x)
    shift = 0
    if x < _SMALLEST_NORMAL:
        if x == 0.0:
            return -math.inf
        if x < 0.0:
            return math.nan
        shift, x = 54, x * 2.0**54
    elif not x < math.inf:
        return x
    bits = bits_of(x) + _FROM_ROOT_HALF
    k = (bits >> _MANTISSA_BITS) - _BIAS - shift
    f = from_bits((bits & _MANTISSA) + _ROOT_HALF) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (_L2 + w * (_L4 + w * _L6))
    odd = z * (_L1 + w * (_L3 + w * (_L5 + w * _L7)))
    rest = s * (0.5 * f * f + odd + even)
    # The logarithm is k ln 2 + f - f^2 / 2 + rest. Half of the bits of f have an exact square, and
    # what the first sums lose is added at the end, as in `exp`.
    f_high = from_bits(bits_of(f) & _HIGH_HALF)
    square_high, square_low = 0.5 * f_high * f_high, 0.5 * (f - f_high) * (f + f_high)
    whole = k * _LN2_HIGH
    first = whole + f
    second = first - square_high
    lost = (f - (first - whole)) + ((first - second) - square_high)
    return second + (lost + (rest + k * _LN2_LOW - square_low))


@kernel
def fill_exp(values, results):
    """Fill e to the power of each value."""
    for i in range(len(values)):
        results[i] = exp(values[i])


@kernel
def fill_log(values, results):
    """Fill the natural logarithm of each value."""
    for i in range(len(values)):
        results[i] = log(values[i])
