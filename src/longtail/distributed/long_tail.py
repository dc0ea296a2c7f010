"""The flagship's fit over blocks: the stages of `training.long_tail`, each as tasks.

================= ===================================== ===========================================
stage             pure function of                      why any partitioning gives the same bits
================= ===================================== ===========================================
statistics        one block, the classes                sums of integers
class texts       texts, vocabulary, statistics         a row for each text, whatever the others
draws             labels of all blocks                  keys are hashes of seed and document id
shared weights    sampled documents, statistics         the sample, in the order of its keys
self-check        held-out documents, statistics        likewise
scorer, index     statistics, shared weights            one value for each (class, term)
mining            one block, scorer and index           a document's candidates are its own
residuals         rows that have a class of the shard   a class sees its documents in their order
calibration       held-out documents, residuals         likewise
================= ===================================== ===========================================
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._validation import cap_candidates
from longtail.distributed.class_texts import ClassTexts, read_names, weigh_class_texts
from longtail.distributed.documents import Block, read_statistics
from longtail.distributed.learning import (
    calibrate,
    check_scorer,
    draw,
    learn_shared_weights,
    mix_rows,
    subtract_held_out,
)
from longtail.distributed.memory import Plan
from longtail.distributed.results import read_flat_labels, read_part, read_result
from longtail.distributed.scoring import (
    collapse,
    index_changed,
    index_shard,
    mine_block,
    read_pruning,
    read_scored,
    read_shared,
    search_others,
    solve_shard,
)
from longtail.distributed.stages import Stages
from longtail.sparse import offsets_from_lengths
from longtail.training.calibration import Calibrator
from longtail.training.config import FitConfig
from longtail.training.long_tail import LongTailState, build_state, lacks_little
from longtail.training.negatives import few_changed
from longtail.training.self_check import SelfCheck


@dataclass(frozen=True)
class _Others:
    """Files of a scorer and of the best classes without held-out documents that it found."""

    scorer: str
    best: list[str]


@dataclass(frozen=True)
class _Learned:
    """Files of a scorer and of what was learned with it."""

    scorer: str
    index: list[str]
    residuals: list[str]
    others: _Others | None


def fit_long_tail_blocks(
    blocks: list[Block],
    statistics: str,
    classes: str,
    config: FitConfig,
    stages: Stages,
    plan: Plan,
    texts: ClassTexts | None = None,
) -> LongTailState:
    """Run the stages of a fit over blocks.

    Parameters
    ----------
    blocks : list of Block
        All documents.
    statistics : str
        The file of their statistics.
    classes : str
        The file of their labels, sorted, and of those that have a text.
    config : FitConfig
        What to do.
    stages : Stages
        Runs the tasks.
    plan : Plan
        Into how many shards classes are divided.
    texts : ClassTexts, optional
        The files of the texts of classes.

    Returns
    -------
    LongTailState
        The bits of `fit_long_tail` on all documents; its arrays are maps of files.
    """
    config = replace(config, n_jobs=None)  # tasks are told by who runs them
    names = None
    if texts is not None:
        given = {"texts": texts, "classes": classes, "statistics": statistics}
        names = stages.run_one("class texts", weigh_class_texts, "rows", **given)
    draws = stages.run_one("draws", draw, blocks=blocks, classes=classes, config=config)
    several = read_result(draws).parameters["several"]
    n_documents = sum(block.n_documents for block in blocks)
    config = config.for_labels(several, n_documents, read_statistics(statistics).n_classes)
    shared = stages.run_one(
        "shared weights",
        learn_shared_weights,
        blocks=blocks,
        statistics=statistics,
        draws=draws,
        config=config,
    )
    calibrated, others, first_learned = shared, None, None
    if read_result(draws).parameters["n_held_out"]:
        held: dict[str, Any] = {"blocks": blocks, "draws": draws}
        rest = stages.run_one("self-check", subtract_held_out, statistics=statistics, **held)
        held |= {"names": names, "config": config}
        shared = stages.run_one("self-check", check_scorer, statistics=rest, shared=shared, **held)
        first_learned = _learn(
            blocks, rest, shared, draws, True, None, config.separators, config, stages, plan
        )
        others = first_learned.others
        calibrated = stages.run_one(
            "calibration",
            calibrate,
            statistics=rest,
            shared=shared,
            scorer=first_learned.scorer,
            index=first_learned.index,
            residuals=first_learned.residuals,
            **held,
        )
    weights, _, check = read_shared(shared)
    calibrator = Calibrator.identity(marginal=config.several)
    if calibrated != shared:
        found = read_result(calibrated)
        check, calibrator = (
            read_part(SelfCheck, found, "check"),
            read_part(Calibrator, found, "calibrator"),
        )
    held_out = read_result(draws).arrays["held_out"]
    keeps = first_learned is not None and lacks_little(held_out, n_documents)
    separators = check.kept_mixture.uses_separators and not keeps
    learned = _learn(
        blocks, statistics, shared, draws, False, others, separators, config, stages, plan
    )
    apart = first_learned.residuals if first_learned is not None and keeps else learned.residuals
    scored = read_scored(statistics, shared, learned.scorer)
    class_sizes = scored.profile.statistics.class_sizes
    return build_state(
        np.asarray(read_flat_labels(classes)),
        scored,
        weights,
        mix_rows(learned.residuals, apart, check.kept_mixture, class_sizes),
        check,
        calibrator,
        read_pruning(learned.scorer),
        stages.n_jobs,
        None if names is None else read_names(names),
    )


def _learn(
    blocks: list[Block],
    statistics: str,
    shared: str,
    draws: str,
    held_out: bool,
    others: _Others | None,
    separators: bool,
    config: FitConfig,
    stages: Stages,
    plan: Plan,
) -> _Learned:
    """Build a scorer and its index, mine every block, and learn the rows of every class shard.

    `held_out` says that the statistics lack the held-out documents; `others` are the best classes
    without any, found before; `separators` says whether these are learned beside residuals.
    """
    sums = read_statistics(statistics)
    n_mined = cap_candidates(config.n_mined, sums.n_classes)
    given: dict[str, Any] = {"statistics": statistics, "shared": shared}
    given["scorer"] = stages.run_one("scorer", collapse, **given)
    bounds = _divide(np.diff(sums.indptr), plan.count_index_shards(sums), n_mined + 1)
    index = stages.run(
        [
            stages.task("index", first, index_shard, bounds=(first, last), **given)
            for first, last in itertools.pairwise(bounds)
        ]
    )
    if held_out and few_changed(read_result(draws).arrays["changed"], sums.n_classes):
        best = stages.run(
            [
                stages.task(
                    "mining", f"others-{i}", search_others,
                    block=block, index=index, draws=draws, config=config, **given,
                )
                for i, block in enumerate(blocks)
            ]
        )  # fmt: skip
        others = _Others(given["scorer"], best)
    apart = None
    if others is not None:
        apart = stages.run_one("index", index_changed, "changed", draws=draws, **given)
    starts = offsets_from_lengths(np.array([block.n_documents for block in blocks])).tolist()
    n_shards = plan.count_residual_shards(_count_entries(blocks), starts[-1], n_mined)
    shards = _divide(sums.class_sizes, n_shards, 1)
    mined = stages.run(
        [
            stages.task(
                "mining",
                i,
                mine_block,
                block=block,
                index=index,
                shards=shards,
                unused=(draws, starts[i]) if held_out else None,
                others=others and (others.best[i], draws, apart, others.scorer),
                separators=separators,
                config=config,
                **given,
            )
            for i, block in enumerate(blocks)
        ]
    )
    residuals = stages.run(
        [
            stages.task(
                "residuals",
                shard,
                solve_shard,
                blocks=blocks,
                mined=mined,
                shared=shared,
                shards=shards,
                shard=shard,
                without=draws if held_out else None,
                separators=separators,
                config=config,
            )
            for shard in range(len(shards) - 1)
        ]
    )
    return _Learned(given["scorer"], index, residuals, others)


def _count_entries(blocks: list[Block]) -> int:
    """Return how many entries blocks have."""
    return sum(int(read_result(block.counts).parameters["n_entries"]) for block in blocks)


def _divide(work: NDArray[Any], n_parts: int, fewest: int) -> list[int]:
    """Return bounds of ranges of classes of about equal work, each of at least so many classes."""
    n_classes = len(work)
    n_parts = max(1, min(n_parts, n_classes // max(fewest, 1)))
    targets = np.linspace(0, work.sum() + n_classes, n_parts + 1)[1:-1]
    bounds = [0]
    for i, bound in enumerate(np.searchsorted(np.cumsum(work + 1), targets).tolist(), 1):
        lowest, highest = bounds[-1] + fewest, n_classes - (n_parts - i) * fewest
        bounds.append(min(max(bound, lowest), highest))
    return [*bounds, n_classes]
