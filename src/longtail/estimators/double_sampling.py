"""The paper's estimator: (π,κ)-double sampling, ten features, one linear SVM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from longtail._validation import (
    cap_adversaries,
    cap_candidates,
    check_examples_per_class,
    check_positive,
)
from longtail.estimators._base import CountClassifier
from longtail.explanation import ScoreParts, split_paper_score
from longtail.retrieval.index import INDEX_PARTS, InvertedIndex, build_index
from longtail.retrieval.search import rank_topk, search
from longtail.scoring.linear import LinearScorer, score_pairs
from longtail.scoring.paper import (
    CENTROID_DISTANCE,
    FEATURE_NAMES,
    centroid_scorer,
    term_scores,
    weight_for_cosine,
)
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus
from longtail.store.container import ModelFile
from longtail.store.state_io import Model, current_corpus
from longtail.training.pairwise import PairwiseScorer, adversary_differences, fit_pairwise_scorer
from longtail.training.sampling import PairSample, draw_pairs

_MOST_DRAWS = 1000


@dataclass(frozen=True)
class DoubleSamplingState(Model):
    """The fitted parts of the paper's method."""

    scorer: PairwiseScorer
    sample: PairSample | None
    centroids: LinearScorer
    index: InvertedIndex
    term_scores: LinearScorer


class DoubleSamplingClassifier(CountClassifier):
    """The paper's (π,κ)-double sampling classifier, to the letter.

    Documents of each class and adversarial classes for each document are sampled (Algorithm 1), the
    ten features of Table 1 of the resulting pairs train one linear SVM for all classes, and a
    document gets the class of highest score among its q nearest centroids (Algorithm 2).

    Parameters
    ----------
    examples_per_class : float, default=2
        Documents kept of each class on average: π_k = min(1, examples_per_class / n_k).
    adversaries : int, default=30
        κ, other classes drawn for each document kept; capped at the number of other classes.
    candidates : int, default=10
        q, nearest centroids among which prediction chooses; capped at the number of classes.
    C : float, default=0.01
        Weight of the SVM's loss for each pair.
    random_state : int, RandomState or None, default=None
        Decides the sample; the same state gives the same model for any `n_jobs`.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 is every core.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted.
    statistics_ : ClassStatistics
        The sums of the documents of each class.
    weights_ : dict of str to float
        Weight of each feature; a score is the sum of weight x feature.
    feature_scales_ : ndarray of shape (10,)
        Largest absolute difference of each feature over the sampled pairs, by which the learner
        divided.
    sample_ : PairSample
        The documents and adversaries drawn; None after `longtail.load`.
    adversaries_ : int
        κ after capping.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import DoubleSamplingClassifier
    >>> X = np.array([[3, 1, 0], [2, 0, 0], [0, 1, 2], [0, 0, 4]])
    >>> classifier = DoubleSamplingClassifier(random_state=0).fit(X, ["a", "a", "b", "b"])
    >>> classifier.predict([[1, 0, 0], [0, 0, 1]]).tolist()
    ['a', 'b']

    References
    ----------
    Joshi, Amini, Partalas, Iutzeler and Maximov, "Aggressive Sampling for Multi-class to Binary
    Reduction with Applications to Text Classification", NIPS 2017.
    """

    _feature_names = FEATURE_NAMES

    def __init__(
        self,
        examples_per_class: float = 2,
        adversaries: int = 30,
        candidates: int = 10,
        C: float = 0.01,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.examples_per_class = examples_per_class
        self.adversaries = adversaries
        self.candidates = candidates
        self.C = C
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def weights_(self) -> dict[str, float]:
        """Weight of each feature."""
        return dict(zip(FEATURE_NAMES, self._fitted().scorer.weights.tolist(), strict=True))

    @property
    def feature_scales_(self) -> Floats:
        """What the learner divided each feature by."""
        scales: Floats = self._fitted().scorer.scales
        return scales

    @property
    def sample_(self) -> PairSample | None:
        """The documents and adversaries drawn by the last fit."""
        sample: PairSample | None = self._fitted().sample
        return sample

    @property
    def adversaries_(self) -> int:
        """κ after capping."""
        return cap_adversaries(self.adversaries, len(self.classes_))

    def _check_parameters(self) -> None:
        cap_adversaries(self.adversaries, 2)
        cap_candidates(self.candidates, 2)
        check_examples_per_class(self.examples_per_class)
        check_positive("C", self.C)

    def _fit_model(
        self, rows: CountMatrix, numbers: Integers, classes: NDArray[Any]
    ) -> DoubleSamplingState:
        statistics = ClassStatistics.from_counts(rows, numbers, len(classes), n_jobs=self.n_jobs)
        sample = self._draw_sample(numbers, len(classes))
        differences = adversary_differences(rows, statistics, sample, self.n_jobs)
        scorer = fit_pairwise_scorer(differences, None, self.C, self.n_jobs)
        del differences  # the largest array of a fit makes room for the index
        return self._assemble(classes, statistics, statistics.corpus, scorer, sample)

    def _draw_sample(self, numbers: Integers, n_classes: int) -> PairSample:
        """Draw until there is a document: a draw may come out empty when the data are few."""
        random_state = check_random_state(self.random_state)
        for _ in range(_MOST_DRAWS):
            sample = draw_pairs(
                numbers,
                n_classes,
                self.examples_per_class,
                self.adversaries,
                random_state,
                n_jobs=self.n_jobs,
            )
            if len(sample):
                return sample
        raise ValueError(
            f"examples_per_class={self.examples_per_class!r} is so small that {_MOST_DRAWS} draws "
            f"kept none of the {len(numbers)} documents; the paper uses 1 or 2."
        )

    def _assemble(
        self,
        classes: NDArray[Any],
        statistics: ClassStatistics,
        corpus: Corpus,
        scorer: PairwiseScorer,
        sample: PairSample | None,
    ) -> DoubleSamplingState:
        """Derive what prediction needs from the statistics and the scorer."""
        current = current_corpus(corpus, statistics)
        return DoubleSamplingState(
            classes=classes,
            statistics=statistics,
            corpus=corpus,
            current_corpus=current,
            scorer=scorer,
            sample=sample,
            centroids=(centroids := centroid_scorer(statistics, current)),
            index=build_index(centroids, statistics.n_terms, self.n_jobs),
            term_scores=_as_score(
                statistics, term_scores(statistics, current, scorer.weights, n_jobs=self.n_jobs)
            ),
        )

    def _with_statistics(
        self,
        classes: NDArray[Any],
        statistics: ClassStatistics,
        sources: Integers,
        changed: NDArray[np.bool_],
    ) -> DoubleSamplingState:
        model: DoubleSamplingState = self._fitted()
        return self._assemble(classes, statistics, model.corpus, model.scorer, model.sample)

    def _rank(
        self, model: DoubleSamplingState, rows: CountMatrix, k: int
    ) -> tuple[Integers, Floats]:
        n_candidates = cap_candidates(self.candidates, len(model.classes))
        documents = weight_for_cosine(rows, model.current_corpus.idf, n_jobs=self.n_jobs)
        candidates, cosines = search(
            documents, model.centroids, model.index, n_candidates, n_jobs=self.n_jobs
        )
        counted = replace(documents, weights=np.ones_like(documents.weights))
        scores = score_pairs(counted, candidates, model.term_scores, self.n_jobs)
        scores += model.scorer.weights[CENTROID_DISTANCE] * (1.0 - cosines)
        return rank_topk(candidates, scores, min(k, n_candidates), self.n_jobs)

    def _split_score(
        self, model: DoubleSamplingState, rows: CountMatrix, document: int, number: int
    ) -> ScoreParts:
        return split_paper_score(
            rows,
            document,
            number,
            model.statistics,
            model.current_corpus,
            model.scorer.weights,
            model.term_scores.weights,
        )

    def _pack_learned(self, model: DoubleSamplingState) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {
            "scorer/weights": model.scorer.weights,
            "scorer/scales": model.scorer.scales,
            "centroids": model.centroids.weights,
            "term_scores": model.term_scores.weights,
        }
        return arrays | {
            f"index/{stored}": getattr(model.index, name) for name, stored in INDEX_PARTS.items()
        }

    def _unpack_learned(self, file: ModelFile, parts: Model) -> DoubleSamplingState:
        arrays = file.arrays
        scorer = PairwiseScorer(arrays["scorer/weights"], arrays["scorer/scales"])
        if "index/words" not in arrays:  # an older file, whose index was another
            return self._assemble(parts.classes, parts.statistics, parts.corpus, scorer, None)
        return DoubleSamplingState(
            classes=parts.classes,
            statistics=parts.statistics,
            corpus=parts.corpus,
            current_corpus=parts.current_corpus,
            scorer=scorer,
            sample=None,
            centroids=_as_score(parts.statistics, arrays["centroids"]),
            index=InvertedIndex(
                **{name: file.array(f"index/{stored}") for name, stored in INDEX_PARTS.items()}
            ),
            term_scores=_as_score(parts.statistics, arrays["term_scores"]),
        )

    def _validate_learned(self, model: DoubleSamplingState) -> None:
        model.index.validate(model.statistics.n_terms)
        for score in (model.centroids, model.term_scores):
            if len(score.weights) != len(model.statistics.indices):
                raise ValueError("a score does not fit its classes and terms.")


def _as_score(statistics: ClassStatistics, values: Floats) -> LinearScorer:
    """Return what each (class, term) adds as a score without constants."""
    zeros = np.zeros(statistics.n_classes)
    return LinearScorer(statistics.indptr, statistics.indices, values, zeros, zeros)
