"""Rankings against label sets: P@k, R@k, F1@k, nDCG@k, PSP@k, PSnDCG@k, R-precision.

In: the true label set of each document and the classes ranked for it, best first. Out: means over
the documents, from 0 to 1. A document without any true label has a precision and an F1 of 0, since
nothing that is ranked for it can be correct; its recall, R-precision and nDCG are 0 / 0 and left
out of their means. Ranks without a candidate are wrong. Labels that the model has never seen stay
in the truth unless the caller leaves them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longtail._caching import cached_property
from longtail._labels import LabelSets, read_label_sets
from longtail._validation import check_same_kind, look_up
from longtail.results import TopK
from longtail.sparse import Floats, Integers

# Of Jain, Prabhu and Varma (KDD 2016), "Extreme multi-label loss functions for recommendation,
# tagging, ranking and other missing label applications": what all but two data sets use.
PROPENSITY_A, PROPENSITY_B = 0.55, 1.5

NO_CLASS, OTHER_CLASS = -1, -2  # in a ranking: no candidate; a class that is no true label


def as_label_sets(y: Any) -> LabelSets:
    """Return label sets; plain labels are sets of one each."""
    return cast(LabelSets, read_label_sets(y, multilabel=True))


@dataclass(frozen=True, eq=False)
class RankedSets:
    """Label sets and rankings with the same class ids: what every measure is computed from.

    Examples
    --------
    >>> ranked = RankedSets.compare([["a", "b"], ["c"]], [["b", "z"], ["a", "c"]])
    >>> ranked.hits.tolist()
    [[True, False], [False, True]]
    """

    truth: LabelSets  # the true labels
    # (n_documents, k) int64: class ids of `truth`, best first; `NO_CLASS` where there was no
    # candidate, `OTHER_CLASS` for a class that is no document's label.
    ranking: Integers

    @classmethod
    def compare(cls, y_true: Any, top_classes: ArrayLike | TopK) -> RankedSets:
        """Find the ranked labels among the true ones.

        Parameters
        ----------
        y_true : list of lists, indicator matrix, LabelSets, or list of labels
            The true labels of each document.
        top_classes : TopK or array-like of shape (n_documents, n_ranked)
            What `predict_topk` returns, or labels, best first.
        """
        truth = as_label_sets(y_true)
        labels = np.asarray(getattr(top_classes, "classes", top_classes))
        if labels.ndim != 2 or len(labels) != len(truth) or not len(truth):
            raise ValueError(
                "top_classes must have a row for each of the true label sets, at least one; got "
                f"shape {labels.shape} for {len(truth)} label sets."
            )
        if len(truth.classes) and labels.size:
            check_same_kind(labels.ravel(), truth.classes)
        ids = look_up(truth.classes, labels.ravel()).reshape(labels.shape)
        ids = np.where(ids < 0, OTHER_CLASS, ids).astype(np.int64)
        if isinstance(top_classes, TopK):
            ids[~top_classes.valid] = NO_CLASS
        return cls(truth, ids)

    @cached_property
    def hits(self) -> NDArray[np.bool_]:
        """Whether each ranked class is a true label, of the shape of `ranking`."""
        return self.truth.contain(self.ranking)

    @cached_property
    def n_hits(self) -> Integers:
        """How many of the first k classes are true labels, in column k - 1."""
        return np.cumsum(self.hits, axis=1)

    @property
    def n_true(self) -> Integers:
        """How many labels each document has."""
        return self.truth.sizes

    def at(self, k: int) -> Integers:
        """Return how many of the first k classes of each document are true labels."""
        n_ranked = self.ranking.shape[1]
        if not 1 <= k <= n_ranked:
            raise ValueError(f"k must be from 1 to {n_ranked}, the ranked classes; got {k!r}.")
        counts: Integers = self.n_hits[:, k - 1]
        return counts


def _compare(y_true: Any, top_classes: Any) -> RankedSets:
    """Return the comparison, which may be given in place of the true labels."""
    return y_true if isinstance(y_true, RankedSets) else RankedSets.compare(y_true, top_classes)


def precision_at_k(y_true: Any, top_classes: Any = None, k: int = 5) -> float:
    """Return P@k: the mean share of true labels among the first k classes.

    Parameters
    ----------
    y_true : list of lists, indicator matrix, LabelSets, or RankedSets
        The true labels of each document; or the comparison that `RankedSets.compare` returns, which
        saves time where several measures are computed.
    top_classes : TopK or array-like of shape (n_documents, n_ranked)
        What `predict_topk` returns, or labels, best first.
    k : int, default=5
        At most n_ranked. Always the divisor, also for documents of fewer labels.

    Examples
    --------
    >>> precision_at_k([["a", "b"], ["c"]], [["b", "z"], ["a", "c"]], k=2)
    0.5
    """
    return float(np.mean(_compare(y_true, top_classes).at(k) / k))


def recall_at_k(y_true: Any, top_classes: Any = None, k: int = 5) -> float:
    """Return R@k: the mean share of a document's labels that are among the first k classes.

    Parameters are those of `precision_at_k`.

    Examples
    --------
    >>> recall_at_k([["a", "b"], ["c"]], [["b", "z"], ["a", "c"]], k=2)
    0.75
    """
    ranked = _compare(y_true, top_classes)
    return _mean_of_labelled(ranked.at(k) / np.maximum(ranked.n_true, 1), ranked.n_true)


def f1_at_k(y_true: Any, top_classes: Any = None, k: int = 5) -> float:
    """Return F1@k as Annif has it: the mean of the documents' own F1 of the first k classes.

    Parameters are those of `precision_at_k`. Ranks without a candidate are not predicted: a
    document's precision is over the candidates that it has.

    Examples
    --------
    >>> round(f1_at_k([["a", "b"], ["c"]], [["b", "z"], ["a", "c"]], k=2), 4)
    0.5833
    """
    ranked = _compare(y_true, top_classes)
    n_hits = ranked.at(k)
    n_predicted = np.count_nonzero(ranked.ranking[:, :k] != NO_CLASS, axis=1)
    return float(np.mean(2.0 * n_hits / np.maximum(n_predicted + ranked.n_true, 1)))


def f1_at_k_of_means(y_true: Any, top_classes: Any = None, k: int = 5) -> float:
    """Return F1@k as the GermEval task has it: the harmonic mean of P@k and R@k.

    Parameters are those of `precision_at_k`.

    Examples
    --------
    >>> round(f1_at_k_of_means([["a", "b"], ["c"]], [["b", "z"], ["a", "c"]], k=2), 4)
    0.6
    """
    ranked = _compare(y_true, top_classes)
    precision, recall = precision_at_k(ranked, k=k), recall_at_k(ranked, k=k)
    return 2.0 * precision * recall / (precision + recall) if precision + recall else 0.0


def ndcg_at_k(y_true: Any, top_classes: Any = None, k: int = 5) -> float:
    """Return nDCG@k: gains of 1 / log2(1 + rank), as a share of what min(k, labels) hits give.

    Parameters are those of `precision_at_k`.

    Examples
    --------
    >>> round(ndcg_at_k([["a", "b"], ["c"]], [["b", "z"], ["a", "c"]], k=2), 4)
    0.622
    """
    ranked = _compare(y_true, top_classes)
    return _mean_of_labelled(document_ndcg(ranked, k), ranked.n_true)


def document_ndcg(ranked: RankedSets, k: int) -> Floats:
    """Return nDCG@k of each document; 0 where it has no label."""
    ranked.at(k)  # checks k
    discounts = _discounts(k)
    gains = np.sum(ranked.hits[:, :k] * discounts, axis=1)
    return np.asarray(gains / _ideal(discounts, ranked.n_true))


def r_precision(y_true: Any, top_classes: Any = None) -> float:
    """Return the mean precision of the first R classes, where R is how many labels a document has.

    Parameters are those of `precision_at_k`; rank at least as many classes as any document has
    labels, or the labels beyond cannot be found.

    Examples
    --------
    >>> r_precision([["a", "b"], ["c"]], [["b", "z"], ["a", "c"]])
    0.25
    """
    ranked = _compare(y_true, top_classes)
    return _mean_of_labelled(document_r_precision(ranked), ranked.n_true)


def document_r_precision(ranked: RankedSets) -> Floats:
    """Return the R-precision of each document; 0 where it has no label."""
    last = np.clip(ranked.n_true, 1, ranked.ranking.shape[1]) - 1
    n_hits = ranked.n_hits[np.arange(len(last)), last]
    return np.asarray(n_hits / np.maximum(ranked.n_true, 1))


def propensities(
    class_sizes: ArrayLike, n_documents: int, a: float = PROPENSITY_A, b: float = PROPENSITY_B
) -> Floats:
    """Return how probable it is that a label that applies was assigned, by class size.

    `p = 1 / (1 + C exp(-a ln(n_k + b)))` with `C = (ln n - 1) (b + 1)^a` (Jain, Prabhu and Varma,
    KDD 2016): labels of rare classes are missing more often, so finding one counts for more.

    Parameters
    ----------
    class_sizes : array-like of shape (n_classes,)
        Training documents of each class; 0 for a class that was never seen.
    n_documents : int
        Training documents.
    a, b : float, default=0.55, 1.5
        Constants of the model; 0.5, 0.4 for Wikipedia, 0.6, 2.6 for Amazon in the literature.

    Examples
    --------
    >>> propensities([1, 100], n_documents=1000).round(3).tolist()
    [0.145, 0.565]
    """
    if n_documents < 1:
        raise ValueError(f"n_documents must be at least 1; got {n_documents!r}.")
    sizes = np.asarray(class_sizes, np.float64)
    # Below three documents the logarithm is under 1 and a propensity would be above 1.
    constant = max(np.log(n_documents) - 1.0, 0.0) * (b + 1.0) ** a
    values: Floats = 1.0 / (1.0 + constant * np.exp(-a * np.log(sizes + b)))
    return values


def psp_at_k(y_true: Any, top_classes: Any = None, *, propensity: ArrayLike, k: int = 5) -> float:
    """Return PSP@k: precision with each hit divided by its propensity, as a share of the best.

    Sums over all documents are divided, as in the literature's tables.

    Parameters
    ----------
    y_true, top_classes, k
        Those of `precision_at_k`.
    propensity : array-like of shape (n_classes,)
        Of each class in the order of the sorted true labels: of `RankedSets.truth.classes`.

    Examples
    --------
    >>> ranked = RankedSets.compare([["a", "b"], ["c"]], [["b", "z"], ["a", "c"]])
    >>> round(psp_at_k(ranked, propensity=[0.5, 0.25, 1.0], k=1), 4)
    0.8
    """
    ranked = _compare(y_true, top_classes)
    gains, best = _inverse_gains(ranked, propensity, k)
    return _share(float(gains.sum()), float(best.sum()))


def psndcg_at_k(
    y_true: Any, top_classes: Any = None, *, propensity: ArrayLike, k: int = 5
) -> float:
    """Return PSnDCG@k: nDCG with each hit divided by its propensity, as a share of the best.

    Both rankings are discounted by rank and normalised by what min(k, labels) hits give, document
    by document; then sums over all documents are divided. Parameters are those of `psp_at_k`.

    Examples
    --------
    >>> ranked = RankedSets.compare([["a", "b"], ["c"]], [["b", "z"], ["a", "c"]])
    >>> round(psndcg_at_k(ranked, propensity=[0.5, 0.25, 1.0], k=2), 4)
    0.7296
    """
    ranked = _compare(y_true, top_classes)
    gains, best = _inverse_gains(ranked, propensity, k)
    discounts = _discounts(k)
    ideal = _ideal(discounts, ranked.n_true)
    return _share(float((gains @ discounts / ideal).sum()), float((best @ discounts / ideal).sum()))


def _mean_of_labelled(values: Floats, n_true: Integers) -> float:
    """Return the mean over the documents that have labels; NaN where there are none."""
    return float(np.mean(values[n_true > 0])) if np.any(n_true) else float("nan")


def _discounts(k: int) -> Floats:
    """Return what a hit at each rank gains."""
    values: Floats = 1.0 / np.log2(np.arange(2, k + 2))
    return values


def _ideal(discounts: Floats, n_true: Integers) -> Floats:
    """Return the gain of the best ranking of each document; of one hit where it has no label."""
    values: Floats = np.cumsum(discounts)[np.clip(n_true, 1, len(discounts)) - 1]
    return values


def _share(value: float, best: float) -> float:
    """Return a value as a share of the best one; 0 where there is nothing to find."""
    return value / best if best else 0.0


def _inverse_gains(ranked: RankedSets, propensity: ArrayLike, k: int) -> tuple[Floats, Floats]:
    """Return 1 / propensity of each hit, and those of the best ranking, (n_documents, k)."""
    ranked.at(k)  # checks k
    values = np.asarray(propensity, np.float64)
    if values.shape != ranked.truth.classes.shape:
        raise ValueError(
            f"propensity must have one value for each of the {len(ranked.truth.classes)} classes "
            f"of the true labels; its shape is {values.shape}."
        )
    if not np.all((values > 0) & (values <= 1)):
        raise ValueError("propensity must be above 0 and at most 1.")
    inverse = 1.0 / values
    ids = ranked.ranking[:, :k]
    gains = np.where(ranked.hits[:, :k], np.append(inverse, 0.0)[np.maximum(ids, NO_CLASS)], 0.0)
    return gains, _best_gains(ranked.truth, inverse, k)


def _best_gains(truth: LabelSets, inverse: Floats, k: int) -> Floats:
    """Return the k largest gains that each document's labels can give, 0 where there are fewer."""
    gains = inverse[truth.class_ids]
    order = np.lexsort((-gains, truth.document_ids))
    ranks = np.arange(len(gains)) - np.repeat(truth.indptr[:-1], truth.sizes)
    kept = ranks < k
    best = np.zeros((len(truth), k))
    best[truth.document_ids[kept], ranks[kept]] = gains[order][kept]
    return best
