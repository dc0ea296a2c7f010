"""Systems on data, measured: accuracy, macro F1, time and memory of one fit and one prediction."""

from longtail.benchmark.measure import Measurement, Trust, measure, measure_trust

__all__ = ["Measurement", "Trust", "measure", "measure_trust"]
