"""JSON of bounded depth with bounded numbers, finite floats and no key twice."""

from __future__ import annotations

import json
import math
import re
import reprlib
from typing import Any

import numpy as np

_DEEPEST_JSON = 32
_LONGEST_NUMBER = 40  # characters; the time int() takes grows with the square of the digits
# Possessive, and the closing quote may be missing: linear also where a string never ends.
_JSON_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_SHORT = reprlib.Repr()  # a few elements, a few levels, whatever the value
_SHORT.maxstring = _SHORT.maxother = 80


class FaultError(Exception):
    """A fault of a file whose name is not known here; `open_model` adds the name."""


def to_json(value: object) -> bytes:
    """Return the one JSON text of a value: keys sorted, ASCII, no spaces."""
    text = json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return text.encode("ascii")


def parse_json(text: bytes) -> Any:
    """Parse JSON of bounded depth with bounded numbers, finite floats and no key twice."""
    _audit_depth(text)
    try:
        return json.loads(
            text.decode("utf-8"),
            parse_int=_parse_integer,
            parse_float=_parse_float,
            parse_constant=_refuse_constant,
            object_pairs_hook=_parse_object,
        )
    except ValueError as error:
        raise FaultError(f"has a manifest that is not JSON: {error}") from None


def _audit_depth(text: bytes) -> None:
    """Refuse nested lists and objects that would exhaust the parser's stack."""
    symbols = np.frombuffer(_JSON_STRING.sub(b"", text), dtype=np.uint8)
    opening = (symbols == ord("[")) | (symbols == ord("{"))
    closing = (symbols == ord("]")) | (symbols == ord("}"))
    depth = np.cumsum(opening.view(np.int8) - closing.view(np.int8), dtype=np.int32)
    if depth.max(initial=0) > _DEEPEST_JSON:
        raise FaultError(f"has JSON nested deeper than {_DEEPEST_JSON} levels")


def _parse_integer(digits: str) -> int:
    """Return an integer that fits into 64 bits, signed or unsigned."""
    if len(digits) <= _LONGEST_NUMBER and -(2**63) <= (value := int(digits)) < 2**64:
        return value
    raise FaultError(f"has an integer beyond 64 bits: {shown(digits)}")


def _parse_float(digits: str) -> float:
    """Return a finite float."""
    if len(digits) <= _LONGEST_NUMBER and math.isfinite(value := float(digits)):
        return value
    raise FaultError(f"has a number that is not a finite float: {shown(digits)}")


def _refuse_constant(name: str) -> None:
    """Refuse NaN and the infinities, which are not JSON."""
    raise FaultError(f"has {name} where JSON wants a finite number")


def _parse_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's items, each key once."""
    items = dict(pairs)
    if len(items) != len(pairs):
        raise FaultError("has a JSON object with the same key twice")
    return items


def shown(value: object) -> str:
    """Return a value's repr, cut to what a message can show."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # an integer of more digits than Python agrees to print
        return f"a {type(value).__name__}"
