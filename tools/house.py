"""Check what the house promises: public names are documented and carry the field's words.

Run as ``python tools/house.py``; prints one line per rule and exits 1 where one is broken. The
lines of the product are printed only. The words are those that have a better name in the field; see
docs/glossary.md.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

# Whole identifiers, as a name that is bound, an argument or an attribute that is set.
FORBIDDEN = frozenset(
    [
        "cutting",
        "cut",
        "cuts",
        "units",
        "term_counter",
        "enter",
        "room",
        "rival",
        "rivals",
        "near_miss",
        "near_misses",
        "score_index",
        "words",
        "lows",
        "steps",
        "passed",
        "rare_terms",
        "most_postings",
        "find_highest",
        "note",
        "noted",
        "rank_twice",
        "width",
        "unit",
        "additive_score",
        "slopes",
        "constants",
        "correction",
        "corrections",
        "class_weights",
        "own",
        "left_over",
        "recent",
        "settled",
        "superseded",
        "everyone",
        "touched",
        "number",
        "numbers",
        "place",
        "places",
        "take",
        "taken",
        "part",
        "piece",
        "pieces",
        "chosen",
        "few",
        "every",
        "at_once",
        "background",
        "background_shares",
        "chance",
        "chances",
        "trust",
        "right",
        "signed",
        "processor_seconds",
        "on_the_clock",
        "rehearse",
        "peer",
        "peers",
        "rooms",
    ]
)

# Names that users see, with another meaning than the word in the table has.
ALLOWED = frozenset(
    [
        ("src/longtail/store/changes.py", "number"),  # change 3 of the journal, in every command
        ("src/longtail/model/entry.py", "number"),
        ("src/longtail/serve/schemas.py", "number"),
        ("src/longtail/teaching/teacher.py", "numbers"),  # undo(numbers=[3])
    ]
)


def python_files(folder: Path) -> list[Path]:
    """Return the modules below a folder."""
    return sorted(folder.rglob("*.py"))


def undocumented(files: list[Path]) -> Iterator[str]:
    """Yield public functions, classes and methods without a docstring."""
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module) or (
                isinstance(node, ast.ClassDef) and not node.name.startswith("_")
            ):
                yield from _undocumented_in(path, node)


def _undocumented_in(path: Path, scope: ast.Module | ast.ClassDef) -> Iterator[str]:
    for node in scope.body:
        is_public = isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"
        if is_public and ast.get_docstring(node) is None:
            yield f"{path}:{node.lineno} {node.name}"


def forbidden_words(files: list[Path]) -> Iterator[str]:
    """Yield identifiers that have a better name in the field."""
    for path in files:
        for line, name in sorted(set(_bound_names(ast.parse(path.read_text())))):
            if name.lower().strip("_") in FORBIDDEN and (path.as_posix(), name) not in ALLOWED:
                yield f"{path}:{line} {name}"


def _bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.lineno, node.target.id


def count_code(path: Path) -> int:
    """Return how many lines are neither blank nor only comment or docstring."""
    source = path.read_text()
    documentation: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        scopes = ast.Module | ast.ClassDef | ast.FunctionDef
        if isinstance(node, scopes) and ast.get_docstring(node) is not None:
            first = node.body[0]
            documentation.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(map(str.strip, source.splitlines()), 1)
    return sum(
        bool(line) and line[0] != "#" and number not in documentation for number, line in lines
    )


def main() -> int:
    """Print each rule with how often it is broken; return the exit code."""
    product = python_files(Path("src"))
    everything = product + python_files(Path("bench/src"))
    rules = {
        "public functions without docstring": list(undocumented(everything)),
        "words that have a better name": list(forbidden_words(everything)),
    }
    for rule, broken in rules.items():
        print(f"{rule}: {len(broken)}")
        for where in broken:
            print(f"    {where}")
    n_lines = sum(len(path.read_text().splitlines()) for path in product)
    n_code = sum(map(count_code, product))
    print(f"lines of the product: {n_lines:,}, {n_code:,} of code")
    return int(any(rules.values()))


if __name__ == "__main__":
    sys.exit(main())
