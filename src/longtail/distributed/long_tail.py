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
    index_shard,
    mine_block,
    read_pruning,
    read_scored,
    read_shared,
    solve_shard,
)
from longtail.distributed.stages import Stages
from longtail.sparse import offsets_from_lengths
from longtail.training.calibration import Calibrator
from longtail.training.config import FitConfig
from longtail.training.long_tail import LongTailState, build_state, lacks_little
from longtail.training.self_check import SelfCheck


@dataclass(frozen=True)
class _Learned:
    """Files of an index and of what was learned with it."""

    index: list[str]
    residuals: list[str]


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
        named: dict[str, Any] = {"texts": texts, "classes": classes, "statistics": statistics}
        names = stages.run_one("class texts", weigh_class_texts, "rows", **named)
    draws = stages.run_one("draws", draw, blocks=blocks, classes=classes, config=config)
    factor = read_result(draws).parameters["factor"]
    n_documents = sum(block.n_documents for block in blocks)
    config = config.for_labels(factor, n_documents, read_statistics(statistics).n_classes)
    shared = stages.run_one(
        "shared weights",
        learn_shared_weights,
        blocks=blocks,
        statistics=statistics,
        draws=draws,
        config=config,
    )
    calibrated, learned = shared, None
    if read_result(draws).parameters["n_held_out"]:
        held: dict[str, Any] = {"blocks": blocks, "draws": draws}
        rest = stages.run_one("self-check", subtract_held_out, statistics=statistics, **held)
        held |= {"names": names, "config": config}
        shared = stages.run_one("self-check", check_scorer, statistics=rest, shared=shared, **held)
        given: dict[str, Any] = {"statistics": rest, "shared": shared}
        given["scorer"] = stages.run_one("scorer", collapse, **given)
        learned = _learn(blocks, given, draws, True, config.separators, config, stages, plan)
        calibrated = stages.run_one(
            "calibration",
            calibrate,
            index=learned.index,
            residuals=learned.residuals,
            **given,
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
    given = {"statistics": statistics, "shared": shared}
    given["scorer"] = stages.run_one("scorer", collapse, **given)
    held_out = read_result(draws).arrays["held_out"]
    if learned is None or not lacks_little(held_out, n_documents):
        separators = check.kept_mixture.uses_separators
        learned = _learn(blocks, given, draws, False, separators, config, stages, plan)
    scored = read_scored(**given)
    class_sizes = scored.profile.statistics.class_sizes
    state = build_state(
        np.asarray(read_flat_labels(classes)),
        scored,
        weights,
        mix_rows(learned.residuals, check.kept_mixture, class_sizes),
        check,
        calibrator,
        read_pruning(given["scorer"]),
        stages.n_jobs,
        None if names is None else read_names(names),
    )
    return replace(state, n_fitted_documents=n_documents, candidate_factor=factor)


def _learn(
    blocks: list[Block],
    given: dict[str, Any],
    draws: str,
    held_out: bool,
    separators: bool,
    config: FitConfig,
    stages: Stages,
    plan: Plan,
) -> _Learned:
    """Build the index, mine every block, and learn the rows of every class shard.

    `given` are the files of statistics, shared weights and scorer. `held_out` says that the
    statistics lack the held-out documents, `separators` whether these are learned beside residuals.
    """
    sums = read_statistics(given["statistics"])
    n_mined = cap_candidates(config.n_mined, sums.n_classes)
    bounds = _divide(np.diff(sums.indptr), plan.count_index_shards(sums), n_mined + 1)
    index = stages.run(
        [
            stages.task("index", first, index_shard, bounds=(first, last), **given)
            for first, last in itertools.pairwise(bounds)
        ]
    )
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
                shared=given["shared"],
                shards=shards,
                shard=shard,
                without=draws if held_out else None,
                separators=separators,
                config=config,
            )
            for shard in range(len(shards) - 1)
        ]
    )
    return _Learned(index, residuals)


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
