"""Systems on data, measured: accuracy, macro F1, time and memory of one fit and one prediction."""

from longtail.benchmark.measure import Measurement, measure

__all__ = ["Measurement", "measure"]
