"""The paper's fit over blocks: statistics as everywhere, one task for the sampled pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from longtail.distributed.documents import Block, gather_documents, read_statistics
from longtail.distributed.memory import Plan
from longtail.distributed.results import Contents, read_flat_labels, read_part, read_result
from longtail.distributed.stages import Stages
from longtail.distributed.tasks import Run
from longtail.paper.double_sampling import (
    DoubleSamplingConfig,
    DoubleSamplingState,
    derive_state,
    draw_sample,
)
from longtail.paper.pairwise import PairwiseScorer, adversary_differences, fit_pairwise_scorer
from longtail.paper.sampling import PairSample
from longtail.sparse import stack_rows


def fit_double_sampling_blocks(
    blocks: list[Block],
    statistics: str,
    classes: str,
    config: DoubleSamplingConfig,
    stages: Stages,
    plan: Plan,
) -> DoubleSamplingState:
    """Run Algorithm 1 over blocks; the bits of `fit_double_sampling` on all documents."""
    config = replace(config, n_jobs=None)
    # A generator has no name: what it draws is found again by nobody.
    is_seed = isinstance(config.random_state, int | np.integer)
    path = stages.run_one(
        "pairwise scorer",
        learn_pairwise_scorer,
        identity=None if is_seed else np.random.default_rng().bytes(16).hex(),
        blocks=blocks,
        statistics=statistics,
        config=config,
    )
    file, sums = read_result(path), read_statistics(statistics)
    return derive_state(
        np.asarray(read_flat_labels(classes)),
        sums,
        sums.corpus,
        read_part(PairwiseScorer, file, "pairwise"),
        read_part(PairSample, file, "sample"),
        stages.n_jobs,
    )


def learn_pairwise_scorer(
    run: Run, blocks: list[Block], statistics: str, config: DoubleSamplingConfig
) -> Contents:
    """Draw documents and adversaries, and learn the ten weights on the documents drawn."""
    sums = read_statistics(statistics)
    class_ids = stack_rows([block.load_labels() for block in blocks]).class_ids
    sample = draw_sample(class_ids, sums.n_classes, replace(config, n_jobs=run.n_jobs))
    counts, _ = gather_documents(blocks, sample.documents)
    gathered = PairSample(np.arange(len(sample)), sample.classes)
    differences = adversary_differences(counts, sums, gathered, run.n_jobs)
    scorer = fit_pairwise_scorer(differences, None, config.C, run.n_jobs)
    return Contents().add("pairwise", scorer).add("sample", sample)
