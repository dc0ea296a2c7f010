"""How kernels are compiled, decided once for all of them."""

from __future__ import annotations

import gc
from functools import wraps
from typing import Any

import numba
import numba.extending
import numpy as np

from longtail._kernels.cache import KernelCache

_njit: Any = numba.njit  # its types know no options for wrappers
_intrinsic: Any = numba.extending.intrinsic

# nogil: threads over row blocks run in parallel. error_model numpy: no branch per division. No
# fastmath: it makes isnan lie and sums depend on the CPU. No wrapper for C: nothing calls it, and
# each takes a twentieth of a second to compile. No reference counts: the caller holds what a kernel
# is given; a fifth less to compile. Only a kernel that allocates needs them.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "_nrt": False,
}


def _interpret(function: Any) -> Any:
    """Run a kernel in Python: integers wrap around and divisions give inf, as compiled."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return function(*arguments)

    return run


def _without_collector(compile_signature: Any) -> Any:
    """Pause the garbage collector meanwhile: it takes a tenth of the time and finds little."""

    @wraps(compile_signature)
    def run(signature: Any) -> Any:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return compile_signature(signature)
        finally:
            if was_enabled:
                gc.enable()

    return run


_config: Any = numba.config

if _config.DISABLE_JIT:
    kernel: Any = _interpret
    allocating_kernel: Any = _interpret
    subroutine: Any = lambda function: function  # noqa: E731 (one type for both branches)
    inlined: Any = subroutine

    def shift_right(value: Any, by: Any) -> Any:
        """Shift 16 bits right."""
        return np.uint16(value >> by)

    def bits_of(value: Any) -> Any:
        """Return the bits of a float64 as an integer."""
        return np.float64(value).view(np.int64)

    def from_bits(bits: Any) -> Any:
        """Return the float64 of these bits."""
        return np.int64(bits).view(np.float64)

    def count_bits(bits: Any) -> Any:
        """Return how many bits are 1."""
        return np.uint64(int(bits).bit_count())

else:

    def kernel(function: Any, **options: Any) -> Any:
        """Compile a function for Python to call, once per machine."""
        dispatcher = _njit(**(_OPTIONS | options))(function)
        dispatcher._cache = KernelCache(function)
        dispatcher.compile = _without_collector(dispatcher.compile)
        return dispatcher

    def allocating_kernel(function: Any) -> Any:
        """Do the same with a function that makes arrays of its own."""
        return kernel(function, _nrt=True)

    # Called from kernels, never from Python, for which it has no wrapper (calling it would crash).
    # What is cached is the kernel with its subroutines.
    subroutine = _njit(no_cpython_wrapper=True, **_OPTIONS)

    # A step of one kernel, pasted into it: what it is called with is not compiled twice.
    inlined = _njit(inline="always", no_cpython_wrapper=True, **_OPTIONS)

    @_intrinsic
    def shift_right(_context: Any, _value: Any, _by: Any) -> Any:
        """Shift 16 bits right, by fewer than 16, in 16 bits; numba would widen them to 64 first.

        A loop over it becomes vector instructions that work on as many numbers as a vector holds.
        """
        uint16 = numba.types.uint16

        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.lshr(*arguments)

        return uint16(uint16, uint16), generate

    @_intrinsic
    def bits_of(_context: Any, _value: Any) -> Any:
        """Return the bits of a float64 as an integer."""

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(numba.types.int64))

        return numba.types.int64(numba.types.float64), generate

    @_intrinsic
    def from_bits(_context: Any, _bits: Any) -> Any:
        """Return the float64 of these bits."""

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(numba.types.float64))

        return numba.types.float64(numba.types.int64), generate

    @_intrinsic
    def count_bits(_context: Any, _bits: Any) -> Any:
        """Return how many bits are 1."""
        uint64 = numba.types.uint64

        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return uint64(uint64), generate
