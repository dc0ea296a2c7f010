"""A public path to Table 1 of the paper, `longtail.paper.features.pair_features`."""

from longtail.paper.features import pair_features

__all__ = ["pair_features"]
