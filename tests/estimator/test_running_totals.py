"""Counts that fit call by call, but not together."""

from __future__ import annotations

import numpy as np
import pytest

from longtail import DoubleSamplingClassifier, LongTailClassifier
from tests.conftest import assert_same_predictions, make_problem

HUGE = 2.0**61 + 2.0**60


@pytest.mark.parametrize("estimator", [LongTailClassifier, DoubleSamplingClassifier])
@pytest.mark.parametrize("known", [True, False])
def test_a_call_that_would_overflow_is_refused(estimator, known, tmp_path):
    problem = make_problem()
    classifier, twin = (estimator(random_state=0).fit(problem.X, problem.y) for _ in range(2))
    document = np.zeros((1, 25))
    document[0, 3] = HUGE
    for model in (classifier, twin):
        model.partial_fit(document, [1])
    with pytest.raises(ValueError, match="the counts add up to"):
        classifier.partial_fit(document, [2 if known else 9])
    # A fraction makes the unit 2^-32 of what is there.
    with pytest.raises(ValueError, match="the counts add up to"):
        classifier.partial_fit(document / 2**63, [2])
    assert_same_predictions(classifier, twin, problem.X)
    classifier.save(tmp_path / "model.longtail")
