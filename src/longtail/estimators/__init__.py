"""The estimators: validate, call the stages in order, keep the fitted parts.

=========== ==========================================================
`base`      what both share: labels, teaching, ranking, explanation
`paper`     `DoubleSamplingClassifier`, the paper to the letter
`long_tail` `LongTailClassifier`, what a user should use
`text`      `TextClassifier`, either of them behind a vocabulary
`opening`   `load`, from a file back to an estimator
=========== ==========================================================
"""

from longtail.estimators.double_sampling import DoubleSamplingClassifier
from longtail.estimators.loading import load
from longtail.estimators.long_tail import LongTailClassifier
from longtail.estimators.text import TextClassifier
from longtail.results import TopK

__all__ = ["DoubleSamplingClassifier", "LongTailClassifier", "TextClassifier", "TopK", "load"]
