"""Training: sampling, hard negatives, pairwise and listwise learning, residuals, calibration."""
