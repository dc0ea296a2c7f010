"""Record what a fit computes and what users see, and say what a change of the code changes in it.

Run as ``python tools/safety_net.py record|compare [--data]``. Recorded under ``tests/safety_net/``:

=================== ================================================================================
``models.txt``      every array and value of models of three small sets, from counts and from text
``real_models.txt`` the same for sets of ``../shared/data``; with ``--data`` only, takes minutes
``names.txt``       public names with their signatures
``help.txt``        the help of every command
``openapi.json``    the description of the service
=================== ================================================================================

`compare` prints a diff and exits 1 where there is one. Arrays are given by their SHA-256.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import importlib
import inspect
import json
import lzma
import pkgutil
import random
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import longtail
from longtail import LongTailClassifier, TextClassifier
from longtail.exceptions import UncalibratedWarning
from longtail.store import open_model

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "tests" / "safety_net"
DATA = ROOT.parent / "shared" / "data"
SINGLE_LABEL_SETS = ("wordnet-hypernym", "cve-product", "acl-lastauthor")
N_DOCUMENTS, N_CLASSES, N_COMMON_WORDS = 1500, 120, 200

Fits = Iterator[tuple[str, Any]]  # what a fit is called, and the fitted estimator


def main() -> int:
    """Record, or compare with what is recorded; return the exit code."""
    parser = argparse.ArgumentParser(description="Record or compare models, names, help and API.")
    parser.add_argument("command", choices=["record", "compare"])
    parser.add_argument("--data", action="store_true", help="real sets too; takes minutes")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UncalibratedWarning)
    contents: dict[str, Callable[[], str]] = {
        "models.txt": lambda: describe_models(fit_small_sets()),
        "names.txt": describe_names,
        "help.txt": describe_help,
        "openapi.json": describe_service,
    }
    if arguments.data:
        if not DATA.is_dir():
            parser.error(f"--data needs the sets of {DATA}, which is absent")
        contents["real_models.txt"] = lambda: describe_models(fit_real_sets())
    differs = False
    for name, describe in contents.items():
        path, found = RECORDS / name, describe()
        if arguments.command == "record":
            path.parent.mkdir(exist_ok=True)
            path.write_text(found)
            continue
        if not path.exists():
            parser.error(f"{path} is absent; run this with record first")
        lines = difflib.unified_diff(
            path.read_text().splitlines(), found.splitlines(), f"{name} recorded", name, "", "", 0
        )
        for line in lines:
            differs = True
            print(line.rstrip("\n"))
    if arguments.command == "compare" and not differs:
        print(f"{', '.join(contents)}: as recorded")
    return int(differs)


def describe_models(fits: Fits) -> str:
    """Return a line for each array and each value of each model's file."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name, model in fits:
            path = Path(folder) / "model.longtail"
            model.save(path)
            file = open_model(path)
            for key, array in file.arrays.items():
                digest = hashlib.sha256(array.tobytes()).hexdigest()
                lines.append(f"{name}: {key} {array.dtype} {array.shape} {digest}")
            for group, values in sorted(file.parameters.items()):
                for key, value in sorted(values.items()):
                    lines.append(f"{name}: {group} {key} {json.dumps(value, sort_keys=True)}")
            path.unlink()
    return "\n".join(lines) + "\n"


def fit_small_sets() -> Fits:
    """Fit one label, several labels and class texts, each from counts and from text."""
    documents, labels = draw_documents()
    second = [labels[-1 - i] if i % 3 else labels[i] for i in range(len(labels))]
    joined = [own + documents[-1 - i] if i % 3 else own for i, own in enumerate(documents)]
    label_sets = [sorted({a, b}) for a, b in zip(labels, second, strict=True)]
    class_texts = {f"class {c}": f"own{c}x0 own{c}x1 common{c}" for c in range(N_CLASSES + 20)}
    for name, words, y, texts in (
        ("single label", documents, labels, None),
        ("several labels", joined, label_sets, None),
        ("class texts", documents, labels, class_texts),
    ):
        terms = sorted({word for document in words for word in document})
        rows = [text.split() for text in texts.values()] if texts else []
        counts = texts and (list(texts), count_words(rows, terms))
        for X, estimator, given in (
            (count_words(words, terms), LongTailClassifier(random_state=0), counts),
            ([" ".join(document) for document in words], TextClassifier(random_state=0), texts),
        ):
            form = "from counts" if estimator.__class__ is LongTailClassifier else "from text"
            yield f"{name}, {form}", estimator.fit(X, y, class_texts=given)


def draw_documents() -> tuple[list[list[str]], list[str]]:
    """Draw long-tailed documents: words of their class among common ones.

    By `random.Random.random` alone, whose sequence Python guarantees.
    """
    draw = random.Random(0).random
    documents, labels = [], []
    for i in range(N_DOCUMENTS):
        label = i if i < N_CLASSES else int(N_CLASSES ** draw()) - 1
        own = [f"own{label}x{int(6 * draw())}" for _ in range(1 + int(4 * draw()))]
        common = [f"common{int(N_COMMON_WORDS * draw() ** 2)}" for _ in range(2 + int(8 * draw()))]
        documents.append(own + common)
        labels.append(f"class {label}")
    return documents, labels


def count_words(documents: list[list[str]], terms: list[str]) -> csr_array:
    """Count the terms of each document; words that are no terms are left out."""
    columns = {term: t for t, term in enumerate(terms)}
    entries = [
        (i, columns[word])
        for i, document in enumerate(documents)
        for word in document
        if word in columns
    ]
    rows, indices = np.array(entries).T
    counts = csr_array((np.ones(len(rows)), (rows, indices)), shape=(len(documents), len(terms)))
    counts.sum_duplicates()
    return counts


def fit_real_sets() -> Fits:
    """Fit sets of the shared folder from counts and from text."""
    for name in SINGLE_LABEL_SETS:
        with np.load(DATA / name / "counts.npz") as arrays:
            X, y = read_counts(arrays), arrays["train_y"]
        yield f"{name}, from counts", LongTailClassifier(random_state=0).fit(X, y)
        with lzma.open(DATA / name / "train.tsv.xz", "rt", encoding="utf-8", newline="\n") as file:
            labels, texts = zip(*(line.rstrip("\n").split("\t", 1) for line in file), strict=True)
        yield f"{name}, from text", TextClassifier(random_state=0).fit(list(texts), list(labels))
    name = "tib-subjects"
    with np.load(DATA / name / "counts.npz") as arrays:
        sets = np.split(arrays["train_labels"], arrays["train_label_indptr"][1:-1])
        X, y = read_counts(arrays)[::3], [ids.tolist() for ids in sets][::3]
    yield f"a third of {name}, from counts", LongTailClassifier(random_state=0).fit(X, y)
    with lzma.open(DATA / name / "train.jsonl.xz", "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file][::3]
    texts, y = [record["text"] for record in records], [record["labels"] for record in records]
    yield f"a third of {name}, from text", TextClassifier(random_state=0).fit(texts, y)


def read_counts(arrays: Any) -> csr_array:
    """Return the training counts of a shared set."""
    n_documents, _, _, n_terms = arrays["shape"]
    parts = tuple(arrays[f"train_{part}"] for part in ("data", "indices", "indptr"))
    return csr_array(parts, shape=(n_documents, n_terms))


def describe_names() -> str:
    """Return public names with signatures: those of packages, and those of the reference pages."""
    packages = [
        module.name
        for module in pkgutil.iter_modules(longtail.__path__, "longtail.")
        if not module.name.startswith("longtail._")
    ]
    names = {
        f"{package}.{name}"
        for package in ("longtail", *packages)
        for name in getattr(importlib.import_module(package), "__all__", ())
    }
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        for name in re.findall(r"^::: (\S+)", page.read_text(), re.MULTILINE):
            names |= set(expand(name))
    lines = [line for name in sorted(names) for line in describe_object(name, find(name))]
    return "\n".join(lines) + "\n"


def find(name: str) -> Any:
    """Return the object of a dotted name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        owner, _, last = name.rpartition(".")
        return getattr(find(owner), last)


def expand(name: str) -> Iterator[str]:
    """Yield a name of a reference page, or the public names that its module defines."""
    found = find(name)
    if not inspect.ismodule(found):
        yield name
        return
    for key, value in vars(found).items():
        if not key.startswith("_") and getattr(value, "__module__", None) == name:
            yield f"{name}.{key}"


def describe_object(name: str, found: Any) -> Iterator[str]:
    """Yield a line for an object, and for each public member of a class."""
    if not callable(found):
        yield f"{name}: {'module' if inspect.ismodule(found) else repr(found)}"
        return
    yield f"{name}{signature(found)}"
    if not inspect.isclass(found):
        return
    for key in sorted(dir(found)):
        if not key.startswith("_"):
            member = inspect.getattr_static(found, key)
            is_property = not callable(getattr(member, "__func__", member))
            yield f"{name}.{key}{'' if is_property else signature(getattr(found, key))}"


def signature(found: Any) -> str:
    """Return the signature of an object, empty where Python knows none."""
    try:
        return re.sub(r" at 0x\w+", "", str(inspect.signature(found)))
    except (TypeError, ValueError):
        return ""


def describe_help() -> str:
    """Return the help of every command, as it is on a terminal of 80 columns."""
    import typer
    from typer.testing import CliRunner

    from longtail.cli.app import app

    runner = CliRunner(env={"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1"})

    def describe(command: Any, words: tuple[str, ...]) -> Iterator[str]:
        result = runner.invoke(app, [*words, "--help"], prog_name="longtail")
        yield f"$ longtail {' '.join((*words, '--help'))}\n{result.stdout.rstrip()}\n"
        for name, below in sorted(getattr(command, "commands", {}).items()):
            yield from describe(below, (*words, name))

    return "\n".join(describe(typer.main.get_command(app), ()))


def describe_service() -> str:
    """Return the service's description of itself."""
    from longtail.serve.application import create_app

    description = create_app("model.longtail").fastapi.openapi()
    return json.dumps(description, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
