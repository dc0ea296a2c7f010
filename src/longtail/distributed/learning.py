"""The stages that see a sample of the documents: draws, shared weights, self-check, calibration.

Which documents are sampled and held out depends on the seed and the ids of documents alone, so any
partitioning draws alike. Each stage is one task.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from longtail._labels import LabelSets
from longtail.distributed.documents import (
    STATISTICS,
    Block,
    gather_documents,
    read_statistics,
)
from longtail.distributed.results import Contents, read_part, read_result
from longtail.distributed.scoring import read_scored, search_shards
from longtail.distributed.tasks import Run
from longtail.retrieval.pruning import QueryPruning
from longtail.scoring.linear import ClassResiduals
from longtail.scoring.weighting import weight_documents
from longtail.sparse import Integers
from longtail.statistics.corpus import Corpus
from longtail.training.config import FitConfig
from longtail.training.held_out import HeldOutTest, check_residuals, check_scorers
from longtail.training.sampling import draw_labels, hold_out
from longtail.training.scored_classes import sum_documents
from longtail.training.self_check import SelfCheck
from longtail.training.shared_weights import SampledLabels, SharedWeights, fit_shared_weights


def draw(run: Run, blocks: list[Block], n_classes: int, config: FitConfig) -> Contents:
    """Draw the documents to hold out, and those that the shared weights are learned on."""
    class_ids = np.concatenate([block.load_class_ids() for block in blocks])
    n_held_out = min(int(config.held_out_share * len(class_ids)), config.max_held_out)
    labels = _single(class_ids, n_classes)
    held_out = hold_out(labels, n_held_out * config.calibrate, config.seed)
    sample = draw_labels(labels, config.n_sampled, config.seed, without=held_out)
    return Contents({"n_held_out": len(held_out)}, {"held_out": held_out, "sample": sample})


def learn_shared_weights(
    run: Run, blocks: list[Block], statistics: str, draws: str, config: FitConfig
) -> Contents:
    """Learn term and feature weights on the sample; the corpus is kept with them."""
    sample = read_result(draws).arrays["sample"]
    counts, class_ids = gather_documents(blocks, sample)
    sums = read_statistics(statistics)
    config = replace(config, n_jobs=run.n_jobs)
    pairs = SampledLabels(class_ids, _single(class_ids, sums.n_classes), sample)
    shared = fit_shared_weights(counts, pairs, sums, config)
    return Contents().add("shared", shared).add("corpus", sums.corpus).add("check", SelfCheck())


def subtract_held_out(
    run: Run, blocks: list[Block], statistics: str, draws: str, config: FitConfig
) -> Contents:
    """Return the statistics without the held-out documents."""
    sums = read_statistics(statistics)
    counts, class_ids = gather_documents(blocks, read_result(draws).arrays["held_out"])
    apart = sum_documents(counts, _single(class_ids, sums.n_classes), run.n_jobs)
    return Contents().add(STATISTICS, sums - apart)


def check_scorer(
    run: Run, blocks: list[Block], statistics: str, draws: str, shared: str, config: FitConfig
) -> Contents:
    """Choose the scorer and the posting budget on held-out documents, which `statistics` lack."""
    test = _read_test(run, blocks, statistics, draws, shared, config)
    kept, check = check_scorers(test, read_part(SharedWeights, read_result(shared), "shared"))
    return Contents().add("shared", kept).add("corpus", test.corpus).add("check", check)


def calibrate(
    run: Run,
    blocks: list[Block],
    statistics: str,
    draws: str,
    shared: str,
    scorer: str,
    index: list[str],
    residuals: list[str],
    config: FitConfig,
) -> Contents:
    """Learn on held-out documents how much the residuals count, and calibrate."""
    test = _read_test(run, blocks, statistics, draws, shared, config)
    learned = read_part(SharedWeights, read_result(shared), "shared")
    check = read_part(SelfCheck, read_result(shared), "check")
    scored = read_scored(statistics, shared, scorer)
    candidates, _ = search_shards(
        weight_documents(test.counts, test.corpus.idf * learned.term_weights, run.n_jobs),
        scored.scorer,
        index,
        test.n_candidates,
        QueryPruning.of(test.statistics, check.postings_per_class),
        run.n_jobs,
    )
    check, calibrator = check_residuals(
        test, candidates, learned, scored.scorer, read_residuals(residuals), check
    )
    return Contents().add("check", check).add("calibrator", calibrator)


def read_residuals(paths: list[str]) -> ClassResiduals:
    """Put the residuals of class shards together."""
    parts = [read_part(ClassResiduals, read_result(path), "residuals") for path in paths]
    starts = np.cumsum([0, *(rows.indptr[-1] for rows in parts)])
    bounds = [rows.indptr[:-1] + start for rows, start in zip(parts, starts, strict=False)]
    return ClassResiduals(
        np.concatenate([*bounds, starts[-1:]]),
        np.concatenate([rows.indices for rows in parts]),
        np.concatenate([rows.weights for rows in parts]),
        np.concatenate([rows.biases for rows in parts]),
    )


def _single(class_ids: Integers, n_classes: int) -> LabelSets:
    """Return class ids as label sets; blocks have one label for each document."""
    return LabelSets.single(class_ids, np.arange(n_classes))


def _read_test(
    run: Run, blocks: list[Block], statistics: str, draws: str, shared: str, config: FitConfig
) -> HeldOutTest:
    """Gather the held-out documents."""
    counts, class_ids = gather_documents(blocks, read_result(draws).arrays["held_out"])
    sums = read_statistics(statistics)
    return HeldOutTest(
        counts,
        _single(class_ids, sums.n_classes),
        sums,
        read_part(Corpus, read_result(shared), "corpus"),
        replace(config, n_jobs=run.n_jobs),
    )
