"""How kernels are compiled, decided once for all of them."""

from __future__ import annotations

from typing import Any

import numba

# cache: compiled once per machine, not once per process. nogil: threads over row blocks run in
# parallel. error_model numpy: no branch per division. No fastmath: it makes isnan lie and sums
# depend on the CPU.
kernel: Any = numba.njit(cache=True, nogil=True, error_model="numpy")
