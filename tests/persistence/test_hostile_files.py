"""Files with right checksums and wrong contents: one documented error or a working model."""

import shutil

import pytest

from tests.fuzz.cases import SUITE_PARTS
from tests.fuzz.driver import REGRESSIONS, run_cases

N_RANDOM = 1_000  # make fuzz runs more


def explain(report):
    """The findings, for the message of a failed test."""
    return "\n".join(f"{found['case']}: {found['trace']}" for found in report.found[:5])


def test_every_array_and_value_is_checked():
    """One mutation of each, of every kind in turn: refused, or a model that works."""
    report = run_cases("sample", "", 0)
    assert not report.found, explain(report)
    assert report.n_cases > 130
    assert report.refused > report.works > 10


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SUITE_PARTS))
def test_every_array_and_value_may_be_anything(part):
    """Dropped, shortened, lengthened, retyped, reshaped, reordered, poisoned: never a crash."""
    report = run_cases("suite", str(part), 0)
    assert not report.found, explain(report)
    assert report.n_cases > 1_500
    assert report.refused > report.works > 150


@pytest.mark.slow
def test_random_mutations_are_refused_or_work():
    report = run_cases("random", "", 0, N_RANDOM)
    assert not report.found, explain(report)
    assert report.n_cases == N_RANDOM
    assert min(report.refused, report.works) > 0


def test_what_once_broke_is_refused_or_works(tmp_path):
    """Every file that the fuzzer has ever found."""
    files = sorted(REGRESSIONS.glob("*.longtail"))
    for file in files:
        shutil.copyfile(file, tmp_path / file.name)
    report = run_cases("files", str(tmp_path), 0)
    assert not report.found, explain(report)
    assert report.n_cases == len(files)
