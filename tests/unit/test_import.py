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


def test_commands_are_listed_without_numpy():
    assert run("import sys, longtail.cli.app; print('numpy' in sys.modules)").strip() == "False"


def test_import_compiles_nothing():
    code = """
import importlib, pkgutil
import longtail.estimators.loading, longtail._kernels
for module in pkgutil.iter_modules(longtail._kernels.__path__):
    room = importlib.import_module(f"longtail._kernels.{module.name}")
    for name, value in vars(room).items():
        if hasattr(value, "signatures"):
            assert value.signatures == [], name
            print(name)
"""
    assert "shortlist_classes" in run(code)


@pytest.mark.parametrize(
    "module",
    ["paper.estimator", "paper.theory", "scoring.paper", "training.sampling", "estimators.loading"],
)
def test_any_module_may_be_imported_first(module):
    run(f"import longtail.{module}")


def test_public_paths_of_the_paper():
    """The paper has one home; these paths to it go on working."""
    from longtail.estimators import DoubleSamplingClassifier
    from longtail.paper import estimator, features, measures, sampling
    from longtail.scoring.paper import pair_features
    from longtail.training.sampling import draw_pairs

    assert DoubleSamplingClassifier is longtail.DoubleSamplingClassifier
    assert DoubleSamplingClassifier is estimator.DoubleSamplingClassifier
    assert pair_features is features.pair_features
    assert draw_pairs is sampling.draw_pairs
    assert longtail.metrics.macro_f1_of_means is measures.macro_f1_of_means


def test_public_names():
    assert set(dir(longtail)) == set(longtail.__all__)
    for name in longtail.__all__:
        assert getattr(longtail, name) is not None
    assert longtail.metrics.classes.accuracy([1], [1]) == 1.0
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        longtail.nonsense  # noqa: B018
