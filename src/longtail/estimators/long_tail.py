"""The estimator to use: statistics, a shared score learned on near misses, a correction per class.

fit, step by step:

1. sum the documents of each class (`statistics`)
2. draw documents, find their nearest wrong classes, and learn what the six features and every term
   are worth, each document left out of its own class (`sampling`, `candidates`, `learning`)
3. collapse that into one value for each (class, term) and index it (`scoring`, `candidates`)
4. find every document's candidates, and learn each class's correction on its near misses
   (`candidates`, `refinement`)
5. repeat step 4 without some documents and calibrate on these (`calibration`)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longtail._parallel import release_memory
from longtail._validation import (
    cap_candidates,
    check_k,
    check_known,
    check_positive,
    check_same_kind,
)
from longtail.estimators._base import TEACHING, CountClassifier, check_documents_left, fill_up
from longtail.estimators.delta import DeltaSegment, change_classes, settle
from longtail.explanation import ScoreParts, split_linear_score
from longtail.results import TopK
from longtail.retrieval.index import INDEX_PARTS, InvertedIndex, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import rank_topk, search, search_and_rerank
from longtail.scoring.features import (
    DEFAULT_FEATURE_WEIGHTS,
    FEATURE_WEIGHT_BOUNDS,
    FIRST_FEATURE_WEIGHTS,
    SCORE_FEATURE_NAMES,
    leave_one_out_scores,
    score_features,
    term_contributions,
)
from longtail.scoring.linear import ClassResiduals, LinearScorer, build_scorer, score_pairs
from longtail.scoring.weighting import (
    Profile,
    WeightedDocuments,
    estimate_collection_model,
    weight_documents,
)
from longtail.sparse import CountMatrix, Floats, Integers, index_dtype
from longtail.statistics.classes import ClassStatistics
from longtail.store.container import ModelFile
from longtail.store.state_io import Model, current_corpus
from longtail.training.calibration import Calibrator, calibrate, find_threshold, fit_calibrator
from longtail.training.listwise import fit_feature_weights, fit_term_weights
from longtail.training.residuals import fit_residuals
from longtail.training.sampling import draw_documents, draw_seed, hold_out

N_SAMPLED = 40_000  # documents that the shared score is learned on
N_LISTED = 10_000  # of these, for the six feature weights
FIRST_CANDIDATES = 20  # rivals of each sampled document
FEWEST_LISTED = 10  # with fewer documents the feature weights stay at their defaults
HELD_OUT_SHARE, MOST_HELD_OUT = 0.15, 15_000
DELTA_CAPACITY = 256  # classes taught before the index is built anew
MINED_AT_ONCE = 8_192  # documents; the scores of their candidates are not kept
DOCUMENTS_AT_ONCE = 4_096  # scored for all recent classes
CLASS_WEIGHTS = "class_weights"  # the last feature of an explanation: what the class has learned


@dataclass(frozen=True)
class LongTailState(Model):
    """The fitted parts: learned ones first, then what is derived from them and the statistics."""

    collection_model: Floats
    term_weights: Floats
    feature_weights: Floats
    residuals: ClassResiduals
    calibrator: Calibrator
    pruning: QueryPruning
    stale: NDArray[np.bool_]
    scorer: LinearScorer
    index: InvertedIndex
    delta: DeltaSegment | None = None

    @cached_property
    def document_weights(self) -> Floats:
        """What a document's term frequencies are multiplied by."""
        corpus = self.current_corpus if self.delta is None else self.delta.corpus
        # A term that no document has had says nothing, as if it were no term at all.
        return np.where(corpus.document_frequencies > 0, corpus.idf * self.term_weights, 0.0)


class _Lists(NamedTuple):
    """Documents, each with its own class in column 0 of `classes` and candidates after it."""

    documents: Integers
    classes: Integers
    own: Integers

    def take(self, part: slice) -> _Lists:
        """Return some of the documents with their classes."""
        return _Lists(self.documents[part], self.classes[part], self.own[part])


class LongTailClassifier(CountClassifier):
    """Classify documents into very many classes, most of them rare.

    Every class is the sum of its documents, so documents and classes can be added and forgotten at
    any time. One score for all classes, with a learned weight for every term, ranks them; a sparse
    correction for each class, learned on its near misses, sharpens the ranking. Nothing needs
    setting: what adapts, adapts to the data.

    Parameters
    ----------
    candidates : int, default=20
        Classes among which the corrections decide; capped at the number of classes.
    C : float, default=1.0
        Weight of the loss of each near miss when the corrections are learned.
    random_state : int, RandomState or None, default=None
        Decides which documents are sampled and held out; the same state gives the same model for
        any `n_jobs`.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 is every core.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted.
    statistics_ : ClassStatistics
        The sums of the documents of each class.
    weights_ : dict of str to float
        Weight of each feature of the shared score.
    term_weights_ : ndarray of shape (n_terms,)
        Learned factor of each term.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import LongTailClassifier
    >>> X = np.array([[3, 1, 0], [2, 0, 0], [0, 1, 2], [0, 0, 4]])
    >>> classifier = LongTailClassifier(random_state=0).fit(X, ["a", "a", "b", "b"])
    >>> classifier.predict([[1, 0, 0], [0, 0, 1]]).tolist()
    ['a', 'b']
    """

    _sublinear = True
    _feature_names = (*SCORE_FEATURE_NAMES, CLASS_WEIGHTS)

    def __init__(
        self,
        candidates: int = 20,
        C: float = 1.0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.candidates = candidates
        self.C = C
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def weights_(self) -> dict[str, float]:
        """Weight of each feature; the class's own weights count as they are."""
        weights = [*self._latest().feature_weights.tolist(), 1.0]
        return dict(zip(self._feature_names, weights, strict=True))

    @property
    def term_weights_(self) -> Floats:
        """Learned factor of each term."""
        weights: Floats = self._latest().term_weights
        return weights

    def predict_proba_topk(self, X: Any, k: int = 5) -> TopK:
        """Return the k best classes of each document with calibrated probabilities.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        k : int, default=5
            How many.

        Returns
        -------
        TopK
            `scores` holds probabilities; what a row lacks of 1 is the chance of any other class.
            Where there are fewer than k candidates the probabilities of the rest are 0.
        """
        k = check_k(k)
        model = self._latest()
        labels = self._labels(model)
        numbers, scores = self._rank(model, self._check_rows(X), len(labels))
        probabilities = calibrate(scores, model.calibrator)
        return TopK(labels[fill_up(numbers[:, :k], k, 0)], fill_up(probabilities[:, :k], k, 0.0))

    def threshold_for(self, precision: float) -> float:
        """Return the top-1 probability from which on predictions reach a precision.

        Learned on documents that `fit` held out for it. Abstain where `predict_proba_topk` gives
        less.

        Parameters
        ----------
        precision : float
            Between 0 and 1.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the precision cannot be reached.
        """
        return find_threshold(self._latest().calibrator, precision)

    def refine(self, X: Any, y: ArrayLike) -> Self:
        """Learn the weights of the classes touched since the last fit or refine anew.

        The global quantities (number of documents, document frequencies) are brought up to date for
        all classes.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Documents that the model has been taught: those of the touched classes, and as many
            others as there are, for these are what the touched classes must be told from.
        y : array-like of shape (n_documents,)
            Their labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a document was never taught; the model then stays as it is.
        """
        self._fitted()
        X, y = self._check_input(X, y, reset=False)
        with TEACHING:
            model: LongTailState = self._fitted()
            check_same_kind(y, model.classes)
            check_known(y, model.classes)
            rows, numbers = CountMatrix.from_matrix(X), np.searchsorted(model.classes, y)
            _ = model.statistics - self._sum(rows, y, model.classes)  # refuses strangers
            model = self._derive(
                replace(
                    model,
                    corpus=model.statistics.corpus,
                    collection_model=estimate_collection_model(model.statistics),
                    pruning=QueryPruning.of(model.statistics),
                )
            )
            if len(model.classes) > 1:  # a class alone has nothing to be told from
                documents = self._weigh(rows, model)
                hard_negatives = self._mine(documents, numbers, model)
                learned = self._learn_class_weights(
                    documents, hard_negatives, model, classes=model.stale
                )
                weights = model.residuals.replace_classes(learned, model.stale)
                model = replace(model, residuals=weights)
            self._model = replace(model, stale=np.zeros_like(model.stale))
        return self

    def _check_parameters(self) -> None:
        cap_candidates(self.candidates, 2)
        check_positive("C", self.C)

    # ---- fit

    def _fit_model(
        self, rows: CountMatrix, numbers: Integers, classes: NDArray[Any]
    ) -> LongTailState:
        seed, n_classes = draw_seed(self.random_state), len(classes)
        held_out = hold_out(
            numbers, n_classes, min(int(HELD_OUT_SHARE * len(numbers)), MOST_HELD_OUT), seed
        )
        sample = draw_documents(numbers, n_classes, N_SAMPLED, seed, without=held_out)
        model = self._begin(rows, numbers, classes, sample)
        release_memory()
        documents = self._weigh(rows, model)
        hard_negatives = self._mine(documents, numbers, self._derive(model))
        if len(held_out):
            # Sums are exact: what is subtracted can be added again, so that statistics, score and
            # index are in memory once.
            apart = self._sum_numbered(rows.gather(held_out), numbers[held_out], n_classes)
            model = replace(model, statistics=model.statistics - apart)
            release_memory()
            calibrator = self._calibrate(documents, hard_negatives, held_out, self._collapse(model))
            model = replace(model, statistics=model.statistics + apart, calibrator=calibrator)
            del apart
        model = self._collapse(model)
        release_memory()
        residuals = self._learn_class_weights(documents, hard_negatives, model)
        return self._index(replace(model, residuals=residuals))

    def _begin(
        self, rows: CountMatrix, numbers: Integers, classes: NDArray[Any], sample: Integers
    ) -> LongTailState:
        """Sum the documents and learn the shared score; derived parts and corrections are left."""
        statistics = self._sum_numbered(rows, numbers, len(classes))
        background = estimate_collection_model(statistics)
        term_weights, feature_weights = self._learn_score(
            rows, numbers, Profile.of(statistics, statistics.corpus, background), sample
        )
        return LongTailState(
            classes=classes,
            statistics=statistics,
            corpus=statistics.corpus,
            current_corpus=statistics.corpus,
            collection_model=background,
            term_weights=term_weights,
            feature_weights=feature_weights,
            residuals=ClassResiduals.none(len(classes)),
            calibrator=Calibrator.identity(),
            pruning=QueryPruning.of(statistics),
            stale=np.zeros(len(classes), np.bool_),
            scorer=None,  # type: ignore[arg-type]
            index=None,  # type: ignore[arg-type]
        )

    def _sum_numbered(
        self, rows: CountMatrix, numbers: Integers, n_classes: int
    ) -> ClassStatistics:
        """Sum documents by class number."""
        return ClassStatistics.from_counts(
            rows, numbers, n_classes, sublinear=self._sublinear, n_jobs=self.n_jobs
        )

    def _learn_score(
        self, rows: CountMatrix, numbers: Integers, profile: Profile, sample: Integers
    ) -> tuple[Floats, Floats]:
        """Learn term and feature weights on the sample, each document left out of its class."""
        idf = profile.corpus.idf
        documents = weight_documents(rows, idf, self.n_jobs)
        lists = self._draw_lists(documents, sample, numbers, profile, FIRST_FEATURE_WEIGHTS)
        feature_weights = self._learn_feature_weights(documents, lists, profile)
        term_weights = self._learn_term_weights(
            rows,
            lists.documents,
            lambda part: term_contributions(
                documents, *lists.take(part), profile, feature_weights, self.n_jobs
            ),
        )
        del documents  # as large as what takes their place
        documents = weight_documents(rows, idf * term_weights, self.n_jobs)
        feature_weights = self._learn_feature_weights(documents, lists, profile)
        # Once more with the candidates that the score itself draws, as prediction will.
        lists = self._draw_lists(documents, sample[:N_LISTED], numbers, profile, feature_weights)
        return term_weights, self._learn_feature_weights(documents, lists, profile)

    def _draw_lists(
        self,
        documents: WeightedDocuments,
        sample: Integers,
        numbers: Integers,
        profile: Profile,
        feature_weights: Floats,
    ) -> _Lists:
        """Return each sampled document's own class and the highest-scored others.

        Documents whose own class would not be among the candidates are left out: no weights can
        help them.
        """
        own = numbers[sample]
        score = build_scorer(profile, feature_weights, self.n_jobs)
        classes = self._mine_hard_negatives(
            documents,
            sample,
            own,
            score,
            build_index(score, profile.statistics.n_terms, self.n_jobs),
            QueryPruning.of(profile.statistics),
            FIRST_CANDIDATES,
        )
        rivals = np.ascontiguousarray(classes[:, 1:])
        scores = score_pairs(documents, rivals, score, self.n_jobs, document_ids=sample)
        left_out = leave_one_out_scores(
            documents, own, profile, feature_weights, self.n_jobs, document_ids=sample
        )
        reached = left_out >= scores.min(axis=1)
        return _Lists(sample[reached], classes[reached], own[reached])

    def _learn_feature_weights(
        self, documents: WeightedDocuments, lists: _Lists, profile: Profile
    ) -> Floats:
        """Learn the six weights, or keep the defaults where there is nothing to learn from."""
        if len(lists.documents) < FEWEST_LISTED:
            return DEFAULT_FEATURE_WEIGHTS
        first = lists.take(slice(N_LISTED))
        features = score_features(documents, *first, profile, self.n_jobs)
        return fit_feature_weights(features, bounds=FEATURE_WEIGHT_BOUNDS)

    def _learn_term_weights(
        self, rows: CountMatrix, sample: Integers, contributions_of: Any
    ) -> Floats:
        """Learn the factor of each term."""
        return fit_term_weights(rows, sample, contributions_of)

    def _mine(
        self, documents: WeightedDocuments, numbers: Integers, model: LongTailState
    ) -> NDArray[Any]:
        """Return every document's own class and its candidates, shape (n_documents, 1 + q)."""
        n_candidates = cap_candidates(self.candidates, len(model.classes))
        every = np.arange(len(numbers))
        return self._mine_hard_negatives(
            documents, every, numbers, model.scorer, model.index, model.pruning, n_candidates
        )

    def _mine_hard_negatives(
        self,
        documents: WeightedDocuments,
        chosen: Integers,
        own: Integers,
        score: LinearScorer,
        index: InvertedIndex,
        rare: QueryPruning,
        n_rivals: int,
    ) -> NDArray[Any]:
        """Return the chosen documents' own classes, in column 0, and the highest-scored others."""
        n_classes = len(score.biases)
        n_rivals = min(n_rivals, n_classes - 1)
        classes = np.empty((len(chosen), 1 + n_rivals), index_dtype(n_classes))
        classes[:, 0] = own
        for start in range(0, len(chosen), MINED_AT_ONCE):
            part = slice(start, start + MINED_AT_ONCE)
            classes[part, 1:], _ = search(
                documents,
                score,
                index,
                n_rivals,
                document_ids=chosen[part],
                true_classes=own[part],
                pruning=rare,
                n_jobs=self.n_jobs,
            )
        return classes

    def _score(
        self,
        documents: WeightedDocuments,
        hard_negatives: NDArray[Any],
        model: LongTailState,
        profile: Profile,
    ) -> Floats:
        """Score documents for their own class, without themselves, and for its rivals."""
        scores = score_pairs(documents, hard_negatives, model.scorer, self.n_jobs)
        scores[:, 0] = leave_one_out_scores(
            documents, hard_negatives[:, 0], profile, model.feature_weights, self.n_jobs
        )
        return scores

    def _learn_class_weights(
        self,
        documents: WeightedDocuments,
        hard_negatives: NDArray[Any],
        model: LongTailState,
        *,
        classes: NDArray[np.bool_] | None = None,
        used: NDArray[np.bool_] | None = None,
    ) -> ClassResiduals:
        """Learn the correction of each class, or of some, on all documents, or on some."""
        profile = self._profile(model)  # once for all parts: it looks at every class
        return fit_residuals(
            documents,
            hard_negatives,
            lambda part: self._score(
                documents.slice_documents(part), hard_negatives[part], model, profile
            ),
            len(model.classes),
            self.C,
            class_mask=classes,
            document_mask=used,
            n_jobs=self.n_jobs,
        )

    def _calibrate(
        self,
        documents: WeightedDocuments,
        hard_negatives: NDArray[Any],
        held_out: Integers,
        model: LongTailState,
    ) -> Calibrator:
        """Learn the corrections without the documents held out, and see how these then fare.

        The statistics of the model lack them as well, so they are as new as a test document; only
        the candidates of the others are those found before.
        """
        used = np.ones(len(hard_negatives), np.bool_)
        used[held_out] = False
        candidates, _ = search(
            documents,
            model.scorer,
            build_index(model.scorer, model.statistics.n_terms, self.n_jobs),
            cap_candidates(self.candidates, len(model.classes)),
            document_ids=held_out,
            pruning=model.pruning,
            n_jobs=self.n_jobs,
        )
        residuals = self._learn_class_weights(documents, hard_negatives, model, used=used)
        release_memory()
        scores = self._score_fully(documents.gather(held_out), candidates, model.scorer, residuals)
        ranked, scores = rank_topk(candidates, scores, candidates.shape[1], self.n_jobs)
        return fit_calibrator(scores, ranked == hard_negatives[held_out, :1])

    # ---- from parts to predictions

    def _weigh(self, rows: CountMatrix, model: LongTailState) -> WeightedDocuments:
        """Weigh documents as the model's score expects them."""
        return weight_documents(rows, model.document_weights, self.n_jobs)

    def _profile(self, model: LongTailState) -> Profile:
        """Return what the score needs of the model's classes."""
        return Profile.of(model.statistics, model.current_corpus, model.collection_model)

    def _derive(self, model: LongTailState) -> LongTailState:
        """Bring everything that follows from the statistics up to date."""
        return self._index(self._collapse(model))

    def _collapse(self, model: LongTailState) -> LongTailState:
        """Bring the score up to date; the index stays as it is."""
        current = current_corpus(model.corpus, model.statistics)
        model = replace(model, current_corpus=current)
        score = build_scorer(self._profile(model), model.feature_weights, self.n_jobs)
        return replace(model, scorer=score)

    def _index(self, model: LongTailState) -> LongTailState:
        """Index the score."""
        index = build_index(model.scorer, model.statistics.n_terms, self.n_jobs)
        return replace(model, index=index)

    def _with_statistics(
        self,
        classes: NDArray[Any],
        statistics: ClassStatistics,
        sources: Integers,
        changed: NDArray[np.bool_],
    ) -> LongTailState:
        model: LongTailState = self._fitted()
        return self._derive(
            replace(
                model,
                classes=classes,
                statistics=statistics,
                residuals=model.residuals.gather_classes(sources),
                stale=changed | ((sources >= 0) & model.stale[sources]),
            )
        )

    # ---- teaching: changed classes are kept apart until there are many

    def _labels(self, model: LongTailState) -> NDArray[Any]:
        return model.classes if model.delta is None else model.delta.all_classes

    def _change(self, rows: CountMatrix, y: NDArray[Any], sign: int) -> LongTailState:
        model: LongTailState = self._latest()
        labels = np.unique(y)
        n_recent = 0 if model.delta is None else len(model.delta.classes)
        if n_recent + len(labels) > DELTA_CAPACITY:
            changed: LongTailState = super()._change(rows, y, sign)
            return changed
        recent = change_classes(
            model,
            labels,
            lambda labels: self._sum(rows, y, labels),
            sign,
            lambda statistics, corpus: build_scorer(
                Profile.of(statistics, corpus, model.collection_model), model.feature_weights
            ),
        )
        left = model.statistics.class_sizes[~recent.tombstones].sum()
        check_documents_left(int(left) + recent.statistics.n_documents)
        index = replace(model.index, tombstones=np.flatnonzero(recent.tombstones))
        return replace(model, delta=recent, index=index)

    def _fitted(self) -> LongTailState:
        """Return the model with its recent classes settled among the others."""
        model: LongTailState = self._latest()
        if model.delta is None:
            return model
        with TEACHING:
            model = self._latest()
            if model.delta is not None:
                classes, statistics, residuals, sources = settle(model)
                self._model = model = self._derive(
                    replace(
                        model,
                        classes=classes,
                        statistics=statistics,
                        residuals=residuals,
                        stale=(sources < 0) | model.stale[sources],
                        delta=None,
                    )
                )
        return model

    def _grow_terms(self, n_terms: int) -> None:
        with TEACHING:
            model: LongTailState = self._latest()
            n_new = n_terms - len(model.term_weights)
            recent = model.delta
            self._model = replace(
                model,
                statistics=model.statistics.grow_terms(n_terms),
                current_corpus=model.current_corpus.grow_terms(n_terms),
                collection_model=np.pad(model.collection_model, (0, n_new)),
                term_weights=np.pad(model.term_weights, (0, n_new), constant_values=1.0),
                pruning=model.pruning.grow_terms(n_terms),
                index=model.index.grow_terms(n_terms),
                delta=None if recent is None else recent.grow_terms(n_terms),
            )
            self.n_features_in_ = n_terms

    # ---- prediction

    def _rank(self, model: LongTailState, rows: CountMatrix, k: int) -> tuple[Integers, Floats]:
        return self._rank_weighted(model, self._weigh(rows, model), k)

    def _rank_weighted(
        self, model: LongTailState, documents: WeightedDocuments, k: int
    ) -> tuple[Integers, Floats]:
        """Rank the candidates of weighed documents by score and correction."""
        n_candidates = cap_candidates(self.candidates, len(self._labels(model)))
        k = min(k, n_candidates)
        if model.delta is None:
            return search_and_rerank(
                documents,
                model.scorer,
                model.index,
                n_candidates,
                model.residuals.as_scorer,
                k,
                pruning=model.pruning,
                n_jobs=self.n_jobs,
            )
        candidates, scores = self._find_with_recent(model, documents, n_candidates)
        return rank_topk(candidates, scores, k, self.n_jobs)

    def _score_fully(
        self,
        documents: WeightedDocuments,
        classes: NDArray[Any],
        score: LinearScorer,
        residuals: ClassResiduals,
    ) -> Floats:
        """Return score and correction of each document with each class of its row."""
        scores = score_pairs(documents, classes, score, self.n_jobs)
        scores += score_pairs(documents, classes, residuals.as_scorer, self.n_jobs)
        return scores

    def _find_with_recent(
        self, model: LongTailState, documents: WeightedDocuments, n_candidates: int
    ) -> tuple[Integers, Floats]:
        """Return candidates among settled and recent classes alike, with corrected scores."""
        recent, n_documents = cast(DeltaSegment, model.delta), documents.rows.n_documents
        candidates = np.empty((n_documents, n_candidates), np.int64)
        scores = np.empty((n_documents, n_candidates))
        settled_numbers, recent_numbers = recent.settled_numbers(), recent.recent_numbers()
        n_settled = min(n_candidates, int(np.count_nonzero(~recent.tombstones)))
        for start in range(0, n_documents, DOCUMENTS_AT_ONCE):
            part = slice(start, start + DOCUMENTS_AT_ONCE)
            few = documents.gather(np.arange(n_documents)[part])
            rare = model.pruning.prune(few, np.arange(few.rows.n_documents))
            settled, settled_scores = search(
                rare, model.scorer, model.index, n_settled, n_jobs=self.n_jobs
            )
            every = np.tile(np.arange(len(recent.classes)), (len(settled), 1))
            found, _ = rank_topk(
                np.hstack([recent.settled_places[settled], recent.recent_places[every]]),
                np.hstack([settled_scores, score_pairs(rare, every, recent.score, self.n_jobs)]),
                n_candidates,
                self.n_jobs,
            )
            candidates[part] = found
            # A class is in one of the two places; in the other it scores -inf.
            scores[part] = np.maximum(
                self._score_fully(few, settled_numbers[found], model.scorer, model.residuals),
                self._score_fully(few, recent_numbers[found], recent.score, recent.residuals),
            )
        return candidates, scores

    def _split_score(
        self, model: LongTailState, rows: CountMatrix, document: int, number: int
    ) -> ScoreParts:
        documents = self._weigh(rows.gather(np.array([document])), model)
        features = score_features(
            documents,
            np.zeros(1, np.int64),
            np.array([[number]]),
            np.full(1, -1),
            self._profile(model),
        )
        return split_linear_score(
            documents,
            number,
            features[0, 0] * model.feature_weights,
            model.scorer,
            model.residuals.as_scorer,
        )

    # ---- files

    def _pack_learned(self, model: LongTailState) -> dict[str, NDArray[Any]]:
        arrays = {stored: getattr(model, name) for name, stored in _ARRAYS.items()}
        arrays |= {"rare/counts": model.pruning.class_frequencies}
        arrays |= {"rare/most_postings": np.array([model.pruning.posting_budget])}
        for part, names in _PARTS.items():
            arrays |= {
                stored: getattr(getattr(model, part), name) for name, stored in names.items()
            }
        return arrays

    def _unpack_learned(self, file: ModelFile, parts: Model) -> LongTailState:
        def unpack(part: str) -> dict[str, Any]:
            return {name: file.array(stored) for name, stored in _PARTS[part].items()}

        score = LinearScorer(
            indptr=parts.statistics.indptr, indices=parts.statistics.indices, **unpack("scorer")
        )
        if "index/words" in file.arrays:
            index = InvertedIndex(**unpack("index"))
        else:  # an older file has another index, so it is made anew
            index = build_index(score, parts.statistics.n_terms)
        if "rare/counts" in file.arrays:
            rare = QueryPruning(file.array("rare/counts"), int(file.array("rare/most_postings")[0]))
        else:
            rare = QueryPruning.of(parts.statistics)
        return LongTailState(
            classes=parts.classes,
            statistics=parts.statistics,
            corpus=parts.corpus,
            current_corpus=parts.current_corpus,
            collection_model=file.array("background"),
            term_weights=file.array("term_weights"),
            feature_weights=file.array("feature_weights"),
            stale=file.array("touched"),
            residuals=ClassResiduals(**unpack("residuals")),
            calibrator=Calibrator(**unpack("calibrator")),
            pruning=rare,
            scorer=score,
            index=index,
        )

    def _validate_learned(self, model: LongTailState) -> None:
        if len(model.scorer.weights) != len(model.statistics.indices):
            raise ValueError("a score does not fit its classes and terms.")
        model.index.validate(model.statistics.n_terms)
        if len(model.pruning.class_frequencies) != model.statistics.n_terms:
            raise ValueError("the counts of classes do not fit the terms.")
        model.residuals.validate(model.statistics.n_classes, model.statistics.n_terms)


# Attribute -> name in a file.
_ARRAYS = {
    "collection_model": "background",
    "term_weights": "term_weights",
    "feature_weights": "feature_weights",
    "stale": "touched",
}
_PARTS: dict[str, dict[str, str]] = {
    "residuals": {
        "indptr": "class_weights/indptr",
        "indices": "class_weights/indices",
        "weights": "class_weights/values",
        "biases": "class_weights/constants",
    },
    "calibrator": {
        name: f"calibrator/{name.replace('_correct', '_right')}"
        for name in (
            "top_log_odds",
            "top_probabilities",
            "other_log_odds",
            "other_probabilities",
            "held_out_log_odds",
            "held_out_correct",
        )
    },
    "scorer": {
        "weights": "score/values",
        "length_weights": "score/slopes",
        "biases": "score/constants",
    },
    "index": {name: f"index/{stored}" for name, stored in INDEX_PARTS.items()},
}
