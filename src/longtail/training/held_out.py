"""The model and its simpler selves on held-out documents: which to keep, how far to search.

In: documents that the class statistics lack, and shared weights. Out: what is kept of them, the
`SelfCheck` that says why, and the `Calibrator`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from longtail._parallel import release_memory
from longtail._validation import cap_candidates
from longtail.retrieval.pruning import QueryPruning
from longtail.retrieval.search import rank_topk, search
from longtail.scoring.features import CENTROID_FEATURE_WEIGHTS, DEFAULT_FEATURE_WEIGHTS
from longtail.scoring.linear import score_pairs
from longtail.scoring.weighting import weight_documents
from longtail.sparse import CountMatrix, Floats, Integers
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus
from longtail.training.calibration import Calibrator, fit_calibrator
from longtail.training.config import FitConfig
from longtail.training.scored_classes import ScoredClasses, learn_residuals, mine_all
from longtail.training.self_check import (
    BUDGETS,
    RESIDUALS,
    Figures,
    Mixture,
    SelfCheck,
    choose_budget,
    choose_residuals,
    choose_scorer,
    fit_mixture,
    measure_self,
)
from longtail.training.shared_weights import SharedWeights


@dataclass(frozen=True, eq=False)
class HeldOutTest:
    """All documents, and statistics that lack the held-out ones."""

    counts: CountMatrix
    class_ids: Integers
    held_out: Integers
    statistics: ClassStatistics
    corpus: Corpus
    config: FitConfig

    @property
    def n_candidates(self) -> int:
        """How many classes are found for each document."""
        return cap_candidates(self.config.candidates, self.statistics.n_classes)


def check_scorers(test: HeldOutTest, learned: SharedWeights) -> tuple[SharedWeights, SelfCheck]:
    """Compare the learned scorer with simpler ones; find the posting budget of the one to keep."""
    config, document_ids = test.config, test.held_out[: test.config.max_checked]
    counts, true_classes = test.counts.gather(document_ids), test.class_ids[document_ids]
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
        scored = ScoredClasses.of(test.statistics, test.corpus, shared, config.n_jobs)
        index = scored.build_index(config.n_jobs)
        documents = weight_documents(counts, test.corpus.idf * shared.term_weights, config.n_jobs)
        figures = []
        for budget in budgets:
            pruning = None if budget is None else QueryPruning.of(test.statistics, budget)
            found, _ = search(
                documents,
                scored.scorer,
                index,
                test.n_candidates,
                pruning=pruning,
                n_jobs=config.n_jobs,
            )
            figures.append(measure_self(true_classes, found, test.statistics.class_sizes))
        return figures

    figures = [find(shared, (None,))[0] for shared in selves]
    kept = choose_scorer(figures)
    recalls = [entry.recall for entry in find(selves[kept], BUDGETS)]
    return selves[kept], SelfCheck(
        scorer_figures=np.array([entry.row for entry in figures]),
        recalls=np.array([*recalls, figures[kept].recall]),
        scorer=kept,
        postings_per_class=choose_budget(recalls, figures[kept].recall),
    )


def check_residuals(
    test: HeldOutTest, shared: SharedWeights, check: SelfCheck
) -> tuple[SelfCheck, Calibrator]:
    """Learn residuals without the held-out documents, and how much they count; then calibrate.

    Hard negatives are mined without them as well: a class that still had them would draw documents
    like them as negatives, and its residual would count against them.
    """
    config, n_jobs = test.config, test.config.n_jobs
    scored = ScoredClasses.of(test.statistics, test.corpus, shared, n_jobs)
    pruning = QueryPruning.of(test.statistics, check.postings_per_class)
    documents = weight_documents(test.counts, test.corpus.idf * shared.term_weights, n_jobs)
    candidates, _ = search(
        documents,
        scored.scorer,
        scored.build_index(n_jobs),
        test.n_candidates,
        document_ids=test.held_out,
        pruning=pruning,
        n_jobs=n_jobs,
    )
    lists = mine_all(documents, test.class_ids, scored, pruning, config)
    used = np.ones(len(lists), np.bool_)
    used[test.held_out] = False
    residuals = learn_residuals(documents, lists, scored, config, document_mask=used)
    held_out = documents.gather(test.held_out)
    del documents, lists
    release_memory()
    scores = score_pairs(held_out, candidates, scored.scorer, n_jobs)
    biases = residuals.biases[candidates]
    weights = score_pairs(held_out, candidates, residuals.as_scorer, n_jobs) - biases
    return _choose_mixture(np.stack([scores, weights, biases], axis=2), candidates, check, test)


def _choose_mixture(
    parts: Floats, candidates: Integers, check: SelfCheck, test: HeldOutTest
) -> tuple[SelfCheck, Calibrator]:
    """Keep the mixture of scorer and residuals that fares best, and calibrate its scores."""
    n_jobs, n_candidates = test.config.n_jobs, candidates.shape[1]
    true_classes = test.class_ids[test.held_out]
    learned = fit_mixture(parts, candidates == true_classes[:, None])
    mixtures = (Mixture(0.0, 0.0), Mixture(), learned)
    ranked = [rank_topk(candidates, m.mix(parts), n_candidates, n_jobs) for m in mixtures]
    figures = [
        measure_self(true_classes, classes, test.statistics.class_sizes) for classes, _ in ranked
    ]
    kept = choose_residuals(figures) if test.config.self_check else RESIDUALS.index("as learned")
    classes, scores = ranked[kept]
    checked = replace(
        check,
        residual_figures=np.array([entry.row for entry in figures]),
        mixture=np.array([mixtures[kept].weights, mixtures[kept].biases]),
        residuals=kept,
    )
    return checked, fit_calibrator(scores, classes == true_classes[:, None])
