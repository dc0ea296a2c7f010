"""Checks of arrays and values against the schema; numpy alone, no kernel, small temporaries.

In: named arrays and values of a file, or of a state that is about to be saved. Out: the sizes they
agree on, or a `FaultError` that names the first array that is wrong and says what it must be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail._constants import LABEL_FORMS, MAX_COLUMNS, WEIGHT_BITS
from longtail._kernels.sizes import BYTE_LEVELS, WORD_LEVELS
from longtail._records import read_fields
from longtail.store.manifest import Array
from longtail.store.specs import LARGEST_FLOAT, LARGEST_SIZE, ArraySpec, ValueSpec
from longtail.store.strict_json import FaultError, shown

Arrays = Mapping[str, Array]
Values = Mapping[str, Any]
Sizes = dict[str, int]

_CLASSES_WITH_TERM = "(classes with each term)"  # no name that a file can have
_BLOCK = 1 << 18  # elements compared together: bounds the temporaries
_SIZE = re.compile(r"(.*?)( \+ 1)?")


# ---- structure: names, dtypes, shapes


def check_structure(specs: tuple[ArraySpec, ...], arrays: Arrays) -> Sizes:
    """Check names, dtypes and shapes, in a time that does not depend on sizes; return these.

    Raises
    ------
    FaultError
        An array is missing, unknown, or has another dtype or shape.
    """
    known = {spec.name for spec in specs}
    for name in arrays:
        if name not in known:
            raise FaultError(f"has an array {shown(name)} that its kind does not have")
    sizes: Sizes = {}
    for spec in specs:
        array = arrays.get(spec.name)
        if array is not None:
            _check_form(spec, array, sizes)
        elif not spec.optional:
            raise FaultError(f"has no array {spec.name!r}; it has {shown(list(arrays))}")
    return sizes


def _check_form(spec: ArraySpec, array: Array, sizes: Sizes) -> None:
    """Check dtype and shape of one array; sizes that are new are added."""
    if array.dtype.str[1:] not in spec.dtypes.split():
        raise FaultError(f"array {spec.name!r} must be {_dtype_names(spec)}; it is {array.dtype}")
    shape = spec.shape.split(", ")
    if array.ndim != len(shape):
        raise FaultError(
            f"array {spec.name!r} must have {len(shape)} dimension(s); it has {array.ndim}"
        )
    for size, text in zip(array.shape, shape, strict=True):
        name, plus = _SIZE.fullmatch(text).groups()  # type: ignore[union-attr]
        base = size - bool(plus)
        expected = int(name) if name.isdigit() else sizes.setdefault(name, base)
        if base != expected or base < 0:
            raise FaultError(
                f"array {spec.name!r} must have the shape ({spec.shape}) with "
                f"{name} = {expected}; it has {shown(array.shape)}"
            )


def _dtype_names(spec: ArraySpec) -> str:
    """Return the accepted dtypes for a message."""
    return " or ".join(np.dtype(code).name for code in spec.dtypes.split())


# ---- contents: range, order


def check_contents(spec: ArraySpec, arrays: Arrays, sizes: Sizes) -> None:
    """Check the values of one array; the arrays before it in the schema are sound.

    Raises
    ------
    FaultError
        A value is out of range or out of order.
    """
    array = arrays[spec.name]
    _check_range(spec, array, sizes)
    if spec.offsets:
        end = sizes[spec.offsets]
        if array[0] != 0 or array[-1] != end or not is_ordered(array, "not falling"):
            raise FaultError(f"array {spec.name!r} must go from 0 to {end} and never fall")
    column = array[:, 0] if array.ndim == 2 else array
    # Offsets are compared with their neighbours: differences of wrapped ones would overflow.
    if spec.order and not is_ordered(column, spec.order, arrays.get(spec.rows)):
        where = " within each row" if spec.rows else ""
        raise FaultError(f"the values of array {spec.name!r} must be {spec.order}{where}")


def _check_range(spec: ArraySpec, array: Array, sizes: Sizes) -> None:
    """Check the least and the largest value; NaN is neither."""
    if not array.size or array.dtype.kind == "b":
        return
    low, high = spec.low, spec.high
    if spec.ids:
        low, high = max(low, -1 if spec.low == -1 else 0), sizes[spec.ids] - 1
    least, largest = array.min().item(), array.max().item()
    if not (low <= least and largest <= high):
        raise FaultError(
            f"the values of array {spec.name!r} must be from {low:g} to {high:g}; "
            f"they reach from {least} to {largest}"
        )
    if spec.least_nonzero and any(
        np.any((block != 0) & (block < spec.least_nonzero)) for block in _blocks(array)
    ):
        raise FaultError(
            f"the values of array {spec.name!r} must be 0 or at least {spec.least_nonzero:g}"
        )


def is_ordered(array: Array, order: str, starts: Array | None = None) -> bool:
    """Return whether values are "rising", "not falling" or "not rising", within rows if given."""
    compare: Callable[[Array, Array], Array] = {
        "rising": np.greater,
        "not falling": np.greater_equal,
        "not rising": np.less_equal,
    }[order]
    for first in range(0, len(array) - 1, _BLOCK):
        block = array[first : first + _BLOCK + 1]
        breaks = np.flatnonzero(~compare(block[1:], block[:-1])) + (first + 1)
        if len(breaks) and (
            starts is None or not np.array_equal(starts[np.searchsorted(starts, breaks)], breaks)
        ):
            return False
    return True


def _blocks(array: Array, size: int = _BLOCK) -> Iterator[Array]:
    """Cut an array into blocks whose temporaries are small."""
    return (array[first : first + size] for first in range(0, len(array), size))


def check_utf8(name: str, utf8: Array, offsets: Array, errors: str) -> None:
    """Check that bytes are UTF-8 and that no text begins inside a character."""
    try:
        utf8.tobytes().decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise FaultError(f"the texts {name!r} are not UTF-8: {error.reason}") from None
    starts = offsets[:-1][offsets[:-1] < len(utf8)]
    if np.any(utf8[starts] & 0xC0 == 0x80):
        raise FaultError(f"a text of {name!r} begins inside a character")


# ---- values


def check_value(spec: ValueSpec, value: Any) -> None:
    """Check one value that is not an array.

    Raises
    ------
    FaultError
        It is of another type, or out of range.
    """
    if value is None and spec.nullable:
        return
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    sound = {
        "boolean": isinstance(value, bool),
        "integer": is_integer,
        "number": is_integer or isinstance(value, float),
        "float": is_integer or isinstance(value, float),
        "pair": isinstance(value, list) and [type(item) for item in value] == [int, int],
        "frequency": (is_integer and 1 <= value <= LARGEST_SIZE)
        or (isinstance(value, float) and 0 <= value <= 1),
        "string": isinstance(value, str) and len(value) <= LONGEST_STRING,
        "strings": (isinstance(value, str) and len(value) <= LONGEST_STRING)
        or (isinstance(value, list) and all(isinstance(item, str) for item in value)),
        "multilabel": isinstance(value, bool) or value == "auto",
        "memory": value == "auto" or (is_integer and spec.low <= value <= spec.high),
        "class_weight": value == "balanced" or _are_class_weights(value),
        "fields": _are_fields(value),
    }[spec.kind]
    values = value if spec.kind == "pair" else [value]
    if sound and spec.kind in ("integer", "number", "float", "pair"):
        sound = (
            all(spec.low <= item <= spec.high for item in values)
            and list(values) == sorted(values)
            and (spec.above is None or value > spec.above)
            and (not spec.among or value in spec.among)
        )
    elif sound and spec.among:
        sound = value in spec.among
    if not sound:
        raise FaultError(f"has a wrong {spec.name}: {shown(value)}; it must be {describe(spec)}")


def _are_class_weights(value: Any) -> bool:
    """Return whether a value is a list of pairs of a label and a positive number."""
    return isinstance(value, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str | int | float)
        and isinstance(pair[1], int | float)
        and 0 < pair[1] <= LARGEST_FLOAT
        for pair in value
    )


def _are_fields(value: Any) -> bool:
    """Return whether a value is a list of pairs of a name and a kind of field, each name once."""
    is_list = isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(item, str) for item in pair)
        for pair in value
    )
    if not is_list or len({name for name, _ in value}) < len(value):
        return False
    try:
        return read_fields(dict(value)) is not None
    except ValueError:
        return False


LONGEST_STRING = 1000
_PLAIN_KINDS = {
    "frequency": "an integer from 1 on, or a number with a point from 0.0 to 1.0",
    "string": f"a string of at most {LONGEST_STRING} characters",
    "strings": "a string, or a list of strings",
    "multilabel": 'true, false or "auto"',
    "memory": f'"auto", or an integer from 0 to {2**31 - 1}',
    "fields": "a list of pairs of a name and a kind of field",
    "class_weight": '"balanced", or a list of pairs of a label and a positive number',
}


def describe(spec: ValueSpec) -> str:
    """Return in words what a value must be."""
    if spec.kind == "boolean":
        return " or ".join(str(value).lower() for value in spec.among or (True, False))
    if spec.kind in _PLAIN_KINDS:
        return _PLAIN_KINDS[spec.kind] + (" or null" if spec.nullable else "")
    names = {"integer": "an integer", "pair": "two integers, ascending"}
    text = names.get(spec.kind, "a number")
    if spec.among:
        text += " among " + ", ".join(map(str, spec.among))
    elif spec.above is not None:
        text += f" above {spec.above:g} and at most {spec.high:g}"
    else:
        text += f" from {spec.low:g} to {spec.high:g}"
    return text + (" or null" if spec.nullable else "")


# ---- rules between arrays


@dataclass(frozen=True)
class Rule:
    """A condition between arrays and values; checked only where all of `names` are in the file."""

    statement: str
    names: tuple[str, ...]
    holds: Callable[[Arrays, Values], bool]


def check_rules(arrays: Arrays, values: Values) -> None:
    """Check what must hold between arrays that are sound by themselves.

    Raises
    ------
    FaultError
        With the first rule that is broken.
    """
    n_terms = len(arrays["statistics/document_frequencies"])
    classes_with_term = _count_terms(arrays["statistics/indices"], n_terms)
    arrays = {**arrays, _CLASSES_WITH_TERM: classes_with_term}  # two rules ask for it
    for rule in RULES:
        if all(name in arrays or name in values for name in rule.names):
            with np.errstate(all="ignore"):
                holds = rule.holds(arrays, values)
            if not holds:
                raise FaultError(f"breaks the rule that {rule.statement}")


def _row_sums(array: Array, indptr: Array) -> Array:
    """Return the sum of each row that is not empty, as float64."""
    starts = indptr[:-1][indptr[1:] > indptr[:-1]]
    return np.add.reduceat(array, starts, dtype=np.float64) if len(starts) else np.zeros(0)


def _column_sums(indices: Array, array: Array, n_columns: int) -> Array:
    """Return the sum of each column, as float64."""
    sums = np.zeros(n_columns)
    for first in range(0, len(indices), _BLOCK):
        block = slice(first, first + _BLOCK)
        sums += np.bincount(indices[block], array[block], minlength=n_columns)
    return sums


def _count_terms(indices: Array, n_terms: int) -> Array:
    """Return how often each term is listed."""
    blocks = _blocks(indices, max(_BLOCK, n_terms))  # not smaller than what is added up
    return sum((np.bincount(b, minlength=n_terms) for b in blocks), np.zeros(n_terms, np.int64))


def _sums_fit(arrays: Arrays, _: Values) -> bool:
    indptr, indices = arrays["statistics/indptr"], arrays["statistics/indices"]
    n_terms = len(arrays["statistics/document_frequencies"])
    return all(
        # No value is below 0, so no sum is above the total; 2^61 leaves it to rounding.
        array.sum(dtype=np.float64) <= 2.0**61
        or (
            _row_sums(array, indptr).max(initial=0) <= 2.0**62
            and _column_sums(indices, array, n_terms).max(initial=0) <= 2.0**62
        )
        for array in (arrays["statistics/counts"], arrays["statistics/centroid_sums"])
    )


def _gaps_lead_to_terms(arrays: Arrays, _: Values) -> bool:
    indptr, gaps, data = (arrays[f"memory/{name}"] for name in ("indptr", "gaps", "data"))
    n_terms = len(arrays["statistics/document_frequencies"])
    if _row_sums(gaps, indptr).max(initial=-1) >= n_terms:
        return False
    stays = np.flatnonzero(gaps == 0)
    stays = stays[~np.isin(stays, indptr[:-1])]
    return not np.any(data[stays - 1] > 0)


def _empty_classes_have_no_terms(arrays: Arrays, _: Values) -> bool:
    indptr = arrays["statistics/indptr"]
    return not np.any((arrays["statistics/class_sizes"] == 0) & (indptr[1:] > indptr[:-1]))


def _frequencies_fit(arrays: Arrays, values: Values) -> bool:
    frequencies = arrays["statistics/document_frequencies"]
    classes_with_term = arrays[_CLASSES_WITH_TERM]
    # Documents may count as fractions, the least of which is a unit; fractions may add up to ones.
    least = classes_with_term * (2.0**-WEIGHT_BITS if values.get("statistics/count_bits") else 1)
    return bool(np.all(least <= frequencies))


def _corpus_fits(arrays: Arrays, values: Values) -> bool:
    total, length = arrays["corpus/term_counts"].sum(), values["corpus/length"]
    mean = values["corpus/mean_class_length"]
    return bool(
        abs(total - length) <= 1e-6 * total and mean <= length and mean >= length * 2.0**-48
    )


def _index_has_every_entry(arrays: Arrays, _: Values) -> bool:
    indptr, rows = arrays["index/indptr"], arrays["index/dense_row_ids"]
    n_postings = np.where(rows < 0, arrays[_CLASSES_WITH_TERM], 0)
    dense = rows[rows >= 0]
    return bool(
        np.array_equal(indptr[1:] - indptr[:-1], n_postings)
        and np.array_equal(dense, np.arange(len(arrays["index/dense_rows"])))
    )


def _zero_is_a_level(arrays: Arrays, _: Values) -> bool:
    """Return whether the levels of each term reach to 0, what it adds to a class without it."""
    low, scales = (arrays[f"index/{name}"].astype(np.float64) for name in ("zero_points", "scales"))
    n_levels = np.where(arrays["index/dense_row_ids"] >= 0, BYTE_LEVELS, WORD_LEVELS)
    return bool(np.all(low + n_levels * scales >= 1e-6 * low))


def _index_has_the_scorers_biases(arrays: Arrays, _: Values) -> bool:
    return all(
        np.array_equal(arrays[f"index/{name}"], arrays[f"scorer/{name}"].astype(np.float32))
        for name in ("biases", "length_weights")
    )


def _labels_are_columns(arrays: Arrays, values: Values) -> bool:
    if values["label_form/form"] < LABEL_FORMS.index("sparse indicator"):
        return bool(values["label_form/n_columns"] == 0)
    classes = arrays.get("classes", np.zeros(0))  # some may have been added since the fit
    return classes.dtype.kind in "iu" and bool(classes[0] >= 0 and classes[-1] < MAX_COLUMNS)


def _terms_are_utf8(arrays: Arrays, _: Values) -> bool:
    check_utf8("vocabulary", arrays["vocabulary/utf8"], arrays["vocabulary/offsets"], "strict")
    return True


_INDEX_NAMES = tuple(
    f"index/{name}"
    for name in ("indptr", "dense_row_ids", "dense_rows", "zero_points", "scales", "biases")
)
RULES = (
    Rule(
        "labels that come as an indicator matrix are its columns, and others are of none",
        ("label_form/form", "label_form/n_columns"),
        _labels_are_columns,
    ),
    Rule(
        "there are at most 2^53 documents, and at least one class",
        ("statistics/class_sizes",),
        lambda arrays, _: bool(
            len(arrays["statistics/class_sizes"])
            and arrays["statistics/class_sizes"].sum(dtype=np.float64) <= 2.0**53
        ),
    ),
    Rule("a class without documents has no terms", (), _empty_classes_have_no_terms),
    Rule("counts and centroid sums of a class or a term add up to at most 2^62", (), _sums_fit),
    Rule("a term is in at least as many documents as classes", (), _frequencies_fit),
    Rule(
        "the last fit had at most as many terms as there are now",
        (),
        lambda arrays, _: (
            len(arrays["corpus/term_counts"]) <= len(arrays["statistics/document_frequencies"])
        ),
    ),
    Rule("the length of the corpus is the sum of its term counts", (), _corpus_fits),
    Rule("the gaps of a document kept lead from term to term, none beyond the last",
         ("memory/gaps",), _gaps_lead_to_terms),
    Rule("the index has each term of each class once", _INDEX_NAMES, _index_has_every_entry),
    Rule("a weight of 0 is among the levels of each term", _INDEX_NAMES, _zero_is_a_level),
    Rule("the biases of the index are those of the scorer", (*_INDEX_NAMES, "scorer/biases"),
         _index_has_the_scorers_biases),
    Rule("there is an index unless classes have texts", ("scorer/weights",),
         lambda arrays, _: ("index/indptr" in arrays) != ("names/named" in arrays)),
    Rule("texts have embeddings where documents and texts have", (),
         lambda arrays, _: "names/embeddings" not in arrays or (
             "statistics/embedding_sums" in arrays and "names/named" in arrays)),
    Rule("documents that are kept have embeddings where the sums have", (),
         lambda arrays, _: "memory/indptr" not in arrays or (
             ("memory/embeddings" in arrays) == ("statistics/embedding_sums" in arrays))),
    Rule("an encoder belongs to embeddings", ("vocabulary/utf8",),
         lambda arrays, _: (
             ("embedder/probe" in arrays) <= ("statistics/embedding_sums" in arrays))),
    Rule("embeddings have at least one dimension", (), lambda arrays, _: (
        "statistics/embedding_sums" not in arrays
        or arrays["statistics/embedding_sums"].shape[1] > 0)),
    Rule("every scale of the paper's scorer is above 0", ("pairwise/scales",),
         lambda arrays, _: bool(np.all(arrays["pairwise/scales"] > 0))),
    Rule("the terms are UTF-8", ("vocabulary/utf8",), _terms_are_utf8),
    Rule("the terms of the fit are among the terms", ("text/n_fitted",), lambda arrays, values: (
        values["text/n_fitted"] <= len(arrays["statistics/document_frequencies"])
    )),
)  # fmt: skip
