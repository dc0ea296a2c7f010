"""Other classifiers under the same interface, for tables that need a line to compare with."""

from longtail.baselines.centroid import NearestCentroid

__all__ = ["NearestCentroid"]
