"""The arguments of kernels: named tuples of plain arrays, so that none takes more than eight."""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any  # numpy arrays; kernels state shapes and dtypes in their docstrings


class Block(NamedTuple):
    """Rows `first` to `last - 1`."""

    first: int
    last: int


class Counts(NamedTuple):
    """CSR counts of documents, terms ascending."""

    indptr: Array
    indices: Array
    data: Array


class Vectors(NamedTuple):
    """Weighted documents in CSR form, and the sum of the weights of each."""

    indptr: Array
    indices: Array
    weights: Array
    totals: Array


class Documents(NamedTuple):
    """Documents with counts and weights: `Counts` and `Vectors` in one."""

    indptr: Array
    indices: Array
    data: Array
    weights: Array
    totals: Array


class Queries(NamedTuple):
    """Which documents, and for each the class to leave it out of; -1 for none.

    `sample_weights` says how many documents each counts as in that class; empty where all are 1.
    """

    document_ids: Array
    true_classes: Array
    sample_weights: Array


class SearchQueries(NamedTuple):
    """Which documents, and in CSR form the classes that the search of each passes over.

    Then the subset of classes of each document (-1: all), the list of each subset in CSR form, and
    whether it holds the classes of the subset or those that it lacks. At last, for which documents
    only classes with one of their terms are found; empty where for none.
    """

    document_ids: Array
    label_indptr: Array
    label_ids: Array
    subset_ids: Array
    subset_indptr: Array
    subset_classes: Array
    are_allowed: Array
    matching_only: Array


class ListRows(NamedTuple):
    """Rows of pairs one after the other, and how many pairs of each, the first ones, are labels."""

    indptr: Array
    n_labels: Array


class ClassExamples(NamedTuple):
    """The pairs that classes learn from, class by class: those of class c begin at `starts[c]`.

    Document, whether the class is one of its labels, the log odds of the pair, and what its loss
    counts; `costs` is empty where all count 1.
    """

    starts: Array
    document_ids: Array
    are_labels: Array
    log_odds: Array
    costs: Array


class RandomNegatives(NamedTuple):
    """Documents drawn from all, as negatives of any class.

    CSR parts of their vectors; which of them each document of `ClassExamples` is, -1 for none; how
    many a class has per document and beside that; how many documents they were drawn from.
    """

    indptr: Array
    indices: Array
    weights: Array
    positions: Array
    n_per_label: int
    n_at_least: int
    n_documents: int


class SeparatorScratch(NamedTuple):
    """Of one class: its dual variables, resting flags, order and costs; weights.

    `drawn` marks the random documents that are examples already; `weights` has an entry per term.
    """

    alphas: Array
    resting: Array
    order: Array
    costs: Array
    drawn: Array
    dense: Array


class Pairs(NamedTuple):
    """(row, column) pairs `row * n_columns + column`; those of class c begin at `starts[c]`."""

    starts: Array
    ids: Array
    n_columns: int


class Members(NamedTuple):
    """Documents class by class: those of class c begin at `starts[c]`.

    `sample_weights` says how many documents each counts as; empty where all are 1.
    """

    starts: Array
    document_ids: Array
    sample_weights: Array


class ClassTerms(NamedTuple):
    """The class matrix: fixed-point counts and centroid sums in CSR form."""

    indptr: Array
    indices: Array
    counts: Array
    centroid_sums: Array


class FixedPoint(NamedTuple):
    """What turns counts and length-normalised documents into integers, and how terms count."""

    count_scale: float
    centroid_scale: float
    sublinear: bool


class TermScratch(NamedTuple):
    """Accumulators (n_terms,), all 0 before and after."""

    counts: Array
    centroid_sums: Array
    seen: Array


class ClassProfile(NamedTuple):
    """What the six features need of classes and terms; `quantum` is the fixed-point unit."""

    indptr: Array
    indices: Array
    centroid_sums: Array
    sizes: Array
    squared_norms: Array
    masses: Array
    idf: Array
    collection_model: Array
    quantum: float


class PaperClasses(NamedTuple):
    """What Table 1 needs of classes (y_t, |y|, centroid) and terms (I_t, l_S / F_t)."""

    indptr: Array
    indices: Array
    counts: Array
    centroid_sums: Array
    lengths: Array
    norms: Array
    idf: Array
    rarity: Array
    count_quantum: float
    mean_length: float
    sublinear: bool


class DifferenceScratch(NamedTuple):
    """Offset of each term in the class (n_terms,), all 0; features of its terms; of a pair."""

    offsets: Array
    term_features: Array
    features: Array


class Differences(NamedTuple):
    """Norm of each document, features of its true class, differences to its adversaries."""

    document_norms: Array
    true_features: Array
    differences: Array


class Scorer(NamedTuple):
    """A linear scorer: a weight per (class, term) in CSR form, length weight and bias per class."""

    indptr: Array
    indices: Array
    weights: Array
    length_weights: Array
    biases: Array


class Rescoring(NamedTuple):
    """Unpruned weights of the same documents, and the residuals of the classes in CSR form.

    `residual_inputs` are the weights of the documents that residuals multiply. All empty where
    pairs are scored once.
    """

    weights: Array
    residual_inputs: Array
    totals: Array
    indptr: Array
    indices: Array
    residuals: Array
    biases: Array


class PairScores(NamedTuple):
    """Scores of pairs; with `Rescoring` also those by all weights and residuals, else empty."""

    scores: Array
    rescored: Array


class Contributions(NamedTuple):
    """What each term adds to each score of a document.

    The terms of document i and column k stand at `offsets[i] + k * length` of `values`; `biases` is
    what no term decides.
    """

    offsets: Array
    values: Array
    biases: Array


class Quantization(NamedTuple):
    """How each term is stored: dense row or -1 for postings, lowest value and step."""

    dense_row_ids: Array
    zero_points: Array
    scales: Array


class Postings(NamedTuple):
    """Postings, where each term's next one goes, and dense rows: the output of quantization."""

    offsets: Array
    classes: Array
    quantized: Array
    dense_rows: Array


class Index(NamedTuple):
    """The inverted index; `dense_rows` flat, `ranges` of biases and length weights (4,)."""

    indptr: Array
    classes: Array
    quantized: Array
    dense_row_ids: Array
    zero_points: Array
    scales: Array
    dense_rows: Array
    length_weights: Array
    biases: Array
    tombstones: Array
    ranges: Array


class SearchScratch(NamedTuple):
    """Accumulators and survivors of all classes; then what the dense rows of a document need."""

    accumulators: Array
    maxima: Array
    keys: Array
    survivors: Array
    row_starts: Array
    negated_levels: Array
    factors: Array
    shifts: Array


class Shortlist(NamedTuple):
    """Classes to score exactly, as many as fit; how many there are."""

    classes: Array
    sizes: Array


class Tree(NamedTuple):
    """The parents of each node in CSR form, and how far each is from a root."""

    indptr: Array
    parents: Array
    depths: Array


class TreeScratch(NamedTuple):
    """What a visit of ancestors writes to; all but the first two of one entry for each node.

    The last mark given; nodes reached; the mark of each node's last visit; its sum; whether it was
    reached; nodes to visit.
    """

    marks: Array
    reached: Array
    seen: Array
    sums: Array
    are_reached: Array
    stack: Array


class RankScratch(NamedTuple):
    """Classes with their columns, and scores, of the candidates of one document."""

    keys: Array
    scores: Array


class Directions(NamedTuple):
    """Signs of vectors of classes in columns of 64 bits, and ids of the classes; -1 for none."""

    codes: Array
    class_ids: Array


class TopK(NamedTuple):
    """The best classes of each row, best first, and their scores."""

    classes: Array
    scores: Array


class LossSums(NamedTuple):
    """Loss, half gradient and half Hessian of each chunk of pairs."""

    losses: Array
    gradients: Array
    hessians: Array


class Lists(NamedTuple):
    """Row of each list's document, columns of its candidates, label first, and what it counts."""

    rows: Array
    columns: Array
    weights: Array


class PairParts(NamedTuple):
    """Scores, parts of scores and ln n_c of (document, candidate) pairs."""

    scores: Array
    values: Array
    log_sizes: Array


class Coordinates(NamedTuple):
    """Of which row of sizes and which part each change is, and the scale of each part."""

    size_rows: Array
    part_ids: Array
    scales: Array


class SoftmaxScratch(NamedTuple):
    """Of one list: features (n_columns, n), scores (n_columns,), mean of the features (n,)."""

    features: Array
    scores: Array
    mean: Array


class SoftmaxSums(NamedTuple):
    """Gradient (n,) and Hessian (n, n), of which the lower triangle is filled."""

    gradient: Array
    hessian: Array


class AdaGrad(NamedTuple):
    """Learning rate, weight decay, and the squared gradients of each term so far."""

    learning_rate: float
    decay: float
    squared_gradients: Array


class ListScratch(NamedTuple):
    """Scores (n_columns,), and factors of the terms of the longest document."""

    scores: Array
    factors: Array


class DualSolver(NamedTuple):
    """Cost of a pair's loss, tolerance of the last pass, passes, and the smallest weight kept."""

    cost: float
    tolerance: float
    max_passes: int
    smallest_weight: float


class DualScratch(NamedTuple):
    """For the longest list of pairs: dual variables, their logits, whether a pair rests.

    `dense` (n_terms,), all 0 before and after: the weights of one class.
    """

    alphas: Array
    logits: Array
    resting: Array
    dense: Array


class ResidualRows(NamedTuple):
    """Terms and weights of classes one after the other; number of them and bias per class.

    `offsets` (any size) and `buffer` (n_terms,) are scratch.
    """

    indices: Array
    weights: Array
    sizes: Array
    biases: Array
    offsets: Array
    buffer: Array
