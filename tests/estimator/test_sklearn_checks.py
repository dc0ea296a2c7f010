"""scikit-learn's own checks, strictly: whatever is expected to fail is named with its reason."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from longtail import DoubleSamplingClassifier, LongTailClassifier


@parametrize_with_checks(
    [DoubleSamplingClassifier(random_state=0), LongTailClassifier(random_state=0)]
)
def test_estimator_checks(estimator, check):
    check(estimator)
