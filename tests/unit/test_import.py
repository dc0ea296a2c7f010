from __future__ import annotations

import subprocess
import sys

import pytest

import longtail


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


def test_import_loads_no_heavy_package():
    code = "import sys, longtail; print({'numba', 'scipy', 'sklearn'} & set(sys.modules))"
    assert run(code).strip() == "set()"


def test_import_compiles_nothing():
    code = """
import importlib, pkgutil
import longtail.estimators, longtail._kernels
for module in pkgutil.iter_modules(longtail._kernels.__path__):
    room = importlib.import_module(f"longtail._kernels.{module.name}")
    for name, value in vars(room).items():
        if hasattr(value, "signatures"):
            assert value.signatures == [], name
            print(name)
"""
    assert "shortlist_classes" in run(code)


def test_public_names():
    assert set(dir(longtail)) == set(longtail.__all__)
    for name in longtail.__all__:
        assert getattr(longtail, name) is not None
    assert longtail.metrics.classes.accuracy([1], [1]) == 1.0
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        longtail.nonsense  # noqa: B018
