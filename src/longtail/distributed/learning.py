"""The stages that see a sample of the documents: draws, shared weights, self-check, calibration.

Which documents are sampled and held out depends on the seed and the ids of documents alone, so any
partitioning draws alike. Each stage is one task.
"""

from __future__ import annotations

from dataclasses import replace

from longtail.distributed.class_texts import read_names
from longtail.distributed.documents import (
    STATISTICS,
    Block,
    gather_documents,
    read_statistics,
)
from longtail.distributed.results import Contents, read_part, read_result
from longtail.distributed.scoring import read_index, read_pruning, read_scored, read_shared
from longtail.distributed.tasks import Run
from longtail.scoring.linear import ClassResiduals
from longtail.sparse import Integers, stack_rows
from longtail.training.config import FitConfig, candidate_factor
from longtail.training.held_out import (
    HeldOutTest,
    check_residuals,
    check_scorers,
    find_candidates,
)
from longtail.training.long_tail import draw_documents
from longtail.training.mixture import Mixture
from longtail.training.scored_classes import LearnedRows, sum_documents
from longtail.training.self_check import SelfCheck
from longtail.training.shared_weights import SampledLabels, fit_shared_weights


def draw(run: Run, blocks: list[Block], classes: str, config: FitConfig) -> Contents:
    """Draw the documents to hold out, and the pairs that the shared weights are learned on."""
    labels = stack_rows([block.load_labels() for block in blocks])
    named = read_result(classes).arrays.get("named")
    held_out, sample = draw_documents(labels, config, named)
    factor = candidate_factor(labels.has_several, len(labels.class_ids), labels.n_documents)
    return Contents(
        {"n_held_out": len(held_out), "factor": factor},
        {
            "held_out": held_out,
            "sample": sample,
            "sampled_documents": labels.document_ids[sample],
            "sampled_classes": labels.class_ids[sample],
        },
    )


def learn_shared_weights(
    run: Run, blocks: list[Block], statistics: str, draws: str, config: FitConfig
) -> Contents:
    """Learn term and feature weights on the sample; the corpus is kept with them."""
    drawn = read_result(draws).arrays
    counts, labels = gather_documents(blocks, drawn["sampled_documents"])
    sums = read_statistics(statistics)
    pairs = SampledLabels(drawn["sampled_classes"], labels, drawn["sample"])
    shared = fit_shared_weights(counts, pairs, sums, replace(config, n_jobs=run.n_jobs))
    return Contents().add("shared", shared).add("corpus", sums.corpus).add("check", SelfCheck())


def subtract_held_out(run: Run, blocks: list[Block], statistics: str, draws: str) -> Contents:
    """Return the statistics without the held-out documents."""
    apart = gather_documents(blocks, read_result(draws).arrays["held_out"])
    return Contents().add(
        STATISTICS, read_statistics(statistics) - sum_documents(*apart, run.n_jobs)
    )


def check_scorer(
    run: Run,
    blocks: list[Block],
    statistics: str,
    draws: str,
    shared: str,
    names: str | None,
    config: FitConfig,
) -> Contents:
    """Choose the scorer and the posting budget on held-out documents, which `statistics` lack."""
    test = _read_test(run, blocks, statistics, draws, shared, names, config)
    kept, check = check_scorers(test, read_shared(shared)[0])
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
    names: str | None,
    config: FitConfig,
) -> Contents:
    """Learn on held-out documents how much the residuals count, and calibrate."""
    test = _read_test(run, blocks, statistics, draws, shared, names, config)
    learned, _, check = read_shared(shared)
    scored = read_scored(statistics, shared, scorer)
    candidates = find_candidates(test, learned, scored, read_index(index), read_pruning(scorer))
    rows = LearnedRows(
        read_rows(residuals, "residuals"),
        read_rows(residuals, "separators") if config.separators else None,
    )
    check, calibrator = check_residuals(test, candidates, learned, scored.scorer, rows, check)
    return Contents().add("check", check).add("calibrator", calibrator)


def read_rows(paths: list[str], name: str) -> ClassResiduals:
    """Put the residuals, or the separators, of class shards together, as they were learned."""
    return stack_rows([read_part(ClassResiduals, read_result(path), name) for path in paths])


def mix_rows(paths: list[str], mixture: Mixture, class_sizes: Integers) -> ClassResiduals:
    """Put the rows of class shards together as the mixture has them.

    Shard by shard, so that what was learned is never in memory as a whole beside the result.
    """
    mixed, first = [], 0
    for path in paths:
        rows = read_part(ClassResiduals, read_result(path), "residuals")
        last = first + len(rows.biases)
        apart = None
        if mixture.uses_separators:
            apart = read_part(ClassResiduals, read_result(path), "separators")
        mixed.append(mixture.scale(rows, apart, class_sizes[first:last]))
        first = last
    return stack_rows(mixed)


def _read_test(
    run: Run,
    blocks: list[Block],
    statistics: str,
    draws: str,
    shared: str,
    names: str | None,
    config: FitConfig,
) -> HeldOutTest:
    """Gather the held-out documents."""
    return HeldOutTest(
        *gather_documents(blocks, read_result(draws).arrays["held_out"]),
        read_statistics(statistics),
        read_shared(shared)[1],
        replace(config, n_jobs=run.n_jobs),
        config.several,
        None if names is None else read_names(names, with_documents=True),
    )
