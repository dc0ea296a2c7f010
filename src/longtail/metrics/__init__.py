"""How good predictions are: per class, ranked, calibrated, and the paper's risks.

============= ====================================================
`classes`     accuracy, both readings of macro F1, frequency bands
`calibration` calibration error, reliability, precision curves
`risks`       the losses and risks of the paper's theory
`evaluation`  `evaluate`: all of it for one model and test set
============= ====================================================
"""

from longtail.metrics.calibration import (
    PrecisionCurve,
    ReliabilityBin,
    calibration_interval,
    expected_calibration_error,
    precision_curve,
    reliability,
)
from longtail.metrics.classes import (
    FREQUENCY_BANDS,
    Confusion,
    FrequencyBand,
    accuracy,
    frequency_report,
    macro_f1,
    macro_f1_of_means,
    most_confused,
    top_k_accuracy,
)
from longtail.metrics.risks import (
    empirical_risk,
    instantaneous_loss,
    sampled_risk,
    transformed_risk,
)

__all__ = [
    "FREQUENCY_BANDS",
    "Confusion",
    "FrequencyBand",
    "PrecisionCurve",
    "ReliabilityBin",
    "accuracy",
    "calibration_interval",
    "empirical_risk",
    "expected_calibration_error",
    "frequency_report",
    "instantaneous_loss",
    "macro_f1",
    "macro_f1_of_means",
    "most_confused",
    "precision_curve",
    "reliability",
    "sampled_risk",
    "top_k_accuracy",
    "transformed_risk",
]
