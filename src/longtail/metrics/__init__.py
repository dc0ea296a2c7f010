"""How good predictions are: per class, ranked, calibrated.

=============== =====================================================
`classes`       accuracy, confusions, frequency bands
`probabilities` calibration error, reliability, precision curves
`intervals`     confidence intervals of shares and means
`comparison`    two models on the same documents
`rankings`      rankings against label sets: P@k, nDCG@k, PSP@k ...
`label_sets`    predicted label sets, frequency bands, curves
`hierarchical`  answers by a hierarchy: hP, hR, hF1, LCA-F1, distance
`mistakes`      the wrong predictions a model was surest of
`evaluation`    `evaluate`: all of it for one model and test set
=============== =====================================================

Both readings of macro F1 and the paper's risks are defined in `longtail.paper.measures`.
"""

from longtail._constants import FREQUENCY_BANDS
from longtail.metrics.classes import (
    ClassResult,
    ConfusedPair,
    Confusion,
    FrequencyBand,
    accuracy,
    class_report,
    confused_pairs,
    frequency_report,
    most_confused,
    top_k_accuracy,
)
from longtail.metrics.comparison import PairedDifference, paired_difference
from longtail.metrics.hierarchical import HierarchicalScores, hierarchical_scores
from longtail.metrics.intervals import mean_interval, ratio_interval, wilson_interval
from longtail.metrics.label_sets import (
    LabelBand,
    LabelCurve,
    SetScores,
    document_f1,
    label_curve,
    label_frequency_report,
    label_set_intervals,
    score_label_sets,
)
from longtail.metrics.probabilities import (
    PrecisionCurve,
    ReliabilityBin,
    calibration_interval,
    expected_calibration_error,
    precision_curve,
    reliability,
)
from longtail.metrics.rankings import (
    RankedSets,
    f1_at_k,
    f1_at_k_of_means,
    ndcg_at_k,
    precision_at_k,
    propensities,
    psndcg_at_k,
    psp_at_k,
    r_precision,
    recall_at_k,
)
from longtail.paper.measures import (
    empirical_risk,
    instantaneous_loss,
    macro_f1,
    macro_f1_of_means,
    sampled_risk,
    transformed_risk,
)

__all__ = [
    "FREQUENCY_BANDS",
    "ClassResult",
    "ConfusedPair",
    "Confusion",
    "FrequencyBand",
    "HierarchicalScores",
    "LabelBand",
    "LabelCurve",
    "PairedDifference",
    "PrecisionCurve",
    "RankedSets",
    "ReliabilityBin",
    "SetScores",
    "accuracy",
    "calibration_interval",
    "class_report",
    "confused_pairs",
    "document_f1",
    "empirical_risk",
    "expected_calibration_error",
    "f1_at_k",
    "f1_at_k_of_means",
    "frequency_report",
    "hierarchical_scores",
    "instantaneous_loss",
    "label_curve",
    "label_frequency_report",
    "label_set_intervals",
    "macro_f1",
    "macro_f1_of_means",
    "mean_interval",
    "most_confused",
    "ndcg_at_k",
    "paired_difference",
    "precision_at_k",
    "precision_curve",
    "propensities",
    "psndcg_at_k",
    "psp_at_k",
    "r_precision",
    "ratio_interval",
    "recall_at_k",
    "reliability",
    "sampled_risk",
    "score_label_sets",
    "top_k_accuracy",
    "transformed_risk",
    "wilson_interval",
]
