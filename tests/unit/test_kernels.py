"""How kernels are compiled: each once, with few arguments; subroutines are left to kernels."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import longtail
import longtail._kernels

FIT_AND_PREDICT = """
import json, sys
import numpy as np
from scipy.sparse import csr_array
from longtail import DoubleSamplingClassifier, LongTailClassifier

X = csr_array(np.random.default_rng(0).poisson(0.4, (300, 40)))
y = np.arange(300) % 12
classifier = {"long_tail": LongTailClassifier, "paper": DoubleSamplingClassifier}[sys.argv[1]]
classifier = classifier(random_state=0).fit(X, y)
classifier.predict_topk(X[:5], 3)
counts = {}
for name, module in list(sys.modules.items()):
    if name.startswith("longtail._kernels."):
        for value in vars(module).values():
            if getattr(value, "__module__", None) == name and hasattr(value, "signatures"):
                if "no_cpython_wrapper" not in value.targetoptions:
                    counts[value.__name__] = len(value.signatures)
print(json.dumps(counts))
"""


@pytest.mark.parametrize("classifier", ["long_tail", "paper"])
def test_a_fit_needs_one_version_of_each_kernel(classifier: str):
    # Arguments of another type, such as int32 for int64, would have it compiled once more.
    process = subprocess.run(
        [sys.executable, "-c", FIT_AND_PREDICT, classifier],
        check=True,
        capture_output=True,
        text=True,
    )
    counts = json.loads(process.stdout)
    assert {name: n for name, n in counts.items() if n > 1} == {}
    assert sum(counts.values()) > 10


def is_subroutine(name: str, module: str) -> bool:
    value: Any = getattr(importlib.import_module(f"longtail._kernels.{module}"), name, None)
    return "no_cpython_wrapper" in getattr(value, "targetoptions", {})


def names_used(path: Path) -> list[tuple[str, str]]:
    """Return (name, module of kernels) of whatever a file takes from the kernels."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    used, modules = [], {}
    for node in imports:
        if node.module == "longtail._kernels":
            modules.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif str(node.module).startswith("longtail._kernels."):
            module = str(node.module).rsplit(".", 1)[1]
            used += [(alias.name, module) for alias in node.names]
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in modules:
                used.append((attribute, modules[name]))
    return used


def test_subroutines_are_called_from_compiled_code_alone():
    # Called from Python, a subroutine crashes the interpreter: it has no wrapper.
    source, kernels = Path(longtail.__path__[0]), Path(longtail._kernels.__path__[0])
    tests = Path(__file__).parent.parent
    files = [*source.rglob("*.py"), *tests.rglob("*.py")]
    compiled = ("unit/test_sorting.py", "unit/test_residuals.py", "property/test_search.py")
    for name in compiled:  # by the test itself
        files.remove(tests / name)
    used = {use for path in files if path.parent != kernels for use in names_used(path)}
    assert ("shortlist_classes", "search") in used
    assert [use for use in sorted(used) if is_subroutine(*use)] == []
    modules = [module.name for module in pkgutil.iter_modules(longtail._kernels.__path__)]
    assert any(is_subroutine("term_frequency", module) for module in modules)


def test_no_kernel_takes_more_than_eight_arguments():
    crowded = {}
    for path in Path(longtail._kernels.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and len(node.args.args) > 8:
                crowded[f"{path.stem}.{node.name}"] = len(node.args.args)
    crowded = {name: n for name, n in crowded.items() if not name.startswith(("text.", "parsing."))}
    assert crowded == {}


def test_who_waits_for_the_compiler_is_told():
    import numba

    from longtail._kernels.compiling import on_compiled

    inner = numba.njit(lambda x: x + 1)
    outer = numba.njit(lambda x: inner(x) * 2)
    heard = []
    with on_compiled(lambda n_kernels, seconds: heard.append((n_kernels, seconds > 0))):
        assert outer(1) == 4
        outer(2)  # compiled by now
    if numba.config.DISABLE_JIT:
        assert heard == []
    else:  # once as it begins, once as it ends; what a kernel calls is part of it
        assert heard == [(0, False), (1, True)]
