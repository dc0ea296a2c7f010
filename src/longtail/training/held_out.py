"""The model and simpler variants on held-out documents: which to keep, how far to search.

In: documents that the class statistics lack, shared weights, and residuals learned without these
documents. Out: what is kept of them, the `SelfCheck` that says why, and the `Calibrator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from longtail._constants import RESIDUALS
from longtail._labels import LabelSets
from longtail._validation import cap_candidates
from longtail.model.corpus import Corpus
from longtail.model.embeddings import find_centers
from longtail.model.features import (
    CENTROID_FEATURE_WEIGHTS,
    DEFAULT_FEATURE_WEIGHTS,
    score_features,
)
from longtail.model.meaning import Meanings, Table, find_near, mix_meaning
from longtail.model.names import FIRST_NAME_WEIGHTS, ClassNames, add_names
from longtail.model.scorer import LinearScorer, score_pairs
from longtail.model.statistics import ClassStatistics
from longtail.model.weighting import weight_documents, weight_for_residuals
from longtail.retrieval.index import AnyIndex
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import rank_topk, search
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.training.calibration import (
    Calibrator,
    fit_calibrator,
    keep_ranking,
    learn_shortness,
)
from longtail.training.class_rows import LearnedRows, score_learned
from longtail.training.config import FitConfig
from longtail.training.documents import Documents
from longtail.training.expectation import expect_measures
from longtail.training.mixture import (
    N_FEATURES,
    N_PARTS,
    Mixture,
    PairParts,
    add_separators,
    fit_meaning,
    fit_mixture,
    log_sizes,
)
from longtail.training.sampling import Draws
from longtail.training.scored_classes import ScoredClasses
from longtail.training.self_check import (
    BONUSES,
    BONUSES_BY_MEANING,
    Figures,
    SelfCheck,
    choose_bonus,
    choose_budget,
    choose_residuals,
    choose_scorer,
    first_f1,
    gains_by_meaning,
    list_budgets,
    measure_self,
    share_bonus,
)
from longtail.training.shared_weights import SharedWeights
from longtail.training.short_documents import TruncatedDocuments, truncate_documents

# Variants of the scorer, in the order of `SCORERS`, by the scorer that they share: those that
# differ in the weights of terms alone weigh documents otherwise.
VARIANTS_BY_SCORER = ((0,), (1,), (2, 3))
NEVER = 30.0  # how far below all candidates one that is no class scores, as a logarithm of odds


@dataclass(frozen=True, eq=False)
class Candidates:
    """Classes found for documents, best first, shape (n_documents, q)."""

    classes: Integers


@dataclass(frozen=True, eq=False)
class HeldOutCandidates:
    """Candidates of the held-out documents, and of those that are truncated."""

    whole: Integers
    truncated: Integers


@dataclass(frozen=True, eq=False)
class Calibrated:
    """What is kept after the self-check, and the map from scores to probabilities."""

    check: SelfCheck
    calibrator: Calibrator


def make_variant(learned: SharedWeights, row: int) -> SharedWeights:
    """Return a variant of the shared weights: the learned ones, or simpler ones."""
    plain = np.ones_like(learned.term_weights)
    if row == 0:
        return replace(learned, term_weights=plain, feature_weights=CENTROID_FEATURE_WEIGHTS)
    if row == 1:
        return replace(learned, feature_weights=DEFAULT_FEATURE_WEIGHTS)
    return replace(learned, term_weights=plain) if row == 2 else learned


def add_first_texts(
    scorer: LinearScorer, class_texts: ClassNames, statistics: ClassStatistics, n_jobs: int | None
) -> LinearScorer:
    """Add class texts to a scorer, by their weights before any are learned."""
    return add_names(scorer, class_texts, statistics.class_sizes, FIRST_NAME_WEIGHTS)


def select_texts(
    class_texts: ClassNames,
    draws: Draws,
    statistics: ClassStatistics,
    config: FitConfig,
    n_jobs: int | None,
) -> ClassNames:
    """Leave out the texts that do not count for held-out documents, and terms not known without."""
    selected = class_texts.select_classes(draws.texts_count)
    if not config.multilabel:
        return selected
    return selected.select_terms(statistics.corpus.document_frequencies > 0)


def find_checked(
    held_out: Documents,
    shared: SharedWeights,
    corpus: Corpus,
    scorer: LinearScorer,
    index: AnyIndex,
    pruning: QueryPruning | None,
    config: FitConfig,
    n_jobs: int | None,
) -> Candidates:
    """Return the candidates of the held-out documents on which variants are compared."""
    counts = held_out.counts.slice(slice(config.max_checked))
    return Candidates(
        _find(counts, shared, corpus, scorer, index, pruning, replace(config, n_jobs=n_jobs))
    )


def _find(
    counts: CountMatrix,
    shared: SharedWeights,
    corpus: Corpus,
    scorer: LinearScorer,
    index: AnyIndex,
    pruning: QueryPruning | None,
    config: FitConfig,
) -> Integers:
    documents = weight_documents(counts, corpus.idf * shared.term_weights, config.n_jobs)
    n_candidates = cap_candidates(config.candidates, len(scorer.biases))
    found, _ = search(documents, scorer, index, n_candidates, pruning=pruning, n_jobs=config.n_jobs)
    return found


def compare_variants(
    held_out: Documents,
    found: Sequence[Candidates],
    statistics: ClassStatistics,
    config: FitConfig,
    n_jobs: int | None,
) -> SelfCheck:
    """Choose among the variants of the scorer by what each has found."""
    figures = _measure(held_out, found, statistics, config)
    return SelfCheck(
        scorer_figures=np.array([entry.row for entry in figures]), scorer=choose_scorer(figures)
    )


def compare_budgets(
    held_out: Documents,
    found: Sequence[Candidates],
    statistics: ClassStatistics,
    check: SelfCheck,
    config: FitConfig,
    n_jobs: int | None,
) -> SelfCheck:
    """Choose the posting budget by what each of them, and then the whole query, has found."""
    recalls = [entry.recall for entry in _measure(held_out, found, statistics, config)]
    # With several labels a pruned query may find more than the whole one.
    best = max(recalls) if config.multilabel else recalls[-1]
    return replace(
        check,
        recalls=np.array(recalls),
        postings_per_class=choose_budget(
            list_budgets(statistics.n_classes, config), recalls[:-1], best
        ),
    )


def _measure(
    held_out: Documents,
    found: Sequence[Candidates],
    statistics: ClassStatistics,
    config: FitConfig,
) -> list[Figures]:
    """Measure the documents on which variants are compared."""
    labels = held_out.labels.slice(slice(config.max_checked))
    return [measure_self(labels, entry.classes, statistics.class_sizes) for entry in found]


def find_candidates(
    held_out: Documents,
    shared: SharedWeights,
    corpus: Corpus,
    scorer: LinearScorer,
    index: AnyIndex,
    pruning: QueryPruning,
    config: FitConfig,
    n_jobs: int | None,
) -> HeldOutCandidates:
    """Return the candidates of each held-out document, and of those that are truncated."""
    config = replace(config, n_jobs=n_jobs)
    truncated = truncate_documents(held_out.counts, config.seed)
    given = shared, corpus, scorer, index, pruning, config
    return HeldOutCandidates(_find(held_out.counts, *given), _find(truncated.counts, *given))


@dataclass(frozen=True, eq=False)
class HeldOutTest:
    """The held-out documents, and classes that lack them.

    `scorer` finds candidates: `scored`, or with class texts their sum.
    """

    documents: Documents
    scored: ScoredClasses
    scorer: LinearScorer
    learned: Sequence[LearnedRows]  # of class shards
    shared: SharedWeights
    class_texts: ClassNames | None
    texts_count: NDArray[np.bool_]
    config: FitConfig

    @property
    def class_sizes(self) -> Integers:
        """Documents of each class, without the held-out ones."""
        return self.scored.profile.statistics.class_sizes

    def split(self, counts: CountMatrix, candidates: Integers) -> CandidateParts:
        """Split the scores of documents with their candidates into parts."""
        return CandidateParts(candidates, _split_scores(self, counts, candidates), self.config)

    def add_meaning(
        self, meanings: Meanings, counts: CountMatrix, given: CandidateParts
    ) -> CandidateParts:
        """Add what embeddings say of candidates, and the candidates that are found by meaning."""
        assert counts.embeddings is not None
        n_jobs, candidates, parts = self.config.n_jobs, given.candidates, given.parts
        table = Table(meanings, np.arange(len(self.class_sizes)))
        is_known = np.ones(counts.n_documents, np.bool_)
        [near] = find_near([table], counts.embeddings, candidates, is_known, n_jobs=n_jobs)
        if near.shape[1]:
            candidates = np.concatenate([candidates, near.astype(candidates.dtype)], axis=1)
            missing = candidates < 0
            parts = _split_scores(self, counts, np.where(missing, 0, candidates))
            # What is no class is never ranked, and hardly counts where something is learned.
            parts.scores[missing] = parts.scores.min() - NEVER
            parts.values[missing] = 0.0
        meaning = meanings.split(counts.embeddings, candidates, n_jobs)
        return CandidateParts(candidates, parts, self.config, meaning)


def calibrate_held_out(
    held_out: Documents,
    candidates: HeldOutCandidates,
    scored: ScoredClasses,
    scorer: LinearScorer,
    learned: Sequence[LearnedRows],
    shared: SharedWeights,
    class_texts: ClassNames | None,
    draws: Draws,
    check: SelfCheck,
    config: FitConfig,
    n_jobs: int | None,
) -> Calibrated:
    """Learn on the held-out documents how much each part of the score counts; then calibrate.

    Residuals and separators are learned without them, on hard negatives that were mined without
    them as well: a class that still had them would draw documents like them as negatives, and its
    residual would count against them.
    """
    config = replace(config, n_jobs=n_jobs)
    test = HeldOutTest(
        held_out, scored, scorer, learned, shared, class_texts, draws.texts_count, config
    )
    truncated = truncate_documents(held_out.counts, config.seed)
    return _choose_mixture(
        test,
        test.split(held_out.counts, candidates.whole),
        truncated,
        test.split(truncated.counts, candidates.truncated),
        check,
    )


@dataclass(frozen=True, eq=False)
class CandidateParts:
    """Candidates of documents, and what their scores consist of."""

    candidates: Integers
    parts: PairParts
    config: FitConfig
    meaning: Floats | None = None

    def rank(self, mixture: Mixture, meaning: Floats | None = None) -> tuple[Integers, Floats]:
        """Return the candidates by their mixed scores, best first."""
        scores, n_candidates = mixture.mix(self.parts), self.candidates.shape[1]
        if meaning is not None and self.meaning is not None:
            scores += mix_meaning(self.meaning, meaning, self.parts.log_sizes)
        classes, scores = rank_topk(self.candidates, scores, n_candidates, self.config.n_jobs)
        missing = classes < 0
        if missing.any():  # what calibrates takes finite scores
            scores[missing] = scores[~missing].min() - NEVER
        return classes, scores

    def learn_meaning(self, mixture: Mixture, labels: LabelSets) -> Floats | None:
        """Learn what meaning counts beside a mixture."""
        assert self.meaning is not None
        return fit_meaning(
            mixture.mix(self.parts),
            self.meaning,
            self.parts.log_sizes,
            labels.contain(self.candidates) & (self.candidates >= 0),
            self.candidates,
            by_size=self.config.by_size,
        )


def _split_scores(test: HeldOutTest, counts: CountMatrix, candidates: Integers) -> PairParts:
    """Return what the scores of documents with their candidates consist of."""
    config, learned, profile = test.config, test.learned, test.scored.profile
    n_jobs, class_texts = config.n_jobs, test.class_texts
    documents = weight_for_residuals(
        counts, profile.corpus.idf, test.shared.term_weights, config.multilabel, n_jobs
    )
    features = score_features(
        documents,
        np.arange(len(candidates)),
        candidates,
        np.full(len(candidates), -1),
        profile,
        n_jobs,
    )
    values = np.empty((*candidates.shape, N_PARTS + (0 if class_texts is None else 2)))
    values[:, :, :N_FEATURES] = features
    values[:, :, N_FEATURES:N_PARTS] = score_learned(learned, documents, candidates, n_jobs)
    if class_texts is not None:
        values[:, :, N_PARTS] = score_pairs(documents, candidates, class_texts.matches, n_jobs)
        is_empty = class_texts.named & (test.class_sizes == 0)
        values[:, :, N_PARTS + 1] = is_empty[candidates]
    scores = score_pairs(documents, candidates, test.scorer, n_jobs)
    return PairParts(scores, values, log_sizes(test.class_sizes)[candidates])


def _count_empty(test: HeldOutTest) -> tuple[int, int]:
    """Return how many classes are known by their text alone, and how many texts do not count."""
    if test.class_texts is None:
        return 0, 0
    is_empty = test.class_texts.named & (test.class_sizes == 0)
    return int(np.count_nonzero(is_empty)), int(np.count_nonzero(~test.texts_count))


def _choose_mixture(
    test: HeldOutTest,
    whole: CandidateParts,
    truncated: TruncatedDocuments,
    of_truncated: CandidateParts,
    check: SelfCheck,
) -> Calibrated:
    """Keep the mixture of scorer and residuals that fares best, and calibrate its scores."""
    config, candidates, labels = test.config, whole.candidates, test.documents.labels
    lengths = np.diff(test.documents.counts.indptr)
    given = whole.parts, labels.contain(candidates), candidates
    learned = fit_mixture(*given, by_size=config.by_size)
    mixtures = (
        Mixture.without_residuals(),
        Mixture(),
        learned,
        add_separators(learned, *given, by_size=config.by_size),
    )

    def measure(classes: Integers) -> Figures:
        return measure_self(labels, classes, test.class_sizes)

    n_held_out, n_empty = _count_empty(test)

    def raise_bonus(
        mixture: Mixture,
        given: CandidateParts,
        bonuses: Sequence[float],
        meaning: Floats | None = None,
    ) -> Mixture:
        raised = [mixture.raise_bonus(more) for more in bonuses]
        figures = [first_f1(labels, given.rank(other, meaning)[0]) for other in raised]
        all_compete = config.multilabel and n_empty == 0
        return mixture.raise_bonus(choose_bonus(figures, bonuses, all_compete=all_compete))

    ranked = [whole.rank(mixture) for mixture in mixtures]
    figures = [measure(classes) for classes, _ in ranked]
    kept = RESIDUALS.index("as learned")
    if config.self_check:
        kept = choose_residuals(figures, multilabel=config.multilabel)
    mixture, (classes, scores) = mixtures[kept], ranked[kept]
    if n_held_out:
        mixture = raise_bonus(mixture, whole, BONUSES)
        classes, scores = whole.rank(mixture)
        figures[kept] = measure(classes)
    meaning = None
    counts = test.documents.counts
    if counts.embeddings is not None:
        statistics, texts = test.scored.profile.statistics, test.class_texts
        if texts is not None and texts.embeddings is not None:
            assert statistics.embedding_sums is not None
            sums = statistics.embedding_sums, statistics.class_sizes
            check = replace(check, meaning_centers=find_centers(*sums, texts.embeddings))
        meanings = Meanings.of(statistics, texts, check.meaning_centers)
        by_meaning = test.add_meaning(meanings, counts, whole)
        meaning = by_meaning.learn_meaning(mixture, labels)
    if meaning is not None:
        ranked_by_meaning = by_meaning.rank(mixture, meaning)
        with_meaning = measure(ranked_by_meaning[0])
        if gains_by_meaning(figures[kept], with_meaning):
            check = replace(check, meaning=meaning)
            if n_held_out:  # a class is told from the others by its name alone now
                mixture = raise_bonus(mixture, by_meaning, BONUSES_BY_MEANING, meaning)
                ranked_by_meaning = by_meaning.rank(mixture, meaning)
                with_meaning = measure(ranked_by_meaning[0])
            classes, scores = ranked_by_meaning
            of_truncated = test.add_meaning(meanings, truncated.counts, of_truncated)
        check = replace(check, meaning_figures=np.array([figures[kept].row, with_meaning.row]))
    checked = replace(
        check.with_mixture(
            mixture.raise_bonus(share_bonus(n_held_out, n_empty)) if n_held_out else mixture
        ),
        residual_figures=np.array([entry.row for entry in figures]),
        residuals=kept,
    )
    calibrator = fit_calibrator(scores, labels.contain(classes), config.multilabel)
    short_classes, short_scores = of_truncated.rank(mixture, meaning)
    calibrator = learn_shortness(
        calibrator,
        lengths,
        short_scores,
        labels.gather(truncated.document_ids).contain(short_classes),
        np.diff(truncated.counts.indptr),
    )
    if not config.multilabel:
        n_classes = len(test.class_sizes)
        calibrator = keep_ranking(calibrator, classes, scores, labels.class_ids, n_classes)
    expected = expect_measures(
        labels,
        classes,
        scores,
        lengths,
        calibrator,
        test.class_sizes,
        checked.term_weight_gains,
    )
    return Calibrated(replace(checked, expected=expected), calibrator)
