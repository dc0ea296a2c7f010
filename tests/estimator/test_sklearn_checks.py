"""scikit-learn's own checks, strictly: whatever is expected to fail is named with its reason."""

from __future__ import annotations

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
from longtail.text import TextVectorizer

_DRAWN = (
    "documents are held out, and learned from in an order, at random; test_sample_weight.py "
    "compares what is not drawn: sums, sizes and document frequencies"
)
_SAMPLED = (
    "which documents the paper samples is drawn document by document: one of weight 2 is one draw, "
    "two documents are two"
)
_NEGATIVE = "it gives negative numbers, which are no counts, whatever the tags say"


def expected_failures(estimator):
    """Return the checks that cannot hold, with their reasons."""
    drawn = _DRAWN if isinstance(estimator, LongTailClassifier) else _SAMPLED
    failures = {
        "check_sample_weight_equivalence_on_dense_data": drawn,
        "check_sample_weight_equivalence_on_sparse_data": drawn,
    }
    if isinstance(estimator, LongTailClassifier):
        failures["check_decision_proba_consistency"] = _NEGATIVE
        failures["check_class_weight_classifiers"] = _NEGATIVE
    return failures


# The checks of sparse input have documents without any term.
@pytest.mark.filterwarnings("ignore::longtail.exceptions.NoKnownTermWarning")
@parametrize_with_checks(
    [DoubleSamplingClassifier(random_state=0), LongTailClassifier(random_state=0)],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_set_params,
        estimator_checks.check_valid_tag_types,
    ],
    ids=lambda check: check.__name__,
)
@pytest.mark.parametrize("kind", [TextClassifier, TextVectorizer])
def test_estimators_of_texts(kind, check):
    """Those checks that need no data: scikit-learn has none for estimators of texts."""
    check(kind.__name__, kind())
