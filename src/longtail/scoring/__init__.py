"""Scoring: document weights, the six features, the linear scorer; Table 1 of the paper."""
