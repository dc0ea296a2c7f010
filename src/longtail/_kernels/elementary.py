"""Exponential and logarithm by additions, multiplications and divisions alone.

These are rounded alike on every machine. The C library has other code for processors with fused
multiplication, and numpy for those with wide vectors; they differ in the last bit. The exponential
is the C library's own method (Arm's optimized routines); the logarithm is FreeBSD's (msun, Sun
Microsystems 1993), with more exact sums. 99 in 100 results are those of the C library, the others
their neighbours.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np

from longtail._kernels.jit import bits_of, from_bits, kernel, subroutine

_LARGEST_EXPONENT, _SMALLEST_EXPONENT = 709.782712893383973096, -745.13321910194110842

_STEP_BITS = 7
_N_STEPS = 1 << _STEP_BITS
_STEP_MASK = _N_STEPS - 1
_STEPS_PER_LN2 = 1.44269504088896338700 * _N_STEPS
# ln(2) / 128 in two numbers; products of the first one with whole numbers below 2^18 are exact.
_STEP_HIGH = float.fromhex("0x1.62e42fefa0000p-8")
_STEP_LOW = float.fromhex("0x1.cf79abc9e3b39p-47")
# e^r in powers of r, for |r| <= ln(2) / 256; the first two are 1.
_E2, _E3 = float.fromhex("0x1.ffffffffffdbdp-2"), float.fromhex("0x1.555555555543cp-3")
_E4, _E5 = float.fromhex("0x1.55555cf172b91p-5"), float.fromhex("0x1.1111167a4d017p-7")


def _tabulate_powers():
    """Return 2^(i / 128), and by which share of it each was rounded down."""
    powers, lost = np.empty(_N_STEPS), np.empty(_N_STEPS)
    with localcontext(prec=40):
        root = Decimal(2)
        for _ in range(_STEP_BITS):
            root = root.sqrt()
        power = Decimal(1)
        for i in range(_N_STEPS):
            powers[i] = float(power)
            lost[i] = float(power / Decimal(powers[i]) - 1)
            power *= root
    return powers, lost


_POWERS, _LOST = _tabulate_powers()

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10

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
    """Return e to the power of x: 2^(k / 128) from a table, times e^r of a small r."""
    x = np.float64(x)
    if not x <= _LARGEST_EXPONENT:
        return x + math.inf  # infinite, or no number
    if x < _SMALLEST_EXPONENT:
        return 0.0
    rounded = np.floor(x * _STEPS_PER_LN2 + 0.5)
    r = x - rounded * _STEP_HIGH - rounded * _STEP_LOW
    square = r * r
    k = np.int64(rounded)
    power, lost = _POWERS[k & _STEP_MASK], _LOST[k & _STEP_MASK]
    more = lost + r + square * (_E2 + r * _E3) + square * square * (_E4 + r * _E5)
    y = power + power * more
    k >>= _STEP_BITS
    if -_BIAS < k <= _BIAS:
        return y * _power_of_two(k)
    half = k // 2  # in two steps: 2^k alone is no normal number
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
    # what the first sums lose is added at the end.
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
