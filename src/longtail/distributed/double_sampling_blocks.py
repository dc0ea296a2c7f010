"""The paper's fit over blocks: statistics as everywhere, one task for the sampled pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.distributed.blocks import Block
from longtail.distributed.on_disk import OnDisk, Stored
from longtail.model.statistics import ClassStatistics
from longtail.paper.double_sampling import (
    DoubleSamplingConfig,
    DoubleSamplingState,
    derive_state,
    draw_sample,
)
from longtail.paper.pairwise import PairwiseScorer, adversary_differences, fit_pairwise_scorer
from longtail.paper.sampling import PairSample
from longtail.training.documents import Documents, gather_documents


@dataclass(frozen=True, eq=False)
class LearnedPairs:
    """The scorer that Algorithm 1 learns, and the pairs it was learned on."""

    scorer: PairwiseScorer
    sample: PairSample


def fit_double_sampling_blocks(
    run: OnDisk,
    blocks: list[Block],
    statistics: Stored,
    classes: NDArray[Any],
    config: DoubleSamplingConfig,
) -> DoubleSamplingState:
    """Run Algorithm 1 over blocks; the bits of `fit_double_sampling` on all documents."""
    config = replace(config, n_jobs=None)
    # A generator cannot be named, so its draws are never found again.
    is_seed = isinstance(config.random_state, int | np.integer)
    [learned] = run.each(
        "pairwise scorer",
        learn_pairs,
        [{}],
        identity=None if is_seed else np.random.default_rng().bytes(16).hex(),
        blocks=blocks,
        statistics=statistics,
        config=config,
    )
    pairs, sums = run.read(learned), run.read(statistics)
    return derive_state(classes, sums, sums.corpus, pairs.scorer, pairs.sample, run.n_jobs)


def learn_pairs(
    blocks: Sequence[Documents],
    statistics: ClassStatistics,
    config: DoubleSamplingConfig,
    n_jobs: int | None,
) -> LearnedPairs:
    """Draw documents and adversaries, and learn the ten weights on the documents drawn."""
    class_ids = np.concatenate([blocks[i].labels.class_ids for i in range(len(blocks))])
    sample = draw_sample(class_ids, statistics.n_classes, replace(config, n_jobs=n_jobs))
    drawn = gather_documents(blocks, sample.documents)
    gathered = PairSample(np.arange(len(sample)), sample.classes)
    differences = adversary_differences(drawn.counts, statistics, gathered, n_jobs)
    return LearnedPairs(fit_pairwise_scorer(differences, None, config.C, n_jobs), sample)
