"""From a fitted state to named arrays and back, as the schema says.

In: a state and the parameters of its estimator, or a file. Out: a file, or the state, after every
array and value was checked against the schema; only then does a kernel or a builder see one.
Nothing here knows the fields of a state: names are paths (`schema`), part classes are the types of
the state's fields.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from longtail._validation import check_same_kind
from longtail.model.names import add_names
from longtail.model.state import LongTailState
from longtail.paper.double_sampling import DoubleSamplingState
from longtail.retrieval.index import build_index
from longtail.store.checks import Sizes
from longtail.store.container import write_model
from longtail.store.contents import Contents, check_all, open_checked, part_specs, value_specs
from longtail.store.manifest import Array
from longtail.store.schema import (
    CLASS_LABELS,
    CLASS_TEXTS,
    FEATURE_NAMES_IN,
    NODE_LABELS,
    PARAMETERS,
    SCHEMAS,
)
from longtail.store.specs import ArraySpec, LabelSpecs, Schema, ValueSpec
from longtail.store.strict_json import FaultError
from longtail.store.texts import pack_texts, unpack_texts
from longtail.taxonomy.hierarchy import Hierarchy

_STATES: dict[str, type] = {
    "LongTailClassifier": LongTailState,
    "DoubleSamplingClassifier": DoubleSamplingState,
}
# As fixed-width strings, labels may take so much more memory than in a file; else they are objects.
_LARGEST_EXPANSION = 16


@dataclass(frozen=True, eq=False)
class SavedModel:
    """An estimator as a file holds it."""

    kind: str  # name of the estimator's class
    # Constructor parameters by class: those of the estimator, and for a `TextClassifier` those of
    # its classifier of counts.
    parameters: Mapping[str, Mapping[str, Any]]
    state: Any  # of the classifier of counts
    # What a `TextClassifier` has beside the state, by the first word of its names in the schema;
    # after loading, each a dict of attributes. Empty for a classifier of counts.
    parts: Mapping[str, Any]
    feature_names: NDArray[Any] | None = None  # names of the columns
    class_texts: list[str] | None = None  # name or description of each class of a `TextClassifier`

    @property
    def counts_kind(self) -> str:
        """Class name of the classifier of counts."""
        for kind in self.parameters:
            if kind in SCHEMAS:
                return kind
        raise TypeError(
            f"{' with '.join(self.parameters)} cannot be saved: a file holds no class of your own. "
            f"Use {' or '.join(SCHEMAS)}, or pickle yours."
        )


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
        check_all(contents)
    except FaultError as fault:
        raise ValueError(f"this model cannot be saved: it {fault}.") from None
    header = {"estimators": contents.parameters, "values": contents.values}
    write_model(path, contents.kind, header, contents.arrays)


def _pack(model: SavedModel) -> Contents:
    """Return what the schema has names for, found in the model by these names."""
    schema = SCHEMAS[model.counts_kind]
    arrays = _pack_labels(CLASS_LABELS, model.state.classes)
    hierarchy = getattr(model.state, "hierarchy", None)
    if hierarchy is not None:
        arrays |= _pack_labels(NODE_LABELS, hierarchy.nodes)
    if model.feature_names is not None:
        arrays |= pack_texts(FEATURE_NAMES_IN.name, model.feature_names.tolist())
    if model.class_texts is not None:
        arrays |= pack_texts(CLASS_TEXTS.name, model.class_texts)
    # With names the index has more than can be checked against the statistics: it is rebuilt.
    has_names = getattr(model.state, "names", None) is not None
    has_embeddings = getattr(model.state, "n_dimensions", None) is not None
    for array in part_specs(model.kind, schema):
        is_left_out = has_names and array.name.startswith("index/")
        is_left_out |= not has_embeddings and array.name.startswith("check/meaning")
        found = None if is_left_out else _find(array.name, model)
        if found is not None:
            arrays[array.name] = found
    values = {value.name: _find(value.name, model) for value in value_specs(model.kind, schema)}
    parameters = {
        kind: {
            spec.name: _as_stored(spec, given[spec.name])
            for spec in PARAMETERS[kind]
            if not (spec.optional and given[spec.name] is None)
        }
        for kind, given in model.parameters.items()
    }
    stored = {name: _as_plain(value) for name, value in values.items() if value is not None}
    return Contents(model.kind, model.counts_kind, parameters, arrays, stored)


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
    if isinstance(value, tuple | list):
        return [_as_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(_as_plain(item) for item in value)
    return value.item() if isinstance(value, np.generic) else value


def _as_stored(spec: ValueSpec, value: Any) -> Any:
    """Return a constructor parameter for a file; a generator's state is no part of a model."""
    if spec.kind == "class_weight" and isinstance(value, Mapping):
        return [[_as_plain(label), float(weight)] for label, weight in value.items()]
    if spec.kind == "fields" and isinstance(value, Mapping):
        return [[name, kind] for name, kind in value.items()]
    value = _as_plain(value)
    if spec.name == "random_state" and (isinstance(value, bool) or not isinstance(value, int)):
        return None
    return value


def _pack_labels(specs: LabelSpecs, classes: NDArray[Any]) -> dict[str, Array]:
    """Return labels as arrays: numbers as they are, strings as UTF-8."""
    if classes.dtype.kind in "iufb":
        return {specs.numeric.name: classes}
    labels = classes.tolist()
    if not all(isinstance(label, str) for label in labels):
        raise TypeError(
            "only string, integer, float and boolean labels can be saved; "
            f"the first label is {classes[0]!r}. Fit with str(label) instead."
        )
    spec = specs.objects if classes.dtype.kind == "O" else specs.strings
    return pack_texts(spec.name, labels)


# ---- loading


def load_state(path: str | os.PathLike[str], *, verify: bool = True) -> SavedModel:
    """Open a file, check everything in it, and only then build the state.

    `verify` compares every array with its checksum; the checks against the schema are made in any
    case.

    Raises
    ------
    ModelFileError
        Anything is wrong with the file.
    """
    file, contents, sizes = open_checked(path, verify=verify)
    try:
        classes = _unpack_labels(CLASS_LABELS, contents.arrays)
        return _build(contents, sizes, classes)
    except FaultError as fault:
        raise file.error(str(fault)) from None


def _build(contents: Contents, sizes: Sizes, classes: NDArray[Any]) -> SavedModel:
    """Build the state from checked contents."""
    schema = SCHEMAS[contents.counts_kind]
    hints = get_type_hints(_STATES[contents.counts_kind])
    grouped = _group(contents, schema, sizes)
    if "hierarchy" in grouped:
        grouped["hierarchy"] = _build_hierarchy(contents, grouped["hierarchy"], classes)
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
    texts = None
    if f"{CLASS_TEXTS.name}.utf8" in contents.arrays:
        texts = _texts(CLASS_TEXTS.name, contents.arrays)
    if "names" in fields:
        _index_names(fields)
    state = _STATES[contents.counts_kind](**fields)
    return SavedModel(contents.kind, parameters, state, grouped, names, texts)


def _build_hierarchy(
    contents: Contents, arrays: dict[str, Array], classes: NDArray[Any]
) -> Hierarchy:
    """Build a hierarchy of checked arrays.

    Raises
    ------
    FaultError
        Its nodes are not sorted or of another kind than the classes, or it has a cycle.
    """
    hierarchy = Hierarchy(_unpack_labels(NODE_LABELS, contents.arrays), **arrays)
    try:
        check_same_kind(hierarchy.nodes, classes)
        hierarchy.check()
    except ValueError as error:
        raise FaultError(f"has a hierarchy that cannot be used: {error}") from None
    return hierarchy


def _as_given(spec: ValueSpec, value: Any) -> Any:
    """Return a value as constructors take it; kernels are compiled for floats, not for integers."""
    if spec.kind == "float" and value is not None:
        return float(value)
    if spec.kind in ("class_weight", "fields") and isinstance(value, list):
        return dict(value)
    return tuple(value) if isinstance(value, list) else value


def _part_class(hint: Any) -> Any:
    """Return the class of a field's type, which may be `Part | None`."""
    return next((member for member in get_args(hint) if member is not type(None)), hint)


def _group(contents: Contents, schema: Schema, sizes: Sizes) -> dict[str, Any]:
    """Return arrays and values by the first word of their names."""
    grouped: dict[str, Any] = {}

    def put(name: str, value: Any) -> None:
        first, *rest = name.split("/")
        if rest:
            grouped.setdefault(first, {})[rest[0]] = value
        else:
            grouped[first] = value

    for spec in part_specs(contents.kind, schema):
        if spec.name in contents.arrays:
            put(spec.name, _narrow(spec, contents.arrays[spec.name], sizes))
    for value in value_specs(contents.kind, schema):
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
    if array.dtype.kind == "f":
        return array
    largest = sizes[spec.ids] - 1 if spec.ids else int(spec.high)
    for code in spec.dtypes.split():
        if code[0] in "iu" and " " in spec.dtypes and np.iinfo(code).max >= largest:
            return array.astype(code, copy=False)
    return array


def _unpack_labels(specs: LabelSpecs, arrays: Mapping[str, Array]) -> NDArray[Any]:
    """Return labels in the type they were saved from, as many as there are.

    Raises
    ------
    FaultError
        They are not sorted, or one occurs twice.
    """
    if specs.numeric.name in arrays:
        return np.array(arrays[specs.numeric.name])
    is_object = f"{specs.objects.name}.utf8" in arrays
    name = specs.objects.name if is_object else specs.strings.name
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


# ---- what follows from the rest


def _index_names(fields: dict[str, Any]) -> None:
    """Build the index of a model whose classes have texts: its file has none."""
    statistics, weights = fields["statistics"], fields["check"].name_weights
    scorer = add_names(fields["scorer"], fields["names"], statistics.class_sizes, weights)
    fields["index"] = build_index(scorer, statistics.n_terms)
