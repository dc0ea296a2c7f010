"""How the kernels of the baselines are compiled, decided once for all of them."""

from __future__ import annotations

from typing import Any

import numba

_njit: Any = numba.njit  # its types know no options for wrappers
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

kernel: Any = _njit(cache=True, **_OPTIONS)

# Called from kernels, never from Python, for which it has no wrapper.
inner: Any = _njit(no_cpython_wrapper=True, **_OPTIONS)
