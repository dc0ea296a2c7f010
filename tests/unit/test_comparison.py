"""Two models on the same documents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from longtail.metrics import paired_difference


def test_right_and_wrong_are_compared_by_mcnemar():
    rng = np.random.default_rng(0)
    one, other = rng.random(300) < 0.8, rng.random(300) < 0.7
    found = paired_difference(one, other)
    better, worse = int(np.sum(one & ~other)), int(np.sum(other & ~one))
    assert (found.n_better, found.n_worse) == (better, worse)
    assert found.p_value == pytest.approx(binomtest(better, better + worse).pvalue)
    assert found.difference == pytest.approx((better - worse) / 300)
    assert found.interval[0] < found.difference < found.interval[1]


def test_other_values_are_compared_by_their_mean():
    rng = np.random.default_rng(1)
    one, other = rng.random(400), rng.random(400)
    found = paired_difference(one, other)
    error = np.std(one - other, ddof=1) / 20
    assert found.p_value == pytest.approx(2 * norm.sf(abs(np.mean(one - other)) / error))
    assert found.interval[1] - found.interval[0] == pytest.approx(2 * norm.ppf(0.975) * error)


@pytest.mark.parametrize("values", [[1, 0, 1], [0.5, 0.25], [1]])
def test_equal_models_do_not_differ(values):
    found = paired_difference(values, values)
    assert (found.difference, found.p_value, found.is_clear) == (0.0, 1.0, False)


def test_documents_must_be_the_same():
    with pytest.raises(ValueError, match=r"same length, at least 1; got shapes \(2,\) and \(1,\)"):
        paired_difference([1, 0], [1])
    with pytest.raises(ValueError, match="same length"):
        paired_difference([], [])
