"""Contents of the file of an estimator, and all checks of them.

In: a file, or what is about to be saved. Out: `Contents` and their sizes, or a `FaultError` that
says what is wrong. Neither a compiler nor scikit-learn is imported for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from longtail.store.checks import (
    Sizes,
    check_contents,
    check_rules,
    check_structure,
    check_utf8,
    check_value,
)
from longtail.store.container import ModelFile, open_model
from longtail.store.manifest import Array
from longtail.store.schema import (
    CLASS_LABELS,
    CLASS_TEXTS,
    FEATURE_NAMES_IN,
    NODE_LABELS,
    PARAMETERS,
    SCHEMAS,
    TEXT,
    TEXT_VALUES,
)
from longtail.store.specs import ArraySpec, Schema, ValueSpec
from longtail.store.strict_json import FaultError, shown

TEXT_KIND = "TextClassifier"
VECTORIZER = "TextVectorizer"  # whose parameters a file of texts has as well
_DEFAULT_KIND = "LongTailClassifier"  # of the classifier in a `TextClassifier`
_LABELS = (*CLASS_LABELS.texts, *NODE_LABELS.texts)
_BESIDE = ("names/embeddings", "memory/embeddings")  # may be missing from their groups


class Contents(NamedTuple):
    """Names, arrays and values of a file."""

    kind: str
    counts_kind: str
    parameters: Mapping[str, Mapping[str, Any]]
    arrays: dict[str, Array]
    values: Mapping[str, Any]


class CheckedFile(NamedTuple):
    """An opened file, its contents, and its sizes by name."""

    file: ModelFile
    contents: Contents
    sizes: Sizes


def open_checked(path: str | os.PathLike[str], *, verify: bool = True) -> CheckedFile:
    """Open a file and check everything in it against the schema.

    `verify` compares every array with its checksum; the checks against the schema are made in any
    case.

    Raises
    ------
    ModelFileError
        Anything is wrong with the file.
    """
    file = open_model(path, verify=verify)
    try:
        contents = read_contents(file)
        return CheckedFile(file, contents, check_all(contents))
    except FaultError as fault:
        raise file.error(str(fault)) from None


def read_contents(file: ModelFile) -> Contents:
    """Return the contents of a file, unchecked but for which estimators it holds."""
    kinds = sorted([*SCHEMAS, TEXT_KIND])
    if file.kind not in kinds:
        raise FaultError(f"holds a {file.kind!r}, which is none of {kinds}")
    header = file.parameters
    if header.keys() != {"estimators", "values"} or not all(
        isinstance(value, dict) for value in header.values()
    ):
        raise FaultError(f"has wrong parameters: {shown(header)}")
    estimators = header["estimators"]
    inner = [kind for kind in estimators if kind in SCHEMAS]
    expected = {file.kind, *inner, *([VECTORIZER] if file.kind == TEXT_KIND else [])}
    if estimators.keys() != expected or len(inner) != 1 or (file.kind not in (TEXT_KIND, *inner)):
        raise FaultError(f"has the parameters of {shown(sorted(estimators))}, not of {file.kind}")
    return Contents(file.kind, inner[0], estimators, dict(file.arrays), header["values"])


def part_specs(kind: str, schema: Schema) -> tuple[ArraySpec, ...]:
    """Return the arrays that are parts of the model, in the order of the checks."""
    return (*schema.arrays, *TEXT) if kind == TEXT_KIND else schema.arrays


def value_specs(kind: str, schema: Schema) -> tuple[ValueSpec, ...]:
    """Return the values that are parts of the model."""
    return (*schema.values, *TEXT_VALUES) if kind == TEXT_KIND else schema.values


def check_all(contents: Contents) -> Sizes:
    """Check everything against the schema; return the sizes.

    Raises
    ------
    FaultError
        What is wrong.
    """
    schema, arrays = SCHEMAS[contents.counts_kind], contents.arrays
    specs = part_specs(contents.kind, schema)
    names = (FEATURE_NAMES_IN, *([CLASS_TEXTS] if contents.kind == TEXT_KIND else []))
    texts = [spec for spec in (*_LABELS, *names) if f"{spec.name}.utf8" in arrays]
    numeric = CLASS_LABELS.numeric, NODE_LABELS.numeric
    all_specs = (*specs, *numeric, *(array for text in texts for array in text.arrays))
    sizes = check_structure(all_specs, arrays)
    if CLASS_LABELS.count(arrays) != 1:
        raise FaultError("has no labels, or more than one kind of them")
    if NODE_LABELS.count(arrays) != ("hierarchy/indptr" in arrays):
        raise FaultError("has a hierarchy without nodes, or nodes without a hierarchy")
    for kind, given in contents.parameters.items():
        _check_values(f"parameters of {kind}", PARAMETERS[kind], given)
    _check_values("values", value_specs(contents.kind, schema), contents.values)
    if contents.values.get("text/is_default") and contents.counts_kind != _DEFAULT_KIND:
        raise FaultError(f"has a {contents.counts_kind}, which is not the default classifier")
    _check_groups(schema, contents)
    # Offsets first: other arrays are checked row by row.
    for spec in sorted(all_specs, key=lambda spec: not spec.offsets):
        if spec.name in arrays:
            check_contents(spec, arrays, sizes)
    for text in texts:
        utf8, offsets = arrays[f"{text.name}.utf8"], arrays[f"{text.name}.offsets"]
        check_utf8(text.name, utf8, offsets, "surrogatepass")
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


def _check_groups(schema: Schema, contents: Contents) -> None:
    """Check that what belongs together is there as a whole or not at all."""
    groups = "index/", "names/", "memory/", "bins/", "hierarchy/", "calibrator/ranked_", "embedder/"
    for group in groups:
        known = [spec.name for spec in part_specs(contents.kind, schema)]
        known += [spec.name for spec in value_specs(contents.kind, schema)]
        names = [name for name in known if name.startswith(group) and name not in _BESIDE]
        present = [name in contents.arrays or name in contents.values for name in names]
        if any(present) and not all(present):
            missing = [name for name, here in zip(names, present, strict=True) if not here]
            raise FaultError(f"has no {missing[0]!r} beside the rest of {group}")
