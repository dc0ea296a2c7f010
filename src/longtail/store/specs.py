"""Elements of a schema: requirements on an array, a value or a list of texts of a file.

In: nothing. Out: dataclasses and the bounds that several of them share; `schema` fills them in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

# Far above any weight, sum or score, and so far below the largest float32 that the sums of a search
# stay finite.
LARGEST_FLOAT = 2.0**64
LARGEST_COUNT = 2**62
LARGEST_SIZE = 2**53  # documents: every smaller integer is exact as a float64
SMALLEST_SHARE = 2.0**-64  # of a term in the collection: its sums are integers below 2^63

Order = Literal["", "rising", "not falling", "not rising"]


@dataclass(frozen=True)
class ArraySpec:
    """Requirements on an array of a file."""

    name: str  # in the file, and where in the state it is
    # Accepted ones, separated by spaces. Ids come in the smallest that search and scoring use.
    dtypes: str
    shape: str  # sizes, separated by commas: a number, a name, or a name ``+ 1``
    meaning: str  # for the format page
    # Least and largest value.
    low: float = -LARGEST_FLOAT
    high: float = LARGEST_FLOAT
    ids: str = ""  # name of a size: values are ids below it
    least_nonzero: float = 0.0  # least value that is not zero
    # Name of a size: the values cut as many entries into rows, from 0 to it, never falling.
    offsets: str = ""
    order: Order = ""  # of the values; of the first column where there are two dimensions
    rows: str = ""  # name of an array of offsets: the order holds within each row
    optional: bool = False  # whether a model may have none


@dataclass(frozen=True)
class ValueSpec:
    """Requirements on a value of a file: a parameter of an estimator, or a number of a state.

    `kind` is "boolean", "integer", "number" (integers stay so), "float", "pair" (two integers,
    least first), "frequency" (an integer from 1 on, or a float from 0 to 1), "string",
    "strings" (one, or a list of them), "multilabel" (a boolean, or "auto"), "memory" (an
    integer, or "auto"), "class_weight" ("balanced", or a list of pairs of a label and a positive
    number) or "fields" (pairs of a name and a kind); None is accepted where `nullable`. `above` is
    a bound that is not reached.
    """

    name: str
    kind: Literal[
        "boolean", "integer", "number", "float", "pair", "frequency", "string", "strings",
        "multilabel", "memory", "class_weight", "fields",
    ]  # fmt: skip
    meaning: str
    low: float = -LARGEST_FLOAT
    high: float = LARGEST_FLOAT
    above: float | None = None
    among: tuple[int | bool, ...] = ()
    nullable: bool = False
    optional: bool = False


@dataclass(frozen=True)
class TextsSpec:
    """Texts of any length: two arrays, ``name.offsets`` and ``name.utf8``."""

    name: str
    size: str
    meaning: str

    @property
    def arrays(self) -> tuple[ArraySpec, ArraySpec]:
        """The two arrays."""
        n_bytes = f"n_bytes of {self.name}"
        utf8, offsets = f"{self.name}.utf8", f"{self.name}.offsets"
        return (
            ArraySpec(utf8, "u1", n_bytes, f"{self.meaning}, as UTF-8"),
            ArraySpec(offsets, "i8", f"{self.size} + 1", "where each begins", offsets=n_bytes),
        )


@dataclass(frozen=True)
class LabelSpecs:
    """Labels in one of three forms: numbers, strings, or Python strings in an object array."""

    numeric: ArraySpec
    strings: TextsSpec
    objects: TextsSpec

    @property
    def texts(self) -> tuple[TextsSpec, TextsSpec]:
        """The two forms of strings."""
        return self.strings, self.objects

    def count(self, arrays: Iterable[str]) -> int:
        """Return how many of the forms are among the names of arrays."""
        names = set(arrays)
        return (self.numeric.name in names) + sum(f"{t.name}.utf8" in names for t in self.texts)


@dataclass(frozen=True)
class Schema:
    """Everything that a file of one kind of estimator has.

    `shared` names arrays of the state that are another array of the file, `zeros` those that are
    zeros of a size.
    """

    arrays: tuple[ArraySpec, ...]
    values: tuple[ValueSpec, ...]
    shared: dict[str, str]
    zeros: dict[str, str]
