"""One schema for every array and value of every saved state.

In: nothing. Out: for each kind of estimator, the arrays and values that a file of it has, with
dtype, shape, range and order, and the rules that hold between them. Saving, loading, checking and
the format page are derived from it: a new field of a state is one line here.

A name is a path: ``residuals/indptr`` is attribute ``indptr`` of attribute ``residuals`` of the
state. Sizes have names too: a size is set by the first array whose shape has it, and every later
array must agree. Kernels do no bounds checks, so whatever they rely on is stated here.
"""

from __future__ import annotations

from dataclasses import replace

from longtail._constants import (
    EMBEDDING_BITS,
    EXPECTED,
    FIGURES,
    FRACTION_BITS,
    LABEL_FORMS,
    LARGEST_NGRAM,
    LARGEST_OBSERVED,
    LARGEST_SLOPE,
    MAX_COLUMNS,
    MAX_FACTOR,
    MAX_WEIGHT,
    MIN_POSTINGS,
    MIN_WEIGHT,
    N_LEARNED,
    N_OBSERVED,
    N_SUMS,
    RESIDUALS,
    SCORERS,
    WHOLE_QUERY,
)
from longtail._kernels.sizes import BYTE_LEVELS, N_BENDS, N_PAPER_FEATURES, N_SCORE_FEATURES
from longtail.store.specs import (
    LARGEST_COUNT,
    LARGEST_SIZE,
    SMALLEST_SHARE,
    ArraySpec,
    LabelSpecs,
    Schema,
    TextsSpec,
    ValueSpec,
)

FEATURE_NAMES_IN = TextsSpec("feature_names", "n_terms", "names of the columns")
CLASS_TEXTS = TextsSpec(
    "class_texts", "n_classes", "name or description of each class; empty for none"
)

# Labels are one of three: numbers as they are, strings, or Python strings in an object array.
NUMERIC_LABELS = ArraySpec(
    "classes", "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8", "n_classes", "labels that are numbers",
    low=-(2.0**1023), high=2.0**1023, order="rising", optional=True,
)  # fmt: skip
STRING_LABELS = TextsSpec("classes.text", "n_classes", "labels that are strings")
OBJECT_LABELS = TextsSpec(
    "classes.object", "n_classes", "labels that are strings in an object array"
)
# Those of the nodes of a hierarchy, likewise.
NUMERIC_NODES = replace(NUMERIC_LABELS, name="nodes", shape="n_nodes", meaning="nodes of the "
                        "hierarchy that are numbers")  # fmt: skip
STRING_NODES = TextsSpec("nodes.text", "n_nodes", "nodes of the hierarchy that are strings")
OBJECT_NODES = TextsSpec(
    "nodes.object", "n_nodes", "nodes of the hierarchy that are strings in an object array"
)
CLASS_LABELS = LabelSpecs(NUMERIC_LABELS, STRING_LABELS, OBJECT_LABELS)
NODE_LABELS = LabelSpecs(NUMERIC_NODES, STRING_NODES, OBJECT_NODES)

STATISTICS = (
    ArraySpec("statistics/class_sizes", "i8 f8", "n_classes", "documents of each class", 0),
    ArraySpec(
        "statistics/document_frequencies", "i8 f8", "n_terms",
        "documents with each term, those of removed classes among them", 0, LARGEST_SIZE,
    ),
    ArraySpec(
        "statistics/indices", "i4 i8", "nnz", "terms of each class", ids="n_terms",
        order="rising", rows="statistics/indptr",
    ),
    ArraySpec(
        "statistics/indptr", "i8", "n_classes + 1", "where the terms of each class begin",
        offsets="nnz",
    ),
    ArraySpec(
        "statistics/counts", "i8", "nnz", "occurrences, in units of 2^-count_bits", 0, LARGEST_COUNT
    ),
    ArraySpec(
        "statistics/centroid_sums", "i8", "nnz",
        "sum of the length-normalised documents, in units of 2^-38", 0, LARGEST_COUNT,
    ),
    ArraySpec(
        "statistics/embedding_sums", "i4", "n_classes, n_dimensions",
        "sum of the embeddings of the documents, unit vectors in units of 2^-12", -(2**30), 2**30,
        optional=True,
    ),
    ArraySpec(
        "corpus/document_frequencies", "i8 f8", "n_fitted_terms",
        "documents with each term at the last fit", 0, LARGEST_SIZE,
    ),
    ArraySpec(
        "corpus/term_counts", "f8", "n_fitted_terms", "occurrences of each term at the last fit", 0,
        least_nonzero=2.0**-FRACTION_BITS,
    ),
)  # fmt: skip

INDEX = (
    ArraySpec(
        "index/classes", "u2 i4 i8", "n_postings", "classes of each posting list", ids="n_classes",
        order="rising", rows="index/indptr",
    ),
    ArraySpec(
        "index/indptr", "i8", "n_terms + 1", "where the postings of each term begin",
        offsets="n_postings",
    ),
    ArraySpec("index/quantized", "u2", "n_postings", "quantized weights of the postings"),
    ArraySpec(
        "index/dense_rows", "u1", "n_dense_rows, n_classes",
        "quantized weights of terms that many classes have", high=BYTE_LEVELS,
    ),
    ArraySpec(
        "index/dense_row_ids", "i4", "n_terms", "dense row of each term; -1 for postings", -1,
        ids="n_dense_rows",
    ),
    ArraySpec("index/zero_points", "f4", "n_terms", "weight of level 0", high=0),
    ArraySpec("index/scales", "f4", "n_terms", "weight of one level", 0),
    ArraySpec("index/length_weights", "f4", "n_classes", "those of the scorer"),
    ArraySpec("index/biases", "f4", "n_classes", "those of the scorer"),
)  # fmt: skip

LONG_TAIL = (
    ArraySpec("scorer/weights", "f4", "nnz", "what a unit of each term adds to each class"),
    ArraySpec("scorer/length_weights", "f8", "n_classes", "what a unit of any term adds"),
    ArraySpec("scorer/biases", "f8", "n_classes", "what every document gets"),
    ArraySpec(
        "collection_model", "f8", "n_terms", "share of each term in all classes", 0, 1,
        least_nonzero=SMALLEST_SHARE,
    ),
    ArraySpec("term_weights", "f8", "n_terms", "learned factor of each term", 0),
    ArraySpec("feature_weights", "f8", str(N_SCORE_FEATURES), "weight of each feature"),
    ArraySpec("stale", "b1", "n_classes", "whether documents changed since the last refine", 0, 1),
    ArraySpec(
        "residuals/indices", "i4", "n_residuals", "terms of each class's residual", ids="n_terms",
        order="rising", rows="residuals/indptr",
    ),
    ArraySpec(
        "residuals/indptr", "i8", "n_classes + 1", "where the residual of each class begins",
        offsets="n_residuals",
    ),
    ArraySpec("residuals/weights", "f4", "n_residuals", "learned weights"),
    ArraySpec("residuals/biases", "f8", "n_classes", "learned biases"),
    ArraySpec(
        "pruning/class_frequencies", "i4 i8", "n_terms", "classes with each term", 0, 2**31 - 1,
    ),
    ArraySpec("calibrator/top_log_odds", "f8", "n_top_knots", "knots of the best candidate's map",
              order="not falling"),
    ArraySpec("calibrator/top_probabilities", "f8", "n_top_knots", "their probabilities", 0, 1,
              order="not falling"),
    ArraySpec("calibrator/other_log_odds", "f8", "n_other_knots", "knots of the others' map",
              order="not falling"),
    ArraySpec("calibrator/other_probabilities", "f8", "n_other_knots", "their probabilities", 0, 1,
              order="not falling"),
    ArraySpec("calibrator/held_out_log_odds", "f8", "n_held_out",
              "log odds of the best candidates of held-out documents", order="not rising"),
    ArraySpec("calibrator/held_out_correct", "b1", "n_held_out", "whether they were correct", 0, 1),
    ArraySpec("calibrator/unknown_log_odds", "f8", "n_unknown",
              "the same if their classes were unknown", order="not rising"),
    ArraySpec("calibrator/pair_probabilities", "f8", "n_likely",
              "with several labels: marginals of likely candidates of held-out documents", 0, 1,
              order="not rising"),
    ArraySpec("calibrator/pair_correct", "b1", "n_likely", "whether they were labels", 0, 1),
    ArraySpec("calibrator/ranked_classes", "i4 i8", "n_ranked, n_ranked_candidates",
              "candidates of some held-out documents; -1 for one that is gone", -1,
              ids="n_classes", optional=True),
    ArraySpec("calibrator/ranked_shares", "f4", "n_ranked, n_ranked_candidates",
              "their shares of the probability", 0, 1.001, optional=True),
    ArraySpec("calibrator/ranked_truth", "i4 i8", "n_ranked", "their classes; -1 likewise", -1,
              ids="n_classes", optional=True),
    ArraySpec("hierarchy/indptr", "i8", "n_nodes + 1", "where the parents of each node begin",
              offsets="n_parents", optional=True),
    ArraySpec("hierarchy/parents", "i8", "n_parents", "parents of each node", ids="n_nodes",
              order="rising", rows="hierarchy/indptr", optional=True),
    ArraySpec(
        "names/indices", "i4", "n_names", "terms of each class's name", ids="n_terms",
        order="rising", rows="names/indptr", optional=True,
    ),
    ArraySpec(
        "names/indptr", "i8", "n_classes + 1", "where the name of each class begins",
        offsets="n_names", optional=True,
    ),
    ArraySpec("names/weights", "f4", "n_names", "weights of the terms", 0, 1.001, optional=True),
    ArraySpec("names/named", "b1", "n_classes", "whether the class has a text", 0, 1,
              optional=True),
    ArraySpec("names/embeddings", "i2", "n_classes, n_dimensions",
              "embeddings of the texts, unit vectors in units of 2^-12; zeros for none",
              -(2**EMBEDDING_BITS), 2**EMBEDDING_BITS, optional=True),
    ArraySpec("memory/indptr", "i8", "n_kept + 1", "where the terms of each document kept begin",
              offsets="n_kept_entries", optional=True),
    ArraySpec("memory/gaps", "u2", "n_kept_entries",
              "how far each of their terms is from the one before in the document, or from 0",
              optional=True),
    ArraySpec("memory/data", "u1 f8", "n_kept_entries",
              "their counts; 0 where there is no term, only a gap", 0, float(LARGEST_COUNT),
              least_nonzero=2.0**-FRACTION_BITS, optional=True),
    ArraySpec("memory/class_ids", "i8", "n_kept", "class of each document kept", ids="n_classes",
              optional=True),
    ArraySpec("memory/embeddings", "i2", "n_kept, n_dimensions",
              "embeddings of the documents kept, unit vectors in units of 2^-12; zeros for none",
              -(2**EMBEDDING_BITS), 2**EMBEDDING_BITS, optional=True),
    ArraySpec("in_use/sums", "f8", str(N_SUMS), "what was learned from documents taught",
              -LARGEST_OBSERVED, LARGEST_OBSERVED),
    ArraySpec("in_use/weights", "f8", "2",
              "what is left of features by class size, and of residuals", MIN_WEIGHT, MAX_WEIGHT),
    ArraySpec("in_use/outcomes", "f8", f"n_waiting, {N_OBSERVED}",
              "documents observed since: log odds, probability, those of others, result, terms",
              -LARGEST_OBSERVED, LARGEST_OBSERVED),
    ArraySpec("in_use/added", "f8", str(N_SUMS), "what the next refine adds to the sums",
              -LARGEST_OBSERVED, LARGEST_OBSERVED),
    ArraySpec("check/name_weights", "f8", "3",
              "weight of a name, per unit of ln n_c, and the bonus of a class without documents"),
    ArraySpec("check/scorer_figures", "f8", f"n_scorers, {len(FIGURES)}",
              "held-out figures of each scorer; -1 for none", -1, 1),
    ArraySpec("check/recalls", "f8", "n_recalls", "recall by posting budget", 0, 1),
    ArraySpec("check/residual_figures", "f8", f"n_mixtures, {len(FIGURES)}",
              "held-out figures with and without residuals; -1 for none", -1, 1),
    ArraySpec("check/expected", "f8", f"{len(EXPECTED)}, 3",
              "what to expect of new documents: value and bounds; -1 for none", -1, 1),
    ArraySpec("check/mixture", "f8", str(N_LEARNED),
              "what weights and biases of residuals and separators count"),
    ArraySpec("check/mixture_slopes", "f8", str(N_LEARNED),
              "what is added to it per unit of ln n_c"),
    ArraySpec("check/feature_shifts", "f8", f"2, {N_SCORE_FEATURES}",
              "what ranking adds to the feature weights, and per unit of ln n_c"),
    ArraySpec("check/meaning", "f8", f"{N_BENDS + 2}, 4",
              "what each part of meaning counts: for a class of one document, per unit of ln n_c, "
              "and beyond each bend", optional=True),
    ArraySpec("check/meaning_figures", "f8", f"n_meanings, {len(FIGURES)}",
              "held-out figures without and with embeddings; -1 for none", -1, 1, optional=True),
    ArraySpec("check/meaning_centers", "i2", "2, n_dimensions",
              "mean embedding of the documents of the fit, and of its class texts",
              -(2**EMBEDDING_BITS), 2**EMBEDDING_BITS, optional=True),
    ArraySpec("check/mixture_bends", "f8", f"{N_BENDS}, {N_SCORE_FEATURES + N_LEARNED}",
              "what is added to both per unit of ln n_c beyond each bend"),
)  # fmt: skip

DOUBLE_SAMPLING = (
    ArraySpec("pairwise/weights", "f8", str(N_PAPER_FEATURES), "weight of each feature"),
    ArraySpec("pairwise/scales", "f8", str(N_PAPER_FEATURES), "what the learner divided by", 0),
    ArraySpec("centroids/weights", "f8", "nnz", "normalised centroids"),
    ArraySpec("term_scores/weights", "f8", "nnz", "what each shared term adds to a score"),
)

TEXT = (
    ArraySpec("vocabulary/utf8", "u1", "n_bytes", "the terms, one after the other"),
    ArraySpec(
        "vocabulary/offsets", "i8", "n_terms + 1", "where each begins", offsets="n_bytes",
        order="rising",
    ),
    ArraySpec("vocabulary/document_frequencies", "i8", "n_terms",
              "documents with each term when it entered", 1, LARGEST_SIZE),
    ArraySpec("bins/edges", "f8", "n_edges", "where bins of numbers begin", -(2.0**1023), 2.0**1023,
              order="rising", rows="bins/offsets", optional=True),
    ArraySpec("bins/offsets", "i8", "n_numbers + 1", "where those of each number begin",
              offsets="n_edges", optional=True),
    ArraySpec("embedder/probe", "i2", "n_dimensions",
              "embedding of a fixed sentence, by which an encoder is known again",
              -(2**EMBEDDING_BITS), 2**EMBEDDING_BITS, optional=True),
    ArraySpec("added/class_ids", "i8", "n_added", "class of each document added with late terms",
              ids="n_classes"),
    ArraySpec("added/hashes", "u8", "n_added, 2", "128-bit hash of its counts",
              order="not falling"),
)  # fmt: skip

STATE_VALUES = (
    ValueSpec(
        "statistics/count_bits", "integer", "unit of the counts", among=(0, FRACTION_BITS)
    ),
    ValueSpec("corpus/n_documents", "number", "documents of the last fit", 0, LARGEST_SIZE),
    ValueSpec("corpus/length", "float", "occurrences of all terms at the last fit", 0),
    ValueSpec("corpus/mean_class_length", "float", "the same for each class", 0),
)  # fmt: skip
LONG_TAIL_VALUES = (
    ValueSpec(
        "statistics/sublinear", "boolean", "the centroids dampen counts", among=(True,)
    ),
    ValueSpec(
        "pruning/posting_budget", "integer", "postings that the terms of a query may have", 0,
        LARGEST_COUNT,
    ),
    ValueSpec("pruning/matching_only", "boolean", "whether only classes with such a term are found",
              optional=True),
    ValueSpec("calibrator/marginal", "boolean", "whether documents had several labels"),
    ValueSpec("calibrator/calibration_error", "float", "calibration error to expect", 0, 1,
              optional=True),
    ValueSpec("calibrator/n_outcomes", "integer", "documents given to `recalibrate` since the fit",
              0, LARGEST_SIZE),
    ValueSpec("calibrator/unknown_share", "float",
              "of the last of these, how many were of a class the model did not have", 0, 1),
    ValueSpec("calibrator/short_length", "float", "terms below which a document is short", 1,
              LARGEST_SIZE),
    ValueSpec("calibrator/short_slope", "float",
              "what log odds lose for each time that a document is e times shorter", 0,
              LARGEST_SLOPE),
    ValueSpec("memory/per_class", "integer",
              "documents of each class that are kept; 0: as many as there is room for", 0,
              2**31 - 1, optional=True),
    ValueSpec("memory/n_changed", "integer",
              "documents added and forgotten since everything was learned", 0, LARGEST_SIZE,
              optional=True),
    ValueSpec("label_form/form", "integer", f"labels come as {', '.join(LABEL_FORMS)}", 0,
              len(LABEL_FORMS) - 1),
    ValueSpec("n_fitted_documents", "integer", "documents of the last fit, each counted once", 0,
              LARGEST_SIZE),
    ValueSpec("candidate_factor", "integer", "times as many candidates as asked for", 1,
              MAX_FACTOR),
    ValueSpec("label_form/n_columns", "integer", "columns of an indicator matrix", 0, MAX_COLUMNS),
    ValueSpec("check/scorer", "integer", "row of the scorer that is kept", 0, len(SCORERS) - 1),
    ValueSpec("check/residuals", "integer", "row of the residuals that are kept", 0,
              len(RESIDUALS) - 1),
    ValueSpec("check/postings_per_class", "number",
              "how far the search goes; below 1, to classes with a searched term", MIN_POSTINGS,
              WHOLE_QUERY),
)  # fmt: skip
DOUBLE_SAMPLING_VALUES = (
    ValueSpec("statistics/sublinear", "boolean", "centroids are of counts", among=(False,)),
)
TEXT_VALUES = (
    ValueSpec("text/n_fitted", "integer", "terms of the last fit", 1, LARGEST_SIZE),
    ValueSpec("text/is_default", "boolean", "whether the classifier was left to the default"),
    ValueSpec("added/complete", "boolean", "whether all documents are there"),
    ValueSpec("embedder/name", "string", "name of the encoder of texts", optional=True),
    ValueSpec("columns/text", "strings", "columns of tables that hold the text", optional=True),
    ValueSpec("columns/label", "strings", "columns that hold the labels", optional=True),
    ValueSpec("columns/label_separator", "string", "separates labels; empty: none", optional=True),
    ValueSpec("columns/format", "string", "format of the files that the rest is of", optional=True),
    ValueSpec("columns/header", "boolean", "whether the first row has names", optional=True),
    ValueSpec("columns/delimiter", "string", "separates the fields of a row", optional=True),
    ValueSpec("columns/quotes", "boolean", "whether fields may stand in quotes", optional=True),
    ValueSpec("columns/encoding", "string", "encoding of the files", optional=True),
)

_RANDOM_STATE = ValueSpec("random_state", "integer", "seed", 0, 2**32 - 1, nullable=True)
_FIELDS = ValueSpec(
    "fields", "fields", "fields of records, with their kinds", nullable=True, optional=True
)
PARAMETERS = {
    "LongTailClassifier": (
        ValueSpec("candidates", "integer", "classes that are reranked", 1, LARGEST_SIZE),
        ValueSpec("C", "float", "weight of the loss", above=0),
        ValueSpec("multilabel", "multilabel", "whether documents have label sets"),
        ValueSpec("calibrate", "boolean", "whether documents are held out"),
        ValueSpec("time_budget", "float", "seconds", above=0, nullable=True),
        ValueSpec("search", "string", "auto, or exact: all classes are looked at", optional=True),
        ValueSpec("memory", "memory", "documents of each class that are kept", 0, 2**31 - 1,
                  nullable=True),
        ValueSpec("adapt", "boolean", "whether teaching adapts what classes share"),
        ValueSpec("class_weight", "class_weight", "what losses count by class", nullable=True),
        _RANDOM_STATE,
    ),
    "DoubleSamplingClassifier": (
        ValueSpec("examples_per_class", "float", "π", above=0),
        ValueSpec("adversaries", "integer", "κ", 1, LARGEST_SIZE),
        ValueSpec("candidates", "integer", "q", 1, LARGEST_SIZE),
        ValueSpec("C", "float", "weight of the loss", above=0),
        _RANDOM_STATE,
    ),
    "TextClassifier": (
        ValueSpec("remember_documents", "boolean", "whether all are hashed"),
        _FIELDS,
        _RANDOM_STATE,
    ),
    "TextVectorizer": (
        ValueSpec("ngram_range", "pair", "sizes of n-grams, in words", 1, LARGEST_NGRAM),
        ValueSpec("char_ngram_range", "pair", "sizes, in characters", 2, 1024, nullable=True),
        ValueSpec("min_df", "frequency", "documents of a word"),
        ValueSpec("max_df", "frequency", "documents of a term, at most"),
        ValueSpec("max_features", "integer", "terms, at most", 1, LARGEST_SIZE, nullable=True),
        ValueSpec("lowercase", "boolean", "whether case is folded"),
        ValueSpec("strip_accents", "string", "whether é counts as e", nullable=True),
        ValueSpec("stop_words", "strings", "words left out", nullable=True),
        ValueSpec("token_pattern", "string", "regular expression for words", nullable=True),
        ValueSpec("ngram_min_df", "frequency", "documents of an n-gram"),
        ValueSpec("ngram_weight", "float", "what an n-gram counts", above=0, high=2.0**32),
        ValueSpec("stem", "boolean", "whether plural endings go"),
        ValueSpec("split_unspaced", "boolean", "whether scripts without spaces are split"),
        _FIELDS,
    ),
}  # fmt: skip


_OF_STATISTICS = {"indptr": "statistics/indptr", "indices": "statistics/indices"}


def _sharing(group: str) -> dict[str, str]:
    """Return how a scorer shares the terms of the statistics."""
    return {f"{group}/{name}": array for name, array in _OF_STATISTICS.items()}


SCHEMAS = {
    "LongTailClassifier": Schema(
        # A model with class texts is saved without its index.
        (*STATISTICS, *(replace(array, optional=True) for array in INDEX), *LONG_TAIL),
        (*STATE_VALUES, *LONG_TAIL_VALUES),
        shared=_sharing("scorer"),
        zeros={},
    ),
    "DoubleSamplingClassifier": Schema(
        (*STATISTICS, *INDEX, *DOUBLE_SAMPLING),
        (*STATE_VALUES, *DOUBLE_SAMPLING_VALUES),
        shared=_sharing("centroids") | _sharing("term_scores"),
        zeros={
            f"{group}/{name}": "n_classes"
            for group in ("centroids", "term_scores")
            for name in ("length_weights", "biases")
        },
    ),
}
