"""Kernels without the compiler, and compiled with bounds checks, give what compiled ones give."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.driver import CACHE
from tests.jit.exercise import exercise

pytestmark = pytest.mark.slow  # Python in place of kernels, or kernels compiled once more

ROOT = Path(__file__).parents[2]


def run(arguments: list[str], **environment: str) -> str:
    process = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    return process.stdout


@pytest.fixture(scope="module")
def compiled() -> dict[str, list[list[object]]]:
    return json.loads(json.dumps(exercise()))


def assert_same(found, expected, **tolerance):
    assert found.keys() == expected.keys()
    for name, (classes, scores) in expected.items():
        assert found[name][0] == classes, name
        assert np.allclose(found[name][1], scores, **tolerance), name


def test_without_the_compiler(compiled):
    found = json.loads(run(["-m", "tests.jit.exercise"], NUMBA_DISABLE_JIT="1"))
    # Logarithms and powers of numpy and of compiled code differ in the last bits.
    assert_same(found, compiled, rtol=1e-4, atol=1e-4)


def test_bounds_are_kept(compiled):
    # Code with checks is no other to numba's cache, so that it needs one of its own: the fuzzer's.
    found = run(["-m", "tests.jit.exercise"], NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(CACHE))
    assert_same(json.loads(found), compiled, rtol=0, atol=0)


def test_stages_against_the_oracle_without_the_compiler():
    tests = ["tests/against_oracle/test_stages.py", "tests/against_oracle/test_score_stages.py"]
    quick = ["-k", "not optimum and not liblinear"]  # those take thousands of passes
    run(["-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *quick], NUMBA_DISABLE_JIT="1")


def test_text_against_the_oracle_without_the_compiler():
    tests = ["tests/property/test_text.py", "-k", "oracle or extended"]
    tests += ["--hypothesis-profile", "full"]
    run(["-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], NUMBA_DISABLE_JIT="1")
