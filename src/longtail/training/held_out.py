"""The model and simpler variants on held-out documents: which to keep, how far to search.

In: documents that the class statistics lack, shared weights, and residuals learned without these
documents. Out: what is kept of them, the `SelfCheck` that says why, and the `Calibrator`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from longtail._caching import cached_property
from longtail._constants import RESIDUALS
from longtail._labels import LabelSets
from longtail._validation import cap_candidates
from longtail.retrieval.index import AnyIndex, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import rank_topk, search
from longtail.scoring.features import (
    CENTROID_FEATURE_WEIGHTS,
    DEFAULT_FEATURE_WEIGHTS,
    score_features,
)
from longtail.scoring.linear import LinearScorer, score_pairs
from longtail.scoring.names import FIRST_NAME_WEIGHTS, ClassNames, add_names
from longtail.scoring.weighting import Profile, weight_documents, weight_for_residuals
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus
from longtail.training.calibration import Calibrator, fit_calibrator, learn_shortness
from longtail.training.config import FitConfig
from longtail.training.expectation import expect_measures
from longtail.training.mixture import (
    N_FEATURES,
    N_PARTS,
    SEPARATOR,
    Mixture,
    PairParts,
    add_separators,
    fit_mixture,
    log_sizes,
)
from longtail.training.scored_classes import LearnedRows, ScoredClasses
from longtail.training.self_check import (
    BONUSES,
    BUDGETS,
    Figures,
    SelfCheck,
    choose_bonus,
    choose_budget,
    choose_residuals,
    choose_scorer,
    first_f1,
    measure_self,
    share_bonus,
)
from longtail.training.shared_weights import SharedWeights
from longtail.training.short_documents import TruncatedDocuments, truncate_documents


@dataclass(frozen=True, eq=False)
class HeldOutTest:
    """The held-out documents with their labels, and statistics that lack them.

    Classes that have no document at all have no name here: they are no held-out document's label,
    and if they were found, those that are known by name alone would seem to be seldom right.
    """

    counts: CountMatrix
    labels: LabelSets
    statistics: ClassStatistics
    corpus: Corpus
    config: FitConfig
    multilabel: bool = False  # whether any document, held out or not, has several labels
    names: ClassNames | None = None

    @cached_property
    def truncated(self) -> TruncatedDocuments:
        """Copies of the first documents with some of their terms."""
        return truncate_documents(self.counts, self.config.seed)

    @property
    def n_candidates(self) -> int:
        """How many classes are found for each document."""
        return cap_candidates(self.config.candidates, self.statistics.n_classes)

    def add_names(self, scorer: LinearScorer) -> LinearScorer:
        """Return the scorer of documents and names, before the weights of names are learned."""
        return add_names(scorer, self.names, self.statistics.class_sizes, FIRST_NAME_WEIGHTS)


def check_scorers(test: HeldOutTest, learned: SharedWeights) -> tuple[SharedWeights, SelfCheck]:
    """Compare the learned scorer with simpler ones; find the posting budget of the one to keep."""
    config, checked = test.config, slice(test.config.max_checked)
    counts, labels = test.counts.slice(checked), test.labels.slice(checked)
    if not config.self_check:
        return learned, SelfCheck()
    plain = np.ones_like(learned.term_weights)
    selves = (
        replace(learned, term_weights=plain, feature_weights=CENTROID_FEATURE_WEIGHTS),
        replace(learned, feature_weights=DEFAULT_FEATURE_WEIGHTS),
        replace(learned, term_weights=plain),
        learned,
    )

    def find(shared: SharedWeights, budgets: tuple[int | None, ...]) -> list[Figures]:
        scorer = ScoredClasses.of(test.statistics, test.corpus, shared, config.n_jobs).scorer
        if len(budgets) > 1:  # candidates are found by names as well
            scorer = test.add_names(scorer)
        index = build_index(scorer, test.statistics.n_terms, config.n_jobs)
        documents = weight_documents(counts, test.corpus.idf * shared.term_weights, config.n_jobs)
        figures = []
        for budget in budgets:
            pruning = None if budget is None else QueryPruning.of(test.statistics, budget)
            found, _ = search(
                documents,
                scorer,
                index,
                test.n_candidates,
                pruning=pruning,
                n_jobs=config.n_jobs,
            )
            figures.append(measure_self(labels, found, test.statistics.class_sizes))
        return figures

    figures = [find(shared, (None,))[0] for shared in selves]
    kept = choose_scorer(figures)
    budgets = BUDGETS if test.names is None else (*BUDGETS, None)
    recalls = [entry.recall for entry in find(selves[kept], budgets)]
    whole = figures[kept].recall if test.names is None else recalls.pop()
    return selves[kept], SelfCheck(
        scorer_figures=np.array([entry.row for entry in figures]),
        recalls=np.array([*recalls, whole]),
        scorer=kept,
        # With several labels a pruned query may find more than the whole one.
        postings_per_class=choose_budget(
            recalls, max([whole, *(recalls if test.multilabel else [])])
        ),
    )


def find_candidates(
    test: HeldOutTest,
    shared: SharedWeights,
    scored: ScoredClasses,
    index: AnyIndex,
    pruning: QueryPruning,
) -> Integers:
    """Return the candidates of each held-out document, best first, by names as well.

    Those of the documents that are truncated to some of their terms follow.
    """
    n_jobs = test.config.n_jobs
    scorer = test.add_names(scored.scorer)
    if test.names is not None:
        index = build_index(scorer, test.statistics.n_terms, n_jobs)

    def find(counts: CountMatrix) -> Integers:
        documents = weight_documents(counts, test.corpus.idf * shared.term_weights, n_jobs)
        found, _ = search(
            documents, scorer, index, test.n_candidates, pruning=pruning, n_jobs=n_jobs
        )
        return found

    return np.concatenate([find(test.counts), find(test.truncated.counts)])


def check_residuals(
    test: HeldOutTest,
    candidates: Integers,
    shared: SharedWeights,
    scorer: LinearScorer,
    learned: LearnedRows,
    check: SelfCheck,
) -> tuple[SelfCheck, Calibrator]:
    """Learn on the held-out documents how much each part of the score counts; then calibrate.

    Residuals and separators are learned without them, on hard negatives that were mined without
    them as well: a class that still had them would draw documents like them as negatives, and its
    residual would count against them.
    """

    def split(counts: CountMatrix, found: Integers) -> CandidateParts:
        return CandidateParts(
            found, _split_scores(test, counts, found, shared, scorer, learned), test.config.n_jobs
        )

    n_documents = test.counts.n_documents
    whole = split(test.counts, candidates[:n_documents])
    return _choose_mixture(
        whole, split(test.truncated.counts, candidates[n_documents:]), check, test
    )


@dataclass(frozen=True, eq=False)
class CandidateParts:
    """Candidates of documents, and what their scores consist of."""

    candidates: Integers
    parts: PairParts
    n_jobs: int | None

    def rank(self, mixture: Mixture) -> tuple[Integers, Floats]:
        """Return the candidates by their mixed scores, best first."""
        scores, n_candidates = mixture.mix(self.parts), self.candidates.shape[1]
        return rank_topk(self.candidates, scores, n_candidates, self.n_jobs)


def _split_scores(
    test: HeldOutTest,
    counts: CountMatrix,
    candidates: Integers,
    shared: SharedWeights,
    scorer: LinearScorer,
    learned: LearnedRows,
) -> PairParts:
    """Return what the scores of documents with their candidates consist of."""
    n_jobs, residuals = test.config.n_jobs, learned.residuals
    documents = weight_for_residuals(
        counts, test.corpus.idf, shared.term_weights, test.multilabel, n_jobs
    )
    inputs = replace(documents, weights=documents.residual_inputs)
    biases = residuals.biases[candidates]
    features = score_features(
        documents,
        np.arange(len(candidates)),
        candidates,
        np.full(len(candidates), -1),
        Profile.of(test.statistics, test.corpus, shared.collection_model),
        n_jobs,
    )
    values = np.empty((*candidates.shape, N_PARTS + (0 if test.names is None else 2)))
    values[:, :, :N_FEATURES] = features
    with_bias = score_pairs(inputs, candidates, residuals.as_scorer, n_jobs)
    values[:, :, N_FEATURES], values[:, :, N_FEATURES + 1] = with_bias - biases, biases
    values[:, :, SEPARATOR:N_PARTS] = 0.0
    if learned.separators is not None:
        with_bias = score_pairs(inputs, candidates, learned.separators.as_scorer, n_jobs)
        biases = learned.separators.biases[candidates]
        values[:, :, SEPARATOR], values[:, :, SEPARATOR + 1] = with_bias - biases, biases
    if test.names is not None:
        values[:, :, N_PARTS] = score_pairs(documents, candidates, test.names.matches, n_jobs)
        is_empty = test.names.named & (test.statistics.class_sizes == 0)
        values[:, :, N_PARTS + 1] = is_empty[candidates]
    scores = score_pairs(documents, candidates, test.add_names(scorer), n_jobs)
    return PairParts(scores, values, log_sizes(test.statistics.class_sizes)[candidates])


def _count_empty(test: HeldOutTest) -> tuple[int, int]:
    """Return how many classes were held out whole, and how many have no document at all."""
    if test.names is None:
        return 0, 0
    is_empty = test.statistics.class_sizes == 0
    n_held_out = int(np.count_nonzero(is_empty & test.names.named))
    return n_held_out, int(np.count_nonzero(is_empty)) - n_held_out


def _choose_mixture(
    whole: CandidateParts, truncated: CandidateParts, check: SelfCheck, test: HeldOutTest
) -> tuple[SelfCheck, Calibrator]:
    """Keep the mixture of scorer and residuals that fares best, and calibrate its scores."""
    config, candidates = test.config, whole.candidates
    correct = test.labels.contain(candidates)
    given = whole.parts, correct, candidates
    learned = fit_mixture(*given, by_size=config.by_size)
    mixtures = (
        Mixture.without_residuals(),
        Mixture(),
        learned,
        add_separators(learned, *given, by_size=config.by_size),
    )

    def measure(classes: Integers) -> Figures:
        return measure_self(test.labels, classes, test.statistics.class_sizes)

    ranked = [whole.rank(mixture) for mixture in mixtures]
    figures = [measure(classes) for classes, _ in ranked]
    kept = choose_residuals(figures) if config.self_check else RESIDUALS.index("as learned")
    mixture, (classes, scores) = mixtures[kept], ranked[kept]
    n_held_out, n_empty = _count_empty(test)
    if n_held_out:
        raised = [mixture.raise_bonus(more) for more in BONUSES]
        bonus = choose_bonus([first_f1(test.labels, whole.rank(m)[0]) for m in raised])
        mixture = mixture.raise_bonus(bonus)
        classes, scores = whole.rank(mixture)
        figures[kept] = measure(classes)
    checked = replace(
        check.with_mixture(
            mixture.raise_bonus(share_bonus(n_held_out, n_empty)) if n_held_out else mixture
        ),
        residual_figures=np.array([entry.row for entry in figures]),
        residuals=kept,
    )
    calibrator = fit_calibrator(scores, test.labels.contain(classes), test.multilabel)
    calibrator = _learn_shortness(calibrator, *truncated.rank(mixture), test)
    expected = expect_measures(
        test.labels,
        classes,
        scores,
        np.diff(test.counts.indptr),
        calibrator,
        test.statistics.class_sizes,
        checked.term_weight_gains,
    )
    return replace(checked, expected=expected), calibrator


def _learn_shortness(
    calibrator: Calibrator, classes: Integers, scores: Floats, test: HeldOutTest
) -> Calibrator:
    """Return the calibrator with what the ranked candidates of truncated documents have shown."""
    return learn_shortness(
        calibrator,
        np.diff(test.counts.indptr),
        scores,
        test.labels.gather(test.truncated.document_ids).contain(classes),
        np.diff(test.truncated.counts.indptr),
    )
