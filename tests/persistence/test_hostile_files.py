"""Files with right checksums and wrong contents: one documented error or a working model."""

import shutil

import pytest

from tests.fuzz.cases import SEEDS
from tests.fuzz.driver import REGRESSIONS, run_cases

N_RANDOM = 3_000


def explain(report):
    """The findings, for the message of a failed test."""
    return "\n".join(f"{found['case']}: {found['trace']}" for found in report.found[:5])


@pytest.mark.parametrize("seed", SEEDS[4:])  # the first variant has its share below
def test_every_array_and_value_may_be_anything(seed):
    """Dropped, shortened, lengthened, retyped, reshaped, reordered, poisoned: never a crash."""
    report = run_cases("systematic", seed, 0)
    assert not report.found, explain(report)
    assert report.refused > report.works > 0


@pytest.mark.parametrize("first", [0, N_RANDOM // 2])
def test_random_mutations_are_refused_or_work(first):
    report = run_cases("random", "", first, first + N_RANDOM // 2)
    assert not report.found, explain(report)
    assert report.n_cases == N_RANDOM // 2
    assert min(report.refused, report.works) > 0


def test_what_once_broke_is_refused_or_works(tmp_path):
    """Every file that the fuzzer has ever found."""
    files = sorted(REGRESSIONS.glob("*.longtail"))
    for file in files:
        shutil.copyfile(file, tmp_path / file.name)
    report = run_cases("files", str(tmp_path), 0)
    assert not report.found, explain(report)
    assert report.n_cases == len(files)
