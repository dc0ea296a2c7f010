"""From a fitted state to named arrays and back, as the schema says.

In: a state and the parameters of its estimator, or a file. Out: a file, or the state, after every
array and value was checked against the schema; only then does a kernel or a builder see one.
Nothing here knows the fields of a state: names are paths (`schema`), part classes are the types of
the state's fields.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from longtail.retrieval.index import build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.store.checks import (
    Sizes,
    check_contents,
    check_rules,
    check_structure,
    check_texts,
    check_value,
)
from longtail.store.container import ModelFile, open_model, write_model
from longtail.store.format_1 import translate_format_1
from longtail.store.manifest import Array
from longtail.store.schema import (
    FEATURE_NAMES_IN,
    NUMERIC_LABELS,
    OBJECT_LABELS,
    PARAMETERS,
    SCHEMAS,
    STRING_LABELS,
    TEXT,
    TEXT_VALUES,
    ArraySpec,
    Schema,
    ValueSpec,
)
from longtail.store.strict_json import FaultError, shown
from longtail.store.texts import pack_texts, unpack_texts
from longtail.training.double_sampling import DoubleSamplingState, derive_state
from longtail.training.long_tail import LongTailState

TEXT_KIND = "TextClassifier"
_DEFAULT_KIND = "LongTailClassifier"  # of the classifier in a `TextClassifier`
_STATES: dict[str, type] = {
    "LongTailClassifier": LongTailState,
    "DoubleSamplingClassifier": DoubleSamplingState,
}
_TEXTS = (STRING_LABELS, OBJECT_LABELS, FEATURE_NAMES_IN)
# As fixed-width strings, labels may take so much more memory than in a file; else they are objects.
_LARGEST_EXPANSION = 16


@dataclass(frozen=True, eq=False)
class SavedModel:
    """What a file holds of an estimator.

    Attributes
    ----------
    kind : str
        Name of the estimator's class.
    parameters : dict of str to dict
        Constructor parameters by class: those of the estimator, and for a `TextClassifier` those of
        its classifier of counts.
    state : LongTailState or DoubleSamplingState
        Of the classifier of counts.
    parts : dict of str to object
        What a `TextClassifier` has beside the state, by the first word of its names in the schema;
        after loading, each a dict of attributes. Empty for a classifier of counts.
    feature_names : ndarray or None
        Names of the columns.
    """

    kind: str
    parameters: Mapping[str, Mapping[str, Any]]
    state: Any
    parts: Mapping[str, Any]
    feature_names: NDArray[Any] | None = None

    @property
    def counts_kind(self) -> str:
        """Class name of the classifier of counts."""
        return next(kind for kind in self.parameters if kind in SCHEMAS)


class _Contents(NamedTuple):
    """Names, arrays and values of a file, in the words of the newest format."""

    kind: str
    counts_kind: str
    parameters: Mapping[str, Mapping[str, Any]]
    arrays: dict[str, Array]
    values: Mapping[str, Any]


# ---- saving


def save_state(path: str | os.PathLike[str], model: SavedModel) -> None:
    """Check a model against the schema and write it.

    Raises
    ------
    ValueError, TypeError
        The model cannot be stored; nothing was written.
    ModelFileError, OSError
        As from `write_model`.
    """
    contents = _pack(model)
    try:
        _check(contents)
    except FaultError as fault:
        raise ValueError(f"this model cannot be saved: it {fault}.") from None
    header = {"estimators": contents.parameters, "values": contents.values}
    write_model(path, contents.kind, header, contents.arrays)


def _pack(model: SavedModel) -> _Contents:
    """Return what the schema has names for, found in the model by these names."""
    schema = SCHEMAS[model.counts_kind]
    arrays = _pack_labels(model.state.classes)
    if model.feature_names is not None:
        arrays |= pack_texts(FEATURE_NAMES_IN.name, model.feature_names.tolist())
    for array in _part_specs(model.kind, schema):
        found = _find(array.name, model)
        if found is not None:
            arrays[array.name] = found
    values = {value.name: _find(value.name, model) for value in _value_specs(model.kind, schema)}
    parameters = {
        kind: {spec.name: _as_stored(spec, given[spec.name]) for spec in PARAMETERS[kind]}
        for kind, given in model.parameters.items()
    }
    stored = {name: _as_plain(value) for name, value in values.items() if value is not None}
    return _Contents(model.kind, model.counts_kind, parameters, arrays, stored)


def _find(name: str, model: SavedModel) -> Any:
    """Return what a path leads to, or None."""
    first, *rest = name.split("/")
    found = model.parts[first] if first in model.parts else getattr(model.state, first)
    for attribute in rest:
        if found is not None:
            found = found[attribute] if isinstance(found, dict) else getattr(found, attribute)
    return found


def _as_plain(value: Any) -> Any:
    """Return a numpy scalar or a tuple as JSON knows it."""
    if isinstance(value, tuple):
        return [_as_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _as_stored(spec: ValueSpec, value: Any) -> Any:
    """Return a constructor parameter for a file; a generator's state is no part of a model."""
    value = _as_plain(value)
    if spec.name == "random_state" and (isinstance(value, bool) or not isinstance(value, int)):
        return None
    return value


def _pack_labels(classes: NDArray[Any]) -> dict[str, Array]:
    """Return the labels as arrays: numbers as they are, strings as UTF-8."""
    if classes.dtype.kind in "iufb":
        return {NUMERIC_LABELS.name: classes}
    labels = classes.tolist()
    if not all(isinstance(label, str) for label in labels):
        raise TypeError(
            "only string, integer, float and boolean labels can be saved; "
            f"the first label is {classes[0]!r}. Fit with str(label) instead."
        )
    spec = OBJECT_LABELS if classes.dtype.kind == "O" else STRING_LABELS
    return pack_texts(spec.name, labels)


# ---- loading


def load_state(path: str | os.PathLike[str], *, verify: bool = True) -> SavedModel:
    """Open a file, check everything in it, and only then build the state.

    Parameters
    ----------
    path : path-like
        The file.
    verify : bool, default=True
        Compare every array with its checksum. The checks against the schema are made in any case.

    Raises
    ------
    ModelFileError
        Anything is wrong with the file.
    """
    file = open_model(path, verify=verify)
    try:
        contents = _read(file)
        sizes = _check(contents)
        classes = _unpack_labels(contents.arrays)
        return _build(contents, sizes, classes)
    except FaultError as fault:
        raise file.error(str(fault)) from None


def _read(file: ModelFile) -> _Contents:
    """Return the contents of a file in the words of the newest format."""
    kinds = sorted([*SCHEMAS, TEXT_KIND])
    if file.kind not in kinds:
        raise FaultError(f"holds a {file.kind!r}, which is none of {kinds}")
    header, arrays = file.parameters, file.arrays
    if file.format_number == 1:
        header, arrays = translate_format_1(file.kind, header, arrays)
    if header.keys() != {"estimators", "values"} or not all(
        isinstance(part, dict) for part in header.values()
    ):
        raise FaultError(f"has wrong parameters: {shown(header)}")
    estimators: dict[str, Any] = header["estimators"]
    inner = [kind for kind in estimators if kind in SCHEMAS]
    expected = {file.kind, *inner}
    if estimators.keys() != expected or len(inner) != 1 or (file.kind not in (TEXT_KIND, *inner)):
        raise FaultError(f"has the parameters of {shown(sorted(estimators))}, not of {file.kind}")
    return _Contents(file.kind, inner[0], estimators, dict(arrays), header["values"])


def _build(contents: _Contents, sizes: Sizes, classes: NDArray[Any]) -> SavedModel:
    """Build the state from checked contents; what can be derived and is missing is computed."""
    schema = SCHEMAS[contents.counts_kind]
    hints = get_type_hints(_STATES[contents.counts_kind])
    grouped = _group(contents, schema, sizes)
    fields: dict[str, Any] = {"classes": classes}
    for name, hint in hints.items():
        found = grouped.pop(name, None)
        if found is not None:
            fields[name] = _part_class(hint)(**found) if isinstance(found, dict) else found
    parameters = {
        kind: {
            spec.name: _as_given(spec, given[spec.name])
            for spec in PARAMETERS[kind]
            if spec.name in given
        }
        for kind, given in contents.parameters.items()
    }
    names = None
    if f"{FEATURE_NAMES_IN.name}.utf8" in contents.arrays:
        names = np.array(_texts(FEATURE_NAMES_IN.name, contents.arrays), dtype=object)
    state = _COMPLETE[contents.counts_kind](fields)
    return SavedModel(contents.kind, parameters, state, grouped, names)


def _as_given(spec: ValueSpec, value: Any) -> Any:
    """Return a value as constructors take it; kernels are compiled for floats, not for integers."""
    if spec.kind == "float":
        return float(value)
    return tuple(value) if isinstance(value, list) else value


def _part_class(hint: Any) -> Any:
    """Return the class of a field's type, which may be `Part | None`."""
    return next((part for part in get_args(hint) if part is not type(None)), hint)


def _group(contents: _Contents, schema: Schema, sizes: Sizes) -> dict[str, Any]:
    """Return arrays and values by the first word of their names."""
    grouped: dict[str, Any] = {}

    def put(name: str, value: Any) -> None:
        first, *rest = name.split("/")
        if rest:
            grouped.setdefault(first, {})[rest[0]] = value
        else:
            grouped[first] = value

    for spec in _part_specs(contents.kind, schema):
        if spec.name in contents.arrays:
            put(spec.name, _narrow(spec, contents.arrays[spec.name], sizes))
    for value in _value_specs(contents.kind, schema):
        if value.name in contents.values:
            put(value.name, _as_given(value, contents.values[value.name]))
    for name, source in schema.shared.items():
        if name.split("/")[0] in grouped:
            put(name, grouped["statistics"][source.split("/")[1]])
    for name, size in schema.zeros.items():
        if name.split("/")[0] in grouped:
            put(name, np.zeros(sizes[size]))
    return grouped


def _narrow(spec: ArraySpec, array: Array, sizes: Sizes) -> Array:
    """Return ids in the dtype that kernels are compiled for: the first that holds them all."""
    largest = sizes[spec.ids] - 1 if spec.ids else int(spec.high)
    for code in spec.dtypes.split():
        if code[0] in "iu" and " " in spec.dtypes and np.iinfo(code).max >= largest:
            return array.astype(code, copy=False)
    return array


def _unpack_labels(arrays: Mapping[str, Array]) -> NDArray[Any]:
    """Return the labels in the type they were saved from; they are as many as classes.

    Raises
    ------
    FaultError
        They are not sorted, or one occurs twice.
    """
    if NUMERIC_LABELS.name in arrays:
        return np.array(arrays[NUMERIC_LABELS.name])
    is_object = f"{OBJECT_LABELS.name}.utf8" in arrays
    name = OBJECT_LABELS.name if is_object else STRING_LABELS.name
    texts = _texts(name, arrays)
    if any(first >= second for first, second in pairwise(texts)):
        raise FaultError("has labels that are not sorted, or one twice")
    if not is_object and any(text.endswith("\0") for text in texts):
        raise FaultError("has a label that ends with a NUL character, which a string array drops")
    longest = max(map(len, texts), default=0)
    n_bytes = arrays[f"{name}.utf8"].nbytes + arrays[f"{name}.offsets"].nbytes
    fits = 4 * longest * len(texts) <= _LARGEST_EXPANSION * n_bytes
    return np.array(texts, dtype=np.str_ if fits and not is_object else object)


def _texts(name: str, arrays: Mapping[str, Array]) -> list[str]:
    """Return checked texts."""
    return unpack_texts(name, arrays[f"{name}.offsets"], arrays[f"{name}.utf8"])


# ---- what a file may lack


def _complete_long_tail(fields: dict[str, Any]) -> LongTailState:
    """Add what follows from the rest of a state."""
    statistics = fields["statistics"]
    fields["current_corpus"] = fields["corpus"].with_terms_of(statistics.corpus)
    if "index" not in fields:
        fields["index"] = build_index(fields["scorer"], statistics.n_terms)
    if "pruning" not in fields:
        fields["pruning"] = QueryPruning.of(statistics)
    return LongTailState(**fields)


def _complete_double_sampling(fields: dict[str, Any]) -> DoubleSamplingState:
    """Add what follows from the rest of a state."""
    classes, statistics, corpus = (fields[name] for name in ("classes", "statistics", "corpus"))
    if "index" not in fields:
        return derive_state(classes, statistics, corpus, fields["pairwise"], None)
    fields["current_corpus"] = corpus.with_terms_of(statistics.corpus)
    return DoubleSamplingState(**fields, sample=None)


_COMPLETE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "LongTailClassifier": _complete_long_tail,
    "DoubleSamplingClassifier": _complete_double_sampling,
}


# ---- checking


def _part_specs(kind: str, schema: Schema) -> tuple[ArraySpec, ...]:
    """Return the arrays that are parts of the model, in the order of the checks."""
    return (*schema.arrays, *TEXT) if kind == TEXT_KIND else schema.arrays


def _value_specs(kind: str, schema: Schema) -> tuple[ValueSpec, ...]:
    """Return the values that are parts of the model."""
    return (*schema.values, *TEXT_VALUES) if kind == TEXT_KIND else schema.values


def _check(contents: _Contents) -> Sizes:
    """Check everything against the schema; return the sizes.

    Raises
    ------
    FaultError
        What is wrong.
    """
    schema, arrays = SCHEMAS[contents.counts_kind], contents.arrays
    specs = _part_specs(contents.kind, schema)
    texts = [spec for spec in _TEXTS if f"{spec.name}.utf8" in arrays]
    all_specs = (*specs, NUMERIC_LABELS, *(array for text in texts for array in text.arrays))
    sizes = check_structure(all_specs, arrays)
    if (NUMERIC_LABELS.name in arrays) + len(texts) - (FEATURE_NAMES_IN in texts) != 1:
        raise FaultError("has no labels, or more than one kind of them")
    for kind, given in contents.parameters.items():
        _check_values(f"parameters of {kind}", PARAMETERS[kind], given)
    _check_values("values", _value_specs(contents.kind, schema), contents.values)
    if contents.values.get("text/is_default") and contents.counts_kind != _DEFAULT_KIND:
        raise FaultError(f"has a {contents.counts_kind}, which is not the default classifier")
    _check_derived(schema, contents)
    # Offsets first: other arrays are checked row by row.
    for spec in sorted(all_specs, key=lambda spec: not spec.offsets):
        if spec.name in arrays:
            check_contents(spec, arrays, sizes)
    for text in texts:
        check_texts(text, arrays)
    check_rules(arrays, contents.values)
    return sizes


def _check_values(what: str, specs: tuple[ValueSpec, ...], given: Any) -> None:
    """Check values that are no arrays: their names, then each."""
    names = {spec.name for spec in specs}
    if not isinstance(given, Mapping) or not given.keys() <= names:
        raise FaultError(f"has wrong {what}: {shown(given)}; the names are {sorted(names)}")
    for spec in specs:
        if spec.name in given:
            check_value(spec, given[spec.name])
        elif not spec.optional:
            raise FaultError(f"has no {spec.name} among its {what}")


def _check_derived(schema: Schema, contents: _Contents) -> None:
    """Check that what can be derived is there as a whole or not at all."""
    for group in (*schema.derived, ("added",)):
        known = [spec.name for spec in _part_specs(contents.kind, schema)]
        known += [spec.name for spec in _value_specs(contents.kind, schema)]
        names = [name for name in known if name.split("/")[0] in group]
        present = [name in contents.arrays or name in contents.values for name in names]
        if any(present) and not all(present):
            missing = [name for name, here in zip(names, present, strict=True) if not here]
            raise FaultError(f"has no {missing[0]!r} beside the rest of {', '.join(group)}")
