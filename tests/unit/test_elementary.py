"""Exponential and logarithm against those of the C library, to the last bit but one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from longtail._elementary import exp, log

RANDOM = np.random.default_rng(0)
EXPONENTS = [
    *RANDOM.uniform(-708.0, 709.0, 3000),
    *RANDOM.normal(scale=3.0, size=3000),
    *RANDOM.normal(scale=1e-9, size=300),
    *(math.log(2.0) * np.arange(-20.5, 21.0, 0.5)),  # where the power of two changes
]
NUMBERS = [
    *np.exp(RANDOM.uniform(-708.0, 709.0, 3000)),
    *(1.0 + RANDOM.exponential(size=3000)),
    *(1.0 + RANDOM.normal(scale=1e-4, size=300)),
    *np.arange(1.0, 2000.0),
    *np.nextafter(2.0 ** np.arange(-5.5, 6.0, 0.5), 0.0),
]


@pytest.mark.parametrize(
    ("ours", "theirs", "values"),
    [(exp, math.exp, EXPONENTS), (log, math.log, NUMBERS)],
    ids=["exp", "log"],
)
def test_within_one_unit_in_the_last_place(ours, theirs, values):
    found, expected = ours(values), np.array([theirs(v) for v in values])
    assert np.max(np.abs(found - expected) / np.spacing(np.abs(expected))) <= 1.0
    assert np.mean(found == expected) > 0.98


def test_at_the_ends():
    assert exp([0.0, -np.inf, np.inf, 710.0, -746.0]).tolist() == [1.0, 0.0, np.inf, np.inf, 0.0]
    assert log([1.0, 0.0, np.inf]).tolist() == [0.0, -np.inf, np.inf]
    assert np.isnan([*exp([np.nan]), *log([np.nan, -1.0, -np.inf])]).all()
    tiny = [5e-324, 1e-310, 2.0**-1022]
    assert log(tiny) == pytest.approx([math.log(v) for v in tiny], rel=1e-15)
    assert exp([-745.0, -740.0, -709.0]).tolist() == [math.exp(v) for v in (-745, -740, -709)]
    assert exp(709.78) == pytest.approx(math.exp(709.78), rel=1e-15)


def test_counts_have_the_logarithms_that_files_were_written_with():
    """Sums of files of 0.1 hold 1 + ln of counts; a document taken out must leave no trace."""
    counts = np.arange(1, 5_000)
    assert (1.0 + log(counts)).tolist() == [1.0 + math.log(count) for count in counts.tolist()]


def test_shapes_and_types_of_what_is_given():
    values = np.arange(1, 7, dtype=np.int32).reshape(2, 3)
    assert log(values.T).tolist() == np.asarray(log(values.ravel())).reshape(2, 3).T.tolist()
    assert log(2).shape == ()
    assert exp(np.zeros((0, 3))).shape == (0, 3)
    assert exp(np.float32(0.5)).dtype == np.float64
