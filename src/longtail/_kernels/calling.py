"""Kernels called without numba's look at their arguments.

Numba looks at every array of a call to find what it has compiled for it: 6 µs for the 28 arrays of
a search, which starts in 0.4 µs once that is known. For one document these looks are a fifth of all
the time.
"""

from __future__ import annotations

from typing import Any

import numba

_config: Any = numba.config


class DirectCalls:
    """What was compiled for the arrays of one model, found when first called.

    Machine code trusts the types of its arguments. So an object of this class belongs to arrays
    that stay the same, and `key` tells the types of all other arguments. A copy or a pickle knows
    nothing yet: its arrays may be of other types.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[int, str], Any] = {}

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        """Leave out what was found."""
        return DirectCalls, ()

    def call(self, kernel: Any, key: str, *arguments: Any) -> Any:
        """Call a kernel; with the same key, arguments must be of the same types as the first."""
        entry = self._entries.get((id(kernel), key))  # kernels live as long as their modules
        if entry is None:
            entry = self._entries[id(kernel), key] = _find(kernel, arguments)
        return entry(*arguments)


def _find(kernel: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the machine code for arguments, compiled or from the disk."""
    if _config.DISABLE_JIT:
        return kernel
    return kernel.compile(tuple(numba.typeof(argument) for argument in arguments))
