"""Fixtures of the tests of the benchmarks."""

from tests.conftest import problem

__all__ = ["problem"]
