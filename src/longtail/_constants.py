"""Names and numbers that model files share with the stages; imports nothing.

So that a file can be described and checked (`longtail info`) without a compiler or scikit-learn.
"""

from __future__ import annotations

# Counts that are whole numbers need no fraction; others are rounded to 2^-32.
FRACTION_BITS = 32
# How many documents a document counts as is rounded to 2^-24; then float64 holds sums of 2^29 such
# weights exactly, in any order.
WEIGHT_BITS = 24
EMBEDDING_BITS = 12  # a coordinate of 512 is 0.044 in the mean: 181 units
WHOLE_QUERY = 1 << 30  # postings per class: more than the terms of any document
MIN_POSTINGS = 1 / 128  # postings per class, the fewest that a search may follow
LABEL_FORMS = ("labels", "lists", "sparse indicator", "dense indicator")
MAX_LABEL = 10_000  # characters of a label in a journal, which is small beside what it may cost
MAX_COLUMNS = 1 << 24  # of an indicator matrix; classes without documents take memory as well

# Bands of class size in training: name, smallest size, largest size.
FREQUENCY_BANDS: tuple[tuple[str, int, int | None], ...] = (
    ("1", 1, 1),
    ("2-5", 2, 5),
    ("6-20", 6, 20),
    ("21-100", 21, 100),
    ("more", 101, None),
)

# Rows and columns of a self-check's tables.
SCORERS = ("nearest centroid", "default feature weights", "no term weights", "learned")
RESIDUALS = ("none", "as learned", "mixture", "mixture with separators")
# Where documents have several labels, there are so many times as many candidates as asked for: once
# for each label that a document has in the mean, within these bounds.
MIN_FACTOR, MAX_FACTOR = 2, 10
N_LEARNED = 4  # weights and bias of a residual, and of a separator
FIGURES = ("accuracy", "macro_f1", "recall", *(name for name, _, _ in FREQUENCY_BANDS))

# What `evaluate` measures and a fit expects of new documents: key and name, one label first.
MEASURES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1, mean of the per-class F1",
    **{f"top_{k}": f"true class in the top {k}" for k in (3, 5, 10, 20)},
    "mean_f1": "mean F1 of the documents' label sets",
    "micro_f1": "micro F1 of the label sets",
    "precision": "precision of the predicted labels",
    "recall": "recall of the true labels",
    "exact": "documents whose set is exactly right",
    "r_precision": "R-precision",
    **{f"P@{k}": f"P@{k}" for k in (1, 3, 5)},
    **{f"nDCG@{k}": f"nDCG@{k}" for k in (1, 3, 5)},
    "calibration_error": "calibration error",
    "label_calibration_error": "calibration error of labels",
}
EXPECTED = (*MEASURES, *(name for name, _, _ in FREQUENCY_BANDS))  # rows of what to expect
# What is learned from documents taught: sums, numbers of each document, bounds of the two weights,
# and of everything else.
N_SUMS, N_OBSERVED = 6, 5
MIN_WEIGHT, MAX_WEIGHT = 0.05, 1.5
LARGEST_OBSERVED = 2.0**53
LARGEST_SLOPE = 4.0  # of the doubt about short documents

LARGEST_NGRAM = 16  # words; each size takes as much memory as the words
