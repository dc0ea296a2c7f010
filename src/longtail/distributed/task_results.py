"""Results of tasks: files on a scratch path that every worker sees.

In: dataclasses of arrays. Out: one container file for each task, written beside its target and
renamed, so that a file that is there is whole; arrays come back as views of a memory map. The name
of a file is the hash of everything that decides its content.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

import longtail
from longtail._columns import as_labels
from longtail._labels import LabelForm, Labels, LabelSets
from longtail.store.container import ModelFile, open_model, write_model
from longtail.store.texts import pack_texts

Section = TypeVar("Section")
_KIND = "task_result"
_LABELS = "labels"


@dataclass(frozen=True, eq=False)
class TaskResult:
    """The result of a task: plain values and named arrays."""

    values: dict[str, Any] = field(default_factory=dict)  # plain JSON values
    # Arrays; those of a dataclass are named ``part.field``.
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    def add(self, name: str, section: Any) -> TaskResult:
        """Add the fields of a dataclass: arrays, numbers, None, and dataclasses of these."""
        for entry in fields(section):
            value, full = getattr(section, entry.name), f"{name}.{entry.name}"
            if is_dataclass(value):
                self.add(full, value)
            elif isinstance(value, np.ndarray):
                self.arrays[full] = value
            else:
                self.values[full] = value
        return self

    def add_labels(self, labels: Labels) -> TaskResult:
        """Add labels: numbers as they are, strings of any length as UTF-8; of sets the classes."""
        if isinstance(labels, LabelSets):
            self.add("form", labels.form)
            self.arrays.update({"sets.indptr": labels.indptr, "sets.class_ids": labels.class_ids})
            return self.add_labels(labels.classes)
        if labels.dtype.kind in "iufb":
            self.arrays[_LABELS] = labels
        else:
            self.arrays.update(pack_texts(_LABELS, map(str, labels.tolist())))
        return self


def write_result(path: str, contents: TaskResult) -> None:
    """Write a result, at once or not at all."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_model(path, _KIND, contents.values, contents.arrays)


def read_result(path: str) -> ModelFile:
    """Map a result; its arrays were verified when they were written."""
    return open_model(path, verify=False)


def read_part(kind: type[Section], file: ModelFile, name: str) -> Section:
    """Return a dataclass that `TaskResult.add` has added under a name."""
    values: dict[str, Any] = {}
    any_kind: Any = kind
    for entry in fields(kind):  # type: ignore[arg-type]
        full = f"{name}.{entry.name}"
        if full in file.arrays:
            values[entry.name] = file.arrays[full]
        elif full in file.parameters:
            values[entry.name] = file.parameters[full]
        elif (nested := _nested_types(any_kind).get(entry.name)) is not None:
            values[entry.name] = read_part(nested, file, full)
    return kind(**values)


@cache
def _nested_types(kind: type) -> dict[str, type]:
    """Return the fields of a dataclass that are dataclasses themselves, or None."""
    found = {}
    for name, hint in get_type_hints(kind).items():
        kinds = [option for option in (get_args(hint) or (hint,)) if is_dataclass(option)]
        if kinds:
            found[name] = kinds[0]
    return found  # type: ignore[return-value]


def read_labels(path: str) -> Labels:
    """Return the labels that `TaskResult.add_labels` has added to a result."""
    file = read_result(path)
    known = _LABELS in file.arrays
    labels = file.arrays[_LABELS] if known else as_labels(file.texts(_LABELS))
    if "form.form" not in file.parameters:
        return labels
    indptr, class_ids = file.arrays["sets.indptr"], file.arrays["sets.class_ids"]
    return LabelSets(indptr, class_ids, labels, read_part(LabelForm, file, "form"))


def read_flat_labels(path: str) -> NDArray[Any]:
    """Return the distinct labels of a result, without the form of label sets."""
    labels = read_labels(path)
    return labels.classes if isinstance(labels, LabelSets) else labels


@cache
def code_version() -> str:
    """Return a hash of the sources of this package and of the versions of what it computes with."""
    digest = hashlib.blake2b(digest_size=16)
    for name in ("numpy", "scipy", "scikit-learn", "numba"):
        digest.update(f"{name} {metadata.version(name)}\n".encode())
    folder = Path(longtail.__file__).parent
    for source in sorted(folder.rglob("*.py")):
        digest.update(source.relative_to(folder).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()


def hash_arguments(*arguments: Any, scratch: str) -> str:
    """Return a hash of code and arguments; files on the scratch path count by their names."""
    text = json.dumps([code_version(), _plain(arguments, scratch)], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def hash_contents(contents: TaskResult) -> str:
    """Return a hash of code and content: of the values, and of each array with type and shape."""
    digest = hashlib.blake2b(digest_size=16)
    described = [(name, *_describe(array)) for name, array in sorted(contents.arrays.items())]
    digest.update(hash_arguments(contents.values, described, scratch="").encode())
    for _, array in sorted(contents.arrays.items()):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _describe(array: NDArray[Any]) -> tuple[str, list[int]]:
    return array.dtype.str, list(array.shape)


def hash_file(path: str) -> str:
    """Return a hash of the content of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _plain(value: Any, scratch: str) -> Any:
    """Return a value as JSON that tells it from any other."""
    if is_dataclass(value) and not isinstance(value, type):
        named = {entry.name: getattr(value, entry.name) for entry in fields(value)}
        return [type(value).__qualname__, _plain(named, scratch)]
    if isinstance(value, Mapping):
        return {str(key): _plain(entry, scratch) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry, scratch) for entry in value]
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, os.PathLike | str):
        text = os.fspath(value)
        inside = isinstance(text, str) and text.startswith(scratch + os.sep)
        return os.path.relpath(text, scratch) if inside else text
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, np.generic):
        return value.item()
    return value
