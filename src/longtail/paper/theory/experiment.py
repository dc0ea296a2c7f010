"""The consistency experiment: R(h) against its bound on problems whose distribution is known.

In come sizes to sweep; out come plain rows, one a run, with the true risk, the sampled empirical
risk and every term of Theorem 2. Documents are short bags of terms from a known distribution of
each class, so R(h) is a weighted mean over classes with known weights, estimated on a large fresh
sample.

The theorem takes φ as given. Class statistics therefore come from a reference sample that is
independent of S; were they taken from S, every document would be part of the statistics it is
compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.model.statistics import ClassStatistics
from longtail.paper.features import FEATURE_NAMES, pair_features
from longtail.paper.pairwise import fit_pairwise_scorer, pair_differences, pair_with_all
from longtail.paper.sampling import PairSample, draw_pairs, retention_probabilities
from longtail.paper.theory.bounds import SampleSizes, check_delta, theorem_2a, theorem_2b
from longtail.paper.theory.complexity import loss_variance, zero_one_complexity_bound
from longtail.paper.theory.constants import sampling_constants
from longtail.paper.theory.rates import ConsistencyResult, ConsistencyRun
from longtail.paper.theory.synthetic import SyntheticProblem, make_problem
from longtail.sparse import Floats

Progress = Callable[[int, int, str], None]

# Documents of each class behind φ.
REFERENCE_PER_CLASS = 20
SCORER_C = 0.01


def run_consistency_experiment(
    *,
    n_classes: int = 20,
    documents: Sequence[int] = (1000, 2000, 4000, 8000, 16000, 32000, 64000),
    adversaries: Sequence[int] = (1, 2, 4, 8, 19),
    examples: Sequence[float] = (5, 10, 20, 40, 80),
    repeats: int = 5,
    balanced_repeats: int = 100,
    fresh_per_class: int = 2000,
    delta: float = 0.05,
    random_state: int = 0,
    progress: Progress | None = None,
) -> ConsistencyResult:
    """Measure R(h) and its bound as m, κ and the examples per class grow.

    - ``documents``: long-tailed, κ = 5, m grows and the examples per class with it (m / 20).
    - ``adversaries``: long-tailed, m the middle of ``documents``, κ grows.
    - ``examples``: the same m, κ = 5, the examples per class grow.
    - ``balanced``: equal classes, κ = 5, the examples per class grow, four times as many in S.

    Parameters
    ----------
    n_classes : int, default 20
        K.
    documents, adversaries, examples : sequence
        The values of m, κ and examples per class to run, ascending.
    repeats : int, default 5
        Repetitions of each long-tailed setting.
    balanced_repeats : int, default 100
        Repetitions of each balanced setting; a gap is noise around 0 and needs more of them.
    fresh_per_class : int, default 2000
        New documents of each class on which R(h) is measured.
    delta : float, default 0.05
        δ of the bounds.
    random_state : int, default 0
        Seeds everything.
    progress : callable, optional
        Called after each run with (runs done, runs in all, name of the sweep).
    """
    check_delta(delta)
    settings = list(
        _settings(n_classes, documents, adversaries, examples, repeats, balanced_repeats)
    )
    benches = {
        exponent: _Bench.build(
            make_problem(n_classes, exponent, random_state), fresh_per_class, random_state
        )
        for exponent in (1.0, 0.0)
    }
    runs = []
    for setting in settings:
        bench = benches[0.0 if setting.sweep == "balanced" else 1.0]
        runs.append(_run(bench, setting, delta, random_state))
        if progress is not None:
            progress(len(runs), len(settings), setting.sweep)
    return ConsistencyResult(runs=tuple(runs), delta=delta, random_state=random_state)


@dataclass(frozen=True)
class _Setting:
    """The settings of one run."""

    sweep: str
    repeat: int
    n_documents: int
    adversaries: int
    examples_per_class: float


@dataclass(frozen=True)
class _Bench:
    """A problem, the reference statistics behind φ, and fresh pairs to measure R(h) on."""

    problem: SyntheticProblem
    statistics: ClassStatistics
    fresh_differences: Floats
    fresh_weights: Floats

    @classmethod
    def build(cls, problem: SyntheticProblem, fresh_per_class: int, random_state: int) -> _Bench:
        """Draw the reference and the fresh sample; neither is part of any S."""
        rng = np.random.default_rng([random_state, 1])
        n_classes = problem.n_classes
        X, y = problem.draw_classes(np.full(n_classes, REFERENCE_PER_CLASS), rng)
        statistics = ClassStatistics.from_counts(X, y, n_classes)
        X, y = problem.draw_classes(np.full(n_classes, fresh_per_class), rng)
        features = pair_features(X, statistics, np.arange(len(y)), pair_with_all(y, n_classes))
        return cls(
            problem=problem,
            statistics=statistics,
            fresh_differences=features[:, :1] - features[:, 1:],
            fresh_weights=problem.class_probabilities[y] / fresh_per_class,
        )

    def true_risk(self, weights: Floats) -> float:
        """Return R(h) = Σ_y P(y) E[e(h, x^y) | y]; P(y) is known, the rest is a mean."""
        losses = (self.fresh_differences @ weights <= 0.0).mean(axis=1)
        return float(self.fresh_weights @ losses)


def _settings(
    n_classes: int,
    documents: Sequence[int],
    adversaries: Sequence[int],
    examples: Sequence[float],
    repeats: int,
    balanced_repeats: int,
) -> Iterator[_Setting]:
    """List the runs of the four sweeps; refuse empty or impossible ones before any work is done."""
    for name, values in (
        ("documents", documents), ("adversaries", adversaries), ("examples", examples),
    ):  # fmt: skip
        if len(values) == 0 or min(values) <= 0:
            raise ValueError(f"{name} must hold at least one positive value; got {values!r}.")
    if max(adversaries) > n_classes - 1:
        raise ValueError(
            f"adversaries must be at most n_classes - 1 (here {n_classes - 1}); "
            f"got {max(adversaries)}."
        )
    if repeats < 1 or balanced_repeats < 1:
        raise ValueError(
            f"repeats and balanced_repeats must be at least 1; got {repeats} and "
            f"{balanced_repeats}."
        )
    middle = documents[len(documents) // 2]
    kappa = min(5, n_classes - 1)
    for repeat in range(repeats):
        for m in documents:
            yield _Setting("documents", repeat, m, kappa, m / 20)
        for value in adversaries:
            yield _Setting("adversaries", repeat, middle, value, middle / 20)
        for count in examples:
            yield _Setting("examples", repeat, middle, kappa, count)
    for repeat in range(balanced_repeats):
        for count in examples:
            yield _Setting("balanced", repeat, int(4 * count * n_classes), kappa, count)


def _run(bench: _Bench, setting: _Setting, delta: float, random_state: int) -> ConsistencyRun:
    """Draw S, sample pairs, learn a scorer, and compare its risk with the bound."""
    # The seed leaves κ and the examples per class out: along their sweeps S stays the same.
    seed = [random_state, 2, setting.n_documents, setting.repeat]
    rng = np.random.default_rng(seed)
    n_classes = bench.problem.n_classes
    X, y = bench.problem.draw(setting.n_documents, rng)
    sample = draw_pairs(
        y, n_classes, setting.examples_per_class, setting.adversaries, int(rng.integers(2**31))
    )
    weights, losses = _learn(bench, X, sample)
    class_sizes = np.bincount(y, minlength=n_classes)
    retention = retention_probabilities(class_sizes, setting.examples_per_class)
    sampling = sampling_constants(class_sizes, retention, "retention")
    sizes = SampleSizes(len(y), len(sample.documents), setting.adversaries, n_classes)
    complexity = zero_one_complexity_bound(len(FEATURE_NAMES), sizes.n_sampled)
    risk = float(losses.mean())
    slow = theorem_2a(risk, complexity, sampling, sizes, delta)
    fast = theorem_2b(risk, complexity, loss_variance(losses), sampling, sizes, delta)
    terms: dict[str, Any] = {**slow.terms, **fast.terms}
    return ConsistencyRun(
        **asdict(setting),
        **terms,
        n_sampled=sizes.n_sampled,
        n_classes=n_classes,
        alpha=sampling.alpha,
        beta=sampling.beta,
        true_risk=bench.true_risk(weights),
        sampled_risk=risk,
        total_2a=slow.total,
        total_2b=fast.total,
    )


def _learn(bench: _Bench, X: sp.csr_array, sample: PairSample) -> tuple[Floats, Floats]:
    """Return the scorer's weights and its 0/1 losses on the sampled pairs."""
    features = pair_features(X, bench.statistics, sample.documents, sample.classes)
    differences, labels = pair_differences(features, sample.classes)
    scorer = fit_pairwise_scorer(differences, labels, SCORER_C)
    losses = labels * (differences @ scorer.weights) <= 0.0
    return scorer.weights, losses.astype(np.float64)
