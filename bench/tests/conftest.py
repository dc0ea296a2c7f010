"""Fixtures of the tests of the benchmarks."""

from pathlib import Path

import pytest

from tests.conftest import problem

__all__ = ["problem"]


def pytest_collection_modifyitems(items):
    """Leave the benchmarks to `make test-all`: the product does not know them."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
