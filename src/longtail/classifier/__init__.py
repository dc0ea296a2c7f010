"""The estimators: validate, call the stages in order, keep the fitted parts.

=========== ==========================================================
`base`      what both share: labels, teaching, ranking, explanation
`paper`     `DoubleSamplingClassifier`, the paper to the letter
`long_tail` `LongTailClassifier`, what a user should use
`text`      `TextClassifier`, either of them behind a vocabulary
`opening`   `load`, from a file back to an estimator
=========== ==========================================================
"""

from longtail.classifier.base import TopK
from longtail.classifier.long_tail import LongTailClassifier
from longtail.classifier.opening import load
from longtail.classifier.paper import DoubleSamplingClassifier
from longtail.classifier.text import TextClassifier

__all__ = ["DoubleSamplingClassifier", "LongTailClassifier", "TextClassifier", "TopK", "load"]
