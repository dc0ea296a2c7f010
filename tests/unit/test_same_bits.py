"""Nothing that a model is made of goes through BLAS, or through logarithms of the machine.

Their bits depend on threads and processor. Measures, theory and figures may use them: no model is
made of these.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import longtail

SOURCE = Path(longtail.__file__).parent
MAY = ("paper/theory", "paper/measures.py", "metrics", "plotting.py")
# Of numpy or as a method; convolve and correlate are inner products as well.
NAMES = {
    *("dot", "vdot", "vecdot", "inner", "matmul", "matvec", "einsum", "tensordot", "linalg"),
    *("multi_dot", "convolve", "correlate", "polyfit", "cov", "corrcoef"),
}
# Of numpy and of the C library; those of `_elementary` are the same everywhere.
FUNCTIONS = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "pow", "power"),
    *("tanh", "sinh", "cosh", "sin", "cos", "tan", "cbrt", "float_power", "geomspace", "logspace"),
}
MODULES = (
    "scipy.special",
    "numpy.linalg",
    "scipy.linalg",
    "scipy.optimize",
    "sklearn.linear_model",
)
SPARSE = {"training/name_rows.py": 1}  # products of two sparse matrices, scipy's own


def find_uses(tree: ast.AST) -> list[str]:
    """Return what may have other bits elsewhere, with its line."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            found.append(f"{node.lineno}: @")
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            found.append(f"{node.lineno}: {node.attr}")
        elif isinstance(node, ast.Attribute) and node.attr in FUNCTIONS:
            if isinstance(node.value, ast.Name) and node.value.id in ("np", "math"):
                found.append(f"{node.lineno}: {node.value.id}.{node.attr}")
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [f"{node.lineno}: {name}" for name in names if name.startswith(MODULES)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found += [f"{node.lineno}: {name}" for name in names if name.startswith(MODULES)]
    return found


def test_no_arithmetic_of_a_model_depends_on_the_machine():
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(MAY):
            uses = find_uses(ast.parse(path.read_text()))
            if len(uses) > SPARSE.get(name, 0):
                found[name] = uses
    assert found == {}, "sum in a kernel, or as (a * b).sum(); exp and log are in _elementary"


@pytest.mark.parametrize(
    "line",
    [
        *(
            "a @ b",
            "a @= b",
            "np.dot(a, b)",
            "a.dot(b)",
            "np.log(a)",
            "math.exp(a)",
            "from scipy.special import expit",
            "np.linalg.norm(a)",
            "np.einsum('i->', a)",
        ),
        *("from scipy.linalg import cho_factor", "from scipy import optimize, linalg"),
        *(
            "import scipy.optimize",
            "from numpy import linalg",
            "from scipy.optimize import minimize",
        ),
    ],
)
def test_such_a_line_is_found(line):
    assert len(find_uses(ast.parse(line))) >= 1


def test_other_lines_are_not():
    assert find_uses(ast.parse("c = log((a * b).sum())\n@decorated\ndef f(): pass")) == []
