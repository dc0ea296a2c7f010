"""Decimal numbers in bytes -> float64."""

from __future__ import annotations

import numpy as np

from longtail._kernels.jit import kernel

_ZERO, _NINE, _DOT, _BLANK = 48, 57, 46, 32
# Fifteen digits are below 2**53 and 10**15 is exact, so one division rounds once and correctly.
_EXACT_DIGITS = 15
_POWERS_OF_TEN = np.array([float(10**exponent) for exponent in range(_EXACT_DIGITS + 1)])


@kernel
def read_numbers(text, values):
    """Read numbers of digits with at most one dot, each followed by one blank.

    Parameters
    ----------
    text : uint8 array
        The numbers; their grammar is checked by the caller.
    values : (n_numbers,) float64 array, out
        The numbers. A negative value ``-1 - start`` stands for one with a sign, an exponent or
        more than fifteen digits, which the caller has to read at that offset.
    """
    at = 0
    for entry in range(values.size):
        start = at
        mantissa = np.int64(0)
        n_digits = n_decimals = 0
        is_plain = True
        has_dot = False
        while text[at] != _BLANK:
            if _ZERO <= text[at] <= _NINE:
                n_digits += 1
                n_decimals += has_dot
                if n_digits <= _EXACT_DIGITS:
                    mantissa = mantissa * 10 + (np.int64(text[at]) - _ZERO)
            elif text[at] == _DOT:
                has_dot = True
            else:
                is_plain = False
            at += 1
        if is_plain and n_digits <= _EXACT_DIGITS:
            values[entry] = mantissa / _POWERS_OF_TEN[n_decimals]
        else:
            values[entry] = -1.0 - start
        at += 1
