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

from longtail.calibration import Calibrator, calibrate, find_threshold, fit_calibrator
from longtail.candidates import (
    INDEX_PARTS,
    RareTerms,
    ScoreIndex,
    cap_candidates,
    find_best,
    find_highest,
    index_score,
    rank_pairs,
)
from longtail.classifier.base import (
    TEACHING,
    CountClassifier,
    TopK,
    check_documents_left,
    check_k,
    fill_up,
)
from longtail.classifier.labels import check_known, check_same_kind
from longtail.classifier.parts import Model, current_corpus
from longtail.classifier.recent import Recent, change_classes, settle
from longtail.counts import CountRows, Floats, Integers, index_dtype
from longtail.explanation import ScoreParts, take_additive_apart
from longtail.learning import check_positive, learn_listwise, learn_term_weights
from longtail.persistence import ModelFile
from longtail.refinement import ClassWeights, learn_class_weights
from longtail.sampling import draw_documents, draw_seed, hold_out
from longtail.scoring import (
    DEFAULT_FEATURE_WEIGHTS,
    FEATURE_WEIGHT_BOUNDS,
    FIRST_FEATURE_WEIGHTS,
    SCORE_FEATURE_NAMES,
    AdditiveScore,
    Profile,
    WeightedRows,
    background_shares,
    collapse_score,
    own_scores,
    pair_scores,
    score_features,
    term_contributions,
    weigh_documents,
)
from longtail.statistics import ClassStatistics
from longtail.threads import give_back_memory

SAMPLED = 40_000  # documents that the shared score is learned on
LISTED = 10_000  # of these, for the six feature weights
FIRST_CANDIDATES = 20  # rivals of each sampled document
FEWEST_LISTED = 10  # with fewer documents the feature weights stay at their defaults
HELD_OUT_SHARE, MOST_HELD_OUT = 0.15, 15_000
MOST_RECENT = 256  # classes taught before the index is built anew
MINED_AT_ONCE = 8_192  # documents; the scores of their candidates are not kept
DOCUMENTS_AT_ONCE = 4_096  # scored for all recent classes
CLASS_WEIGHTS = "class_weights"  # the last feature of an explanation: what the class has learned


@dataclass(frozen=True)
class LongTailModel(Model):
    """The fitted parts: learned ones first, then what is derived from them and the statistics."""

    background: Floats
    term_weights: Floats
    feature_weights: Floats
    class_weights: ClassWeights
    calibrator: Calibrator
    rare: RareTerms
    touched: NDArray[np.bool_]
    score: AdditiveScore
    index: ScoreIndex
    recent: Recent | None = None

    @cached_property
    def document_weights(self) -> Floats:
        """What a document's term frequencies are multiplied by."""
        corpus = self.current_corpus if self.recent is None else self.recent.corpus
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
            model: LongTailModel = self._fitted()
            check_same_kind(y, model.classes)
            check_known(y, model.classes)
            rows, numbers = CountRows.from_matrix(X), np.searchsorted(model.classes, y)
            _ = model.statistics - self._sum(rows, y, model.classes)  # refuses strangers
            model = self._derive(
                replace(
                    model,
                    corpus=model.statistics.corpus,
                    background=background_shares(model.statistics),
                    rare=RareTerms.of(model.statistics),
                )
            )
            if len(model.classes) > 1:  # a class alone has nothing to be told from
                documents = self._weigh(rows, model)
                near_misses = self._mine(documents, numbers, model)
                learned = self._learn_class_weights(
                    documents, near_misses, model, classes=model.touched
                )
                weights = model.class_weights.replace_classes(learned, model.touched)
                model = replace(model, class_weights=weights)
            self._model = replace(model, touched=np.zeros_like(model.touched))
        return self

    def _check_parameters(self) -> None:
        cap_candidates(self.candidates, 2)
        check_positive("C", self.C)

    # ---- fit

    def _fit_model(
        self, rows: CountRows, numbers: Integers, classes: NDArray[Any]
    ) -> LongTailModel:
        seed, n_classes = draw_seed(self.random_state), len(classes)
        held_out = hold_out(
            numbers, n_classes, min(int(HELD_OUT_SHARE * len(numbers)), MOST_HELD_OUT), seed
        )
        sample = draw_documents(numbers, n_classes, SAMPLED, seed, without=held_out)
        model = self._begin(rows, numbers, classes, sample)
        give_back_memory()
        documents = self._weigh(rows, model)
        near_misses = self._mine(documents, numbers, self._derive(model))
        if len(held_out):
            # Sums are exact: what is subtracted can be added again, so that statistics, score and
            # index are in memory once.
            apart = self._sum_numbered(rows.take(held_out), numbers[held_out], n_classes)
            model = replace(model, statistics=model.statistics - apart)
            give_back_memory()
            calibrator = self._calibrate(documents, near_misses, held_out, self._collapse(model))
            model = replace(model, statistics=model.statistics + apart, calibrator=calibrator)
            del apart
        model = self._collapse(model)
        give_back_memory()
        class_weights = self._learn_class_weights(documents, near_misses, model)
        return self._index(replace(model, class_weights=class_weights))

    def _begin(
        self, rows: CountRows, numbers: Integers, classes: NDArray[Any], sample: Integers
    ) -> LongTailModel:
        """Sum the documents and learn the shared score; derived parts and corrections are left."""
        statistics = self._sum_numbered(rows, numbers, len(classes))
        background = background_shares(statistics)
        term_weights, feature_weights = self._learn_score(
            rows, numbers, Profile.of(statistics, statistics.corpus, background), sample
        )
        return LongTailModel(
            classes=classes,
            statistics=statistics,
            corpus=statistics.corpus,
            current_corpus=statistics.corpus,
            background=background,
            term_weights=term_weights,
            feature_weights=feature_weights,
            class_weights=ClassWeights.none(len(classes)),
            calibrator=Calibrator.identity(),
            rare=RareTerms.of(statistics),
            touched=np.zeros(len(classes), np.bool_),
            score=None,  # type: ignore[arg-type]
            index=None,  # type: ignore[arg-type]
        )

    def _sum_numbered(self, rows: CountRows, numbers: Integers, n_classes: int) -> ClassStatistics:
        """Sum documents by class number."""
        return ClassStatistics.from_counts(
            rows, numbers, n_classes, sublinear=self._sublinear, n_jobs=self.n_jobs
        )

    def _learn_score(
        self, rows: CountRows, numbers: Integers, profile: Profile, sample: Integers
    ) -> tuple[Floats, Floats]:
        """Learn term and feature weights on the sample, each document left out of its class."""
        idf = profile.corpus.idf
        documents = weigh_documents(rows, idf, self.n_jobs)
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
        documents = weigh_documents(rows, idf * term_weights, self.n_jobs)
        feature_weights = self._learn_feature_weights(documents, lists, profile)
        # Once more with the candidates that the score itself draws, as prediction will.
        lists = self._draw_lists(documents, sample[:LISTED], numbers, profile, feature_weights)
        return term_weights, self._learn_feature_weights(documents, lists, profile)

    def _draw_lists(
        self,
        documents: WeightedRows,
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
        score = collapse_score(profile, feature_weights, self.n_jobs)
        classes = self._find_rivals(
            documents,
            sample,
            own,
            score,
            index_score(score, profile.statistics.n_terms, self.n_jobs),
            RareTerms.of(profile.statistics),
            FIRST_CANDIDATES,
        )
        rivals = np.ascontiguousarray(classes[:, 1:])
        scores = pair_scores(documents, rivals, score, self.n_jobs, chosen=sample)
        left_out = own_scores(documents, own, profile, feature_weights, self.n_jobs, chosen=sample)
        reached = left_out >= scores.min(axis=1)
        return _Lists(sample[reached], classes[reached], own[reached])

    def _learn_feature_weights(
        self, documents: WeightedRows, lists: _Lists, profile: Profile
    ) -> Floats:
        """Learn the six weights, or keep the defaults where there is nothing to learn from."""
        if len(lists.documents) < FEWEST_LISTED:
            return DEFAULT_FEATURE_WEIGHTS
        first = lists.take(slice(LISTED))
        features = score_features(documents, *first, profile, self.n_jobs)
        return learn_listwise(features, bounds=FEATURE_WEIGHT_BOUNDS)

    def _learn_term_weights(
        self, rows: CountRows, sample: Integers, contributions_of: Any
    ) -> Floats:
        """Learn the factor of each term."""
        return learn_term_weights(rows, sample, contributions_of)

    def _mine(
        self, documents: WeightedRows, numbers: Integers, model: LongTailModel
    ) -> NDArray[Any]:
        """Return every document's own class and its candidates, shape (n_documents, 1 + q)."""
        n_candidates = cap_candidates(self.candidates, len(model.classes))
        every = np.arange(len(numbers))
        return self._find_rivals(
            documents, every, numbers, model.score, model.index, model.rare, n_candidates
        )

    def _find_rivals(
        self,
        documents: WeightedRows,
        chosen: Integers,
        own: Integers,
        score: AdditiveScore,
        index: ScoreIndex,
        rare: RareTerms,
        n_rivals: int,
    ) -> NDArray[Any]:
        """Return the chosen documents' own classes, in column 0, and the highest-scored others."""
        n_classes = len(score.constants)
        n_rivals = min(n_rivals, n_classes - 1)
        classes = np.empty((len(chosen), 1 + n_rivals), index_dtype(n_classes))
        classes[:, 0] = own
        for start in range(0, len(chosen), MINED_AT_ONCE):
            part = slice(start, start + MINED_AT_ONCE)
            classes[part, 1:], _ = find_highest(
                documents,
                score,
                index,
                n_rivals,
                chosen=chosen[part],
                own=own[part],
                rare=rare,
                n_jobs=self.n_jobs,
            )
        return classes

    def _score(
        self,
        documents: WeightedRows,
        near_misses: NDArray[Any],
        model: LongTailModel,
        profile: Profile,
    ) -> Floats:
        """Score documents for their own class, without themselves, and for its rivals."""
        scores = pair_scores(documents, near_misses, model.score, self.n_jobs)
        scores[:, 0] = own_scores(
            documents, near_misses[:, 0], profile, model.feature_weights, self.n_jobs
        )
        return scores

    def _learn_class_weights(
        self,
        documents: WeightedRows,
        near_misses: NDArray[Any],
        model: LongTailModel,
        *,
        classes: NDArray[np.bool_] | None = None,
        used: NDArray[np.bool_] | None = None,
    ) -> ClassWeights:
        """Learn the correction of each class, or of some, on all documents, or on some."""
        profile = self._profile(model)  # once for all parts: it looks at every class
        return learn_class_weights(
            documents,
            near_misses,
            lambda part: self._score(documents.part(part), near_misses[part], model, profile),
            len(model.classes),
            self.C,
            chosen=classes,
            used=used,
            n_jobs=self.n_jobs,
        )

    def _calibrate(
        self,
        documents: WeightedRows,
        near_misses: NDArray[Any],
        held_out: Integers,
        model: LongTailModel,
    ) -> Calibrator:
        """Learn the corrections without the documents held out, and see how these then fare.

        The statistics of the model lack them as well, so they are as new as a test document; only
        the candidates of the others are those found before.
        """
        used = np.ones(len(near_misses), np.bool_)
        used[held_out] = False
        candidates, _ = find_highest(
            documents,
            model.score,
            index_score(model.score, model.statistics.n_terms, self.n_jobs),
            cap_candidates(self.candidates, len(model.classes)),
            chosen=held_out,
            rare=model.rare,
            n_jobs=self.n_jobs,
        )
        class_weights = self._learn_class_weights(documents, near_misses, model, used=used)
        give_back_memory()
        scores = self._score_fully(documents.take(held_out), candidates, model.score, class_weights)
        ranked, scores = rank_pairs(candidates, scores, candidates.shape[1], self.n_jobs)
        return fit_calibrator(scores, ranked == near_misses[held_out, :1])

    # ---- from parts to predictions

    def _weigh(self, rows: CountRows, model: LongTailModel) -> WeightedRows:
        """Weigh documents as the model's score expects them."""
        return weigh_documents(rows, model.document_weights, self.n_jobs)

    def _profile(self, model: LongTailModel) -> Profile:
        """Return what the score needs of the model's classes."""
        return Profile.of(model.statistics, model.current_corpus, model.background)

    def _derive(self, model: LongTailModel) -> LongTailModel:
        """Bring everything that follows from the statistics up to date."""
        return self._index(self._collapse(model))

    def _collapse(self, model: LongTailModel) -> LongTailModel:
        """Bring the score up to date; the index stays as it is."""
        current = current_corpus(model.corpus, model.statistics)
        model = replace(model, current_corpus=current)
        score = collapse_score(self._profile(model), model.feature_weights, self.n_jobs)
        return replace(model, score=score)

    def _index(self, model: LongTailModel) -> LongTailModel:
        """Index the score."""
        index = index_score(model.score, model.statistics.n_terms, self.n_jobs)
        return replace(model, index=index)

    def _with_statistics(
        self,
        classes: NDArray[Any],
        statistics: ClassStatistics,
        sources: Integers,
        changed: NDArray[np.bool_],
    ) -> LongTailModel:
        model: LongTailModel = self._fitted()
        return self._derive(
            replace(
                model,
                classes=classes,
                statistics=statistics,
                class_weights=model.class_weights.take_classes(sources),
                touched=changed | ((sources >= 0) & model.touched[sources]),
            )
        )

    # ---- teaching: changed classes are kept apart until there are many

    def _labels(self, model: LongTailModel) -> NDArray[Any]:
        return model.classes if model.recent is None else model.recent.everyone

    def _change(self, rows: CountRows, y: NDArray[Any], sign: int) -> LongTailModel:
        model: LongTailModel = self._latest()
        labels = np.unique(y)
        n_recent = 0 if model.recent is None else len(model.recent.classes)
        if n_recent + len(labels) > MOST_RECENT:
            changed: LongTailModel = super()._change(rows, y, sign)
            return changed
        recent = change_classes(
            model,
            labels,
            lambda labels: self._sum(rows, y, labels),
            sign,
            lambda statistics, corpus: collapse_score(
                Profile.of(statistics, corpus, model.background), model.feature_weights
            ),
        )
        left = model.statistics.class_sizes[~recent.superseded].sum()
        check_documents_left(int(left) + recent.statistics.n_documents)
        index = replace(model.index, passed=np.flatnonzero(recent.superseded))
        return replace(model, recent=recent, index=index)

    def _fitted(self) -> LongTailModel:
        """Return the model with its recent classes settled among the others."""
        model: LongTailModel = self._latest()
        if model.recent is None:
            return model
        with TEACHING:
            model = self._latest()
            if model.recent is not None:
                classes, statistics, class_weights, sources = settle(model)
                self._model = model = self._derive(
                    replace(
                        model,
                        classes=classes,
                        statistics=statistics,
                        class_weights=class_weights,
                        touched=(sources < 0) | model.touched[sources],
                        recent=None,
                    )
                )
        return model

    def _grow_terms(self, n_terms: int) -> None:
        with TEACHING:
            model: LongTailModel = self._latest()
            n_new = n_terms - len(model.term_weights)
            recent = model.recent
            self._model = replace(
                model,
                statistics=model.statistics.grow_terms(n_terms),
                current_corpus=model.current_corpus.grow_terms(n_terms),
                background=np.pad(model.background, (0, n_new)),
                term_weights=np.pad(model.term_weights, (0, n_new), constant_values=1.0),
                rare=model.rare.grow_terms(n_terms),
                index=model.index.grow_terms(n_terms),
                recent=None if recent is None else recent.grow_terms(n_terms),
            )
            self.n_features_in_ = n_terms

    # ---- prediction

    def _rank(self, model: LongTailModel, rows: CountRows, k: int) -> tuple[Integers, Floats]:
        return self._rank_weighted(model, self._weigh(rows, model), k)

    def _rank_weighted(
        self, model: LongTailModel, documents: WeightedRows, k: int
    ) -> tuple[Integers, Floats]:
        """Rank the candidates of weighed documents by score and correction."""
        n_candidates = cap_candidates(self.candidates, len(self._labels(model)))
        k = min(k, n_candidates)
        if model.recent is None:
            return find_best(
                documents,
                model.score,
                model.index,
                n_candidates,
                model.class_weights.as_score,
                k,
                rare=model.rare,
                n_jobs=self.n_jobs,
            )
        candidates, scores = self._find_with_recent(model, documents, n_candidates)
        return rank_pairs(candidates, scores, k, self.n_jobs)

    def _score_fully(
        self,
        documents: WeightedRows,
        classes: NDArray[Any],
        score: AdditiveScore,
        class_weights: ClassWeights,
    ) -> Floats:
        """Return score and correction of each document with each class of its row."""
        scores = pair_scores(documents, classes, score, self.n_jobs)
        scores += pair_scores(documents, classes, class_weights.as_score, self.n_jobs)
        return scores

    def _find_with_recent(
        self, model: LongTailModel, documents: WeightedRows, n_candidates: int
    ) -> tuple[Integers, Floats]:
        """Return candidates among settled and recent classes alike, with corrected scores."""
        recent, n_documents = cast(Recent, model.recent), documents.rows.n_documents
        candidates = np.empty((n_documents, n_candidates), np.int64)
        scores = np.empty((n_documents, n_candidates))
        settled_numbers, recent_numbers = recent.settled_numbers(), recent.recent_numbers()
        n_settled = min(n_candidates, int(np.count_nonzero(~recent.superseded)))
        for start in range(0, n_documents, DOCUMENTS_AT_ONCE):
            part = slice(start, start + DOCUMENTS_AT_ONCE)
            few = documents.take(np.arange(n_documents)[part])
            rare = model.rare.keep(few, np.arange(few.rows.n_documents))
            settled, settled_scores = find_highest(
                rare, model.score, model.index, n_settled, n_jobs=self.n_jobs
            )
            every = np.tile(np.arange(len(recent.classes)), (len(settled), 1))
            found, _ = rank_pairs(
                np.hstack([recent.settled_places[settled], recent.recent_places[every]]),
                np.hstack([settled_scores, pair_scores(rare, every, recent.score, self.n_jobs)]),
                n_candidates,
                self.n_jobs,
            )
            candidates[part] = found
            # A class is in one of the two places; in the other it scores -inf.
            scores[part] = np.maximum(
                self._score_fully(few, settled_numbers[found], model.score, model.class_weights),
                self._score_fully(few, recent_numbers[found], recent.score, recent.class_weights),
            )
        return candidates, scores

    def _take_apart(
        self, model: LongTailModel, rows: CountRows, document: int, number: int
    ) -> ScoreParts:
        documents = self._weigh(rows.take(np.array([document])), model)
        features = score_features(
            documents,
            np.zeros(1, np.int64),
            np.array([[number]]),
            np.full(1, -1),
            self._profile(model),
        )
        return take_additive_apart(
            documents,
            number,
            features[0, 0] * model.feature_weights,
            model.score,
            model.class_weights.as_score,
        )

    # ---- files

    def _pack_learned(self, model: LongTailModel) -> dict[str, NDArray[Any]]:
        arrays = {name: getattr(model, name) for name in _ARRAYS}
        arrays |= {"rare/counts": model.rare.counts}
        arrays |= {"rare/most_postings": np.array([model.rare.most_postings])}
        for part, names in _PARTS.items():
            arrays |= {f"{part}/{name}": getattr(getattr(model, part), name) for name in names}
        return arrays

    def _unpack_learned(self, file: ModelFile, parts: Model) -> LongTailModel:
        def unpack(part: str) -> dict[str, Any]:
            return {name: file.array(f"{part}/{name}") for name in _PARTS[part]}

        score = AdditiveScore(
            indptr=parts.statistics.indptr, indices=parts.statistics.indices, **unpack("score")
        )
        if "index/words" in file.arrays:
            index = ScoreIndex(**unpack("index"))
        else:  # an older file has another index, so it is made anew
            index = index_score(score, parts.statistics.n_terms)
        if "rare/counts" in file.arrays:
            rare = RareTerms(file.array("rare/counts"), int(file.array("rare/most_postings")[0]))
        else:
            rare = RareTerms.of(parts.statistics)
        return LongTailModel(
            classes=parts.classes,
            statistics=parts.statistics,
            corpus=parts.corpus,
            current_corpus=parts.current_corpus,
            background=file.array("background"),
            term_weights=file.array("term_weights"),
            feature_weights=file.array("feature_weights"),
            touched=file.array("touched"),
            class_weights=ClassWeights(**unpack("class_weights")),
            calibrator=Calibrator(**unpack("calibrator")),
            rare=rare,
            score=score,
            index=index,
        )

    def _validate_learned(self, model: LongTailModel) -> None:
        if len(model.score.values) != len(model.statistics.indices):
            raise ValueError("a score does not fit its classes and terms.")
        model.index.validate(model.statistics.n_terms)
        if len(model.rare.counts) != model.statistics.n_terms:
            raise ValueError("the counts of classes do not fit the terms.")
        model.class_weights.validate(model.statistics.n_classes, model.statistics.n_terms)


_ARRAYS = ("background", "term_weights", "feature_weights", "touched")
_PARTS = {
    "class_weights": ("indptr", "indices", "values", "constants"),
    "calibrator": (
        "top_log_odds",
        "top_probabilities",
        "other_log_odds",
        "other_probabilities",
        "held_out_log_odds",
        "held_out_right",
    ),
    "score": ("values", "slopes", "constants"),
    "index": INDEX_PARTS,
}
