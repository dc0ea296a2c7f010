"""A public path to the sums of classes, which are in `longtail.model`."""

from longtail.model.corpus import Corpus
from longtail.model.statistics import ClassStatistics

__all__ = ["ClassStatistics", "Corpus"]
