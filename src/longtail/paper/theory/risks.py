"""The risks and the risk bound of a fitted model (Eqs. 6 and 7, Theorems 1 and 2).

In come a fitted ``DoubleSamplingClassifier`` and its training set; out come its risk on all pairs,
on the pairs it was trained on, and the ``Bound`` on its risk on new documents. Pairs are formed in
blocks; the whole of T(S) is never held.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from longtail._validation import check_choice, find_labels
from longtail.paper.features import FEATURE_NAMES, pair_features
from longtail.paper.pairwise import pair_with_all
from longtail.paper.sampling import PairSample, retention_probabilities
from longtail.paper.theory.bounds import (
    Bound,
    SampleSizes,
    check_delta,
    theorem_1,
    theorem_2a,
    theorem_2b,
)
from longtail.paper.theory.complexity import (
    check_margin,
    linear_complexity_bound,
    ramp_loss,
    zero_one_complexity_bound,
)
from longtail.paper.theory.constants import Form, sampling_constants
from longtail.sparse import CountMatrix, Floats, Integers

if TYPE_CHECKING:
    from longtail.paper.estimator import DoubleSamplingClassifier


Theorem = Literal["1", "2a", "2b"]
Loss = Literal["zero-one", "ramp"]

# Pairs formed at once; with ten float64 features they take 40 MB.
BLOCK_PAIRS = 500_000


@dataclass(frozen=True)
class PairLosses:
    """Moments of the losses of a set of pairs that the bounds need.

    Attributes
    ----------
    n_pairs : int
        Number of pairs.
    mean : float
        The empirical risk: Eq. 6 or Eq. 7 for the 0/1 loss.
    variance : float
        Sample variance of the losses, the estimate of r; at most 1/4.
    largest_norm : float
        R, the largest norm of a scaled difference.
    """

    n_pairs: int
    mean: float
    variance: float
    largest_norm: float


def full_risk(classifier: DoubleSamplingClassifier, X: Any, y: npt.ArrayLike) -> float:
    """Return R̃_T(S)(h) (Eq. 6), the share of all pairs that a fitted model gets wrong.

    Equal to Eq. 3, the mean share of the other classes that score at least as high as the true one.
    On the training set it is the risk of Theorem 1; on new documents it estimates R(h).

    Parameters
    ----------
    classifier : DoubleSamplingClassifier
        Fitted.
    X : sparse or dense matrix of shape (n_documents, n_terms)
        Counts.
    y : array-like of shape (n_documents,)
        Labels known to the classifier.
    """
    return _summarise(classifier, _all_differences(classifier, X, y), "zero-one", 1.0).mean


def sampled_risk(classifier: DoubleSamplingClassifier, X: Any) -> float:
    """Return R̃_{T_κ(S_π)}(h) (Eq. 7), the share of its training pairs that a model gets wrong.

    Parameters
    ----------
    classifier : DoubleSamplingClassifier
        Fitted.
    X : sparse or dense matrix of shape (n_documents, n_terms)
        The counts it was fitted on.
    """
    return _summarise(classifier, _sampled_differences(classifier, X), "zero-one", 1.0).mean


def risk_bound(
    classifier: DoubleSamplingClassifier,
    X: Any,
    y: npt.ArrayLike,
    delta: float = 0.05,
    *,
    theorem: Theorem = "2a",
    form: Form = "retention",
    corrected: bool = True,
    loss: Loss = "zero-one",
    margin: float = 1.0,
    variance: float | None = None,
    chromatic_number: float | None = None,
) -> Bound:
    """Bound R(h) of a fitted model; m, M, κ, K and π are those it was fitted with.

    A model that was taught more documents since its last fit has to be fitted again first: its
    sample and π are those of the fit.

    Parameters
    ----------
    classifier : DoubleSamplingClassifier
        Fitted on (X, y).
    X : sparse or dense matrix of shape (n_documents, n_terms)
        The counts it was fitted on.
    y : array-like of shape (n_documents,)
        The labels it was fitted on.
    delta : float, default 0.05
        δ, the probability with which the bound may fail, in (0, 1).
    theorem : {"2a", "2b", "1"}
        First or second inequality of Theorem 2, or Theorem 1 (all pairs, no sampling).
    form : {"retention", "lemma", "theorem"}
        Which α and β, see ``sampling_constants``; no part in Theorem 1.
    corrected : bool, default True
        What the proof of Theorem 2 shows, instead of what is printed.
    loss : {"zero-one", "ramp"}
        The paper's 0/1 loss, its complexity bounded by counting; or the ramp loss, which lies above
        it, its complexity that of the linear class divided by ``margin``.
    margin : float, default 1.0
        ρ of the ramp loss.
    variance : float, optional
        r of H_r; estimated from the pairs when left out.
    chromatic_number : float, optional
        χ* of the sampled pairs; K - 1 when left out.

    Raises
    ------
    ValueError
        If (X, y) is not the training set, a class has no document or a parameter is out of range.

    Examples
    --------
    >>> from longtail import DoubleSamplingClassifier
    >>> from longtail.paper import theory
    >>> X, y = theory.make_problem(4).draw(400, np.random.default_rng(0))
    >>> classifier = DoubleSamplingClassifier(examples_per_class=50, random_state=0).fit(X, y)
    >>> list(theory.risk_bound(classifier, X, y).terms)
    ['empirical', 'complexity', 'deviation', 'shift_slow', 'shift_fast']
    """
    check_delta(delta)
    check_choice("theorem", theorem, get_args(Theorem))
    check_choice("loss", loss, get_args(Loss))
    check_margin(margin)
    class_sizes = _training_class_sizes(classifier, X, y)
    retention = retention_probabilities(class_sizes, classifier.examples_per_class)
    sampling = sampling_constants(class_sizes, retention, form)
    m = int(class_sizes.sum())
    sample = _sample(classifier)
    if theorem == "1":
        losses = _summarise(classifier, _all_differences(classifier, X, y), loss, margin)
        complexity = _complexity(classifier, losses, m, loss, margin)
        r = losses.variance if variance is None else variance
        return theorem_1(losses.mean, complexity, r, m, delta)
    losses = _summarise(classifier, _sampled_differences(classifier, X), loss, margin)
    sizes = SampleSizes(
        n_documents=m,
        n_sampled=len(sample.documents),
        adversaries=sample.classes.shape[1] - 1,
        n_classes=len(class_sizes),
    )
    complexity = _complexity(classifier, losses, sizes.n_sampled, loss, margin)
    if theorem == "2a":
        return theorem_2a(
            losses.mean, complexity, sampling, sizes, delta,
            corrected=corrected, chromatic_number=chromatic_number,
        )  # fmt: skip
    r = losses.variance if variance is None else variance
    return theorem_2b(
        losses.mean, complexity, r, sampling, sizes, delta,
        corrected=corrected, chromatic_number=chromatic_number,
    )  # fmt: skip


def _complexity(
    classifier: DoubleSamplingClassifier,
    losses: PairLosses,
    n_documents: int,
    loss: Loss,
    margin: float,
) -> float:
    """Bound ℜ(ℓ∘H) for pairs that come in equal numbers from each document."""
    if loss == "zero-one":
        return zero_one_complexity_bound(len(FEATURE_NAMES), n_documents)
    # One pair of each document in every set: as many sets as pairs of a document.
    norm = float(np.linalg.norm(_weights(classifier) * classifier.feature_scales_))
    chromatic_number = losses.n_pairs / n_documents
    linear = linear_complexity_bound(norm, losses.largest_norm, losses.n_pairs, chromatic_number)
    return linear / margin


def _summarise(
    classifier: DoubleSamplingClassifier, blocks: Iterator[Floats], loss: Loss, margin: float
) -> PairLosses:
    """Add up the losses over blocks of differences, true class minus other."""
    weights, scales = _weights(classifier), np.asarray(classifier.feature_scales_)
    n, total, squares, largest = 0, 0.0, 0.0, 0.0
    for differences in blocks:
        margins = differences @ weights
        losses = (margins <= 0.0) * 1.0 if loss == "zero-one" else ramp_loss(margins, margin)
        n += len(losses)
        total += float(losses.sum())
        squares += float(losses @ losses)
        scaled = differences / scales
        largest = max(largest, float(np.einsum("ij,ij->i", scaled, scaled).max(initial=0.0)))
    if n < 2:
        raise ValueError(
            f"classifier must have been fitted on at least 2 pairs; it has {n}. "
            "Raise examples_per_class or adversaries."
        )
    variance = max(0.0, squares - total**2 / n) / (n - 1)
    return PairLosses(n, total / n, min(0.25, variance), math.sqrt(largest))


def _sampled_differences(classifier: DoubleSamplingClassifier, X: Any) -> Iterator[Floats]:
    """Yield φ(x^y) - φ(x^y') of the pairs the model was trained on, in blocks of documents.

    Eq. 4 may swap a pair and negate its label; ỹ h(z) is the same either way.
    """
    sample = _sample(classifier)
    return _differences(classifier, X, sample.documents, sample.classes)


def _all_differences(
    classifier: DoubleSamplingClassifier, X: Any, y: npt.ArrayLike
) -> Iterator[Floats]:
    """Yield φ(x^y) - φ(x^y') of every document with every other class, in blocks of documents."""
    check_is_fitted(classifier)
    rows = CountMatrix.from_matrix(X)
    true = find_labels(classifier.classes_, y, rows.n_documents, name="y")
    n_classes = len(classifier.classes_)
    step = max(1, BLOCK_PAIRS // n_classes)
    for start in range(0, len(true), step):
        classes = pair_with_all(true[start : start + step], n_classes)
        documents = np.arange(start, start + len(classes))
        yield from _differences(classifier, rows, documents, classes)


def _differences(
    classifier: DoubleSamplingClassifier, X: Any, documents: Integers, classes: Integers
) -> Iterator[Floats]:
    """Yield the differences of column 0 with every other column of ``classes``."""
    rows = X if isinstance(X, CountMatrix) else CountMatrix.from_matrix(X)
    step = max(1, BLOCK_PAIRS // classes.shape[1])
    for start in range(0, len(documents), step):
        block = slice(start, start + step)
        features = pair_features(rows, classifier.statistics_, documents[block], classes[block])
        yield (features[:, :1] - features[:, 1:]).reshape(-1, features.shape[2])


def _sample(classifier: DoubleSamplingClassifier) -> PairSample:
    """Return the pairs the model was trained on, which a model opened from a file has not."""
    check_is_fitted(classifier)
    if classifier.sample_ is None:
        raise ValueError(
            "classifier must hold the sample it was fitted on; a model opened from a file has none "
            "(sample_ is None). Fit it again with the same random_state."
        )
    return classifier.sample_


def _weights(classifier: DoubleSamplingClassifier) -> Floats:
    """Return the weights of the features in the order of Table 1."""
    return np.array([classifier.weights_[name] for name in FEATURE_NAMES], dtype=np.float64)


def _training_class_sizes(
    classifier: DoubleSamplingClassifier, X: Any, y: npt.ArrayLike
) -> Integers:
    """Return the documents of each class of (X, y), which must be the training set."""
    check_is_fitted(classifier)
    n_documents = CountMatrix.from_matrix(X).n_documents
    class_ids = find_labels(classifier.classes_, y, n_documents, name="y")
    class_sizes = np.bincount(class_ids, minlength=len(classifier.classes_)).astype(np.int64)
    empty = np.flatnonzero(class_sizes == 0)
    if len(empty):
        raise ValueError(
            f"y must hold a document of every class, as the theorem needs; "
            f"class {classifier.classes_[empty[0]]!s} has none."
        )
    if not np.array_equal(class_sizes, classifier.statistics_.class_sizes):
        raise ValueError(
            "X, y must be the training set of the classifier, "
            f"{classifier.statistics_.n_documents} documents; got {len(class_ids)} whose labels do "
            "not match. Fit again, or give the documents it was fitted on."
        )
    sample = _sample(classifier)
    if not np.array_equal(class_ids[sample.documents], sample.classes[:, 0]):
        raise ValueError(
            "X, y must be in the order in which the classifier was fitted on them; the sampled "
            "rows have other labels. Give the same arrays as to fit."
        )
    return class_sizes
