"""How kernels are compiled, decided once for all of them."""

from __future__ import annotations

from typing import Any

import numba
import numba.extending

_njit: Any = numba.njit  # its types know no options for wrappers

# nogil: threads over row blocks run in parallel. error_model numpy: no branch per division. No
# fastmath: it makes isnan lie and sums depend on the CPU. No wrapper for C: nothing calls it, and
# each takes a twentieth of a second to compile.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

# cache: compiled once per machine, not once per process.
kernel: Any = _njit(cache=True, **_OPTIONS)

# A part of kernels: called from these, never from Python, for which it has no wrapper (calling it
# would crash). What is cached is the kernel with its parts.
part: Any = _njit(no_cpython_wrapper=True, **_OPTIONS)


_intrinsic: Any = numba.extending.intrinsic


@_intrinsic
def shift_right(_context: Any, _value: Any, _by: Any) -> Any:
    """Shift 16 bits right, by fewer than 16, in 16 bits; numba would widen them to 64 first.

    A loop over it becomes vector instructions that work on as many numbers as a vector holds.
    """
    word = numba.types.uint16

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.lshr(*arguments)

    return word(word, word), generate
