"""What is done to arrays and parameters of a sound file before its checksums are made right."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Random = np.random.Generator

INTEGERS = (-1, 0, 1, 2, 127, 128, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1)
FLOATS = (np.nan, np.inf, -np.inf, -1.0, -0.0, 5e-324, 1e-300, 1e-30, 1e18, 1e30, 3e38, 1e308)
DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "U3", "S3")
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, -1, 0.5, -0.5, 1e308, 5e-324, 2**31, 2**40, 2**63 - 1, 2**64 - 1,
    -(2**63), "", "x", "LongTailClassifier", "DoubleSamplingClassifier", "TextClassifier", [], [1],
    [2, 3], [3, 2], [2, 10**9], ["a", None], {}, {"x": 1}, 10**9,
)  # fmt: skip


def extreme(array: Array, which: int) -> Array:
    """Return a value of the array's dtype that is out of what is usual, as a scalar array."""
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.array(FLOATS[which % len(FLOATS)]).astype(array.dtype)
    if array.dtype.kind in "iu":
        bounds = np.iinfo(array.dtype)
        values = [v for v in (*INTEGERS, int(bounds.min), int(bounds.max)) if v <= bounds.max]
        values = [v for v in values if v >= bounds.min]
        return np.array(values[which % len(values)], array.dtype)
    if array.dtype.kind == "b":
        return np.array(bool(which % 2))
    return np.array("x" * (which % 4)).astype(array.dtype)


def with_element(array: Array, position: int, value: Array) -> Array:
    """Return the array with one element replaced."""
    changed = array.copy()
    if changed.size:
        changed.reshape(-1)[position % changed.size] = value
    return changed


def _repeat_last(array: Array) -> Array:
    return np.concatenate([array, array[-1:]]) if len(array) else np.zeros(1, array.dtype)


def _wrap(array: Array) -> Array:
    """Return offsets whose differences overflow to what looks right."""
    changed = array.astype(np.int64)
    if changed.ndim == 1 and len(changed) > 3:
        changed[1], changed[2] = 2**63 - 1, -(2**63) + 1
    return changed


def _retype(dtype: str) -> Callable[[Array], Array]:
    def change(array: Array) -> Array:
        with np.errstate(all="ignore"):
            return array.astype(dtype)

    return change


def _poison(which: int, position: int) -> Callable[[Array], Array]:
    return lambda array: with_element(array, position, extreme(array, which))


# By name: each is applied to every array of every seed.
SYSTEMATIC: dict[str, Callable[[Array], Array | None]] = {
    "drop": lambda array: None,
    "shorten": lambda array: array[:-1] if array.ndim else array,
    "halve": lambda array: array[: len(array) // 2],
    "empty": lambda array: array[:0],
    "lengthen": _repeat_last,
    "double": lambda array: np.concatenate([array, array]),
    "add a dimension": lambda array: array[None],
    "a column": lambda array: array.reshape(-1, 1),
    "flatten": lambda array: array.reshape(-1)[: len(array)],
    "a scalar": lambda array: array.reshape(-1)[0].reshape(()) if array.size else None,
    "reverse": lambda array: array[::-1].copy(),
    "roll": lambda array: np.roll(array, 1),
    "sort": lambda array: np.sort(array, axis=0),
    "zero": np.zeros_like,
    "wrap": _wrap,
    **{f"as {dtype}": _retype(dtype) for dtype in DTYPES[::2]},
    **{
        f"extreme {which} at {position}": _poison(which, position)
        for which in range(16)
        for position in ((0, -1, 5)[which % 3],)
    },
    **{
        f"all extreme {which}": lambda array, which=which: np.full_like(
            array, extreme(array, which)
        )
        for which in range(0, 16, 3)
    },
}


def mutate_array(name: str, arrays: dict[str, Array], random: Random) -> None:
    """Change one array in one of many ways, or exchange it with another."""
    array = arrays[name]
    choice = int(random.integers(10))
    if choice <= 3:
        key = list(SYSTEMATIC)[int(random.integers(len(SYSTEMATIC)))]
        try:
            changed = SYSTEMATIC[key](array)
        except (ValueError, IndexError, TypeError):  # not for a scalar, which it may be by now
            changed = array
    elif choice <= 6:
        changed = array
        for _ in range(int(random.integers(1, 4))):
            value = extreme(array, int(random.integers(99)))
            if random.random() < 0.5 and array.size:  # one that is near what it was
                value = array.reshape(-1)[int(random.integers(array.size))]
                if array.dtype.kind in "iuf" and random.random() < 0.5:
                    with np.errstate(all="ignore"):
                        value = (value + array.dtype.type(1)).astype(array.dtype)
            changed = with_element(changed, int(random.integers(1 << 30)), value)
    elif choice == 7:
        changed = random.permutation(array) if array.ndim else array
    elif choice == 8:
        other = arrays[list(arrays)[int(random.integers(len(arrays)))]]
        changed = other
    else:
        with np.errstate(all="ignore"):
            scale = float(random.choice([0.0, -1.0, 0.5, 2.0, 1e9, 1e18]))
            changed = array if array.dtype.kind in "US" else (array * scale).astype(array.dtype)
    if changed is None:
        del arrays[name]
    else:
        arrays[name] = np.ascontiguousarray(changed).reshape(np.shape(changed))


def mutate_sizes(arrays: dict[str, Array], random: Random) -> None:
    """Shorten or lengthen all arrays of one length together: sizes that agree, and are wrong."""
    lengths = sorted({len(array) for array in arrays.values() if array.ndim and len(array)})
    length = lengths[int(random.integers(len(lengths)))]
    change = SYSTEMATIC[str(random.choice(["shorten", "lengthen", "halve", "empty", "double"]))]
    for name, array in list(arrays.items()):
        if array.ndim and len(array) in (length, length + 1) and random.random() < 0.95:
            arrays[name] = np.ascontiguousarray(change(array))
        elif array.ndim == 2 and array.shape[1] == length:
            arrays[name] = np.ascontiguousarray(change(array.T).T)  # type: ignore[union-attr]


def mutate_parameters(parameters: dict[str, Any], random: Random) -> dict[str, Any]:
    """Replace, drop or add one value, at any depth."""
    changed = copy.deepcopy(parameters)
    holder = changed
    while True:
        key = list(holder)[int(random.integers(len(holder)))]
        if not (isinstance(holder[key], dict) and holder[key]) or random.random() < 0.1:
            break
        holder = holder[key]
    choice = random.random()
    if choice < 0.1:
        del holder[key]
    elif choice < 0.2:
        holder["more"] = copy.deepcopy(VALUES[int(random.integers(len(VALUES)))])
    else:
        holder[key] = copy.deepcopy(VALUES[int(random.integers(len(VALUES)))])
    return changed
