"""The paper's theory, runnable: transformation, dependency graph, complexity, bounds, experiment.

Read in this order: ``transformation`` (Eq. 4, Figure 1), ``graph`` (Definition 1, Lemma 1, Figure
2), ``complexity`` (fractional Rademacher complexity), ``constants`` (α and β), ``bounds`` (Theorems
1 and 2), ``risks`` (Eqs. 6 and 7, the bound of a fitted model), ``synthetic``, ``experiment`` and
``rates`` (the bound against the true risk), ``figures``.
"""

from longtail.paper.theory.bounds import Bound, SampleSizes, theorem_1, theorem_2a, theorem_2b
from longtail.paper.theory.complexity import (
    ComplexityEstimate,
    linear_complexity_bound,
    linear_complexity_from_data,
    linear_complexity_monte_carlo,
    loss_variance,
    ramp_loss,
    zero_one_complexity_bound,
)
from longtail.paper.theory.constants import SamplingConstants, ShiftFactors, sampling_constants
from longtail.paper.theory.experiment import run_consistency_experiment
from longtail.paper.theory.figures import (
    plot_consistency,
    plot_dependency_graph,
    plot_transformation,
)
from longtail.paper.theory.graph import (
    CoverReport,
    DependencyGraph,
    FractionalCover,
    check_cover,
    dependency_graph,
    document_cover,
    fractional_chromatic_number,
    maximal_independent_sets,
)
from longtail.paper.theory.rates import ConsistencyResult, ConsistencyRun, Rate, measured_rates
from longtail.paper.theory.risks import full_risk, risk_bound, sampled_risk
from longtail.paper.theory.synthetic import SyntheticProblem, make_problem
from longtail.paper.theory.transformation import (
    TransformedSet,
    describe_pairs,
    toy_example,
    transform,
)

__all__ = [
    "Bound",
    "ComplexityEstimate",
    "ConsistencyResult",
    "ConsistencyRun",
    "CoverReport",
    "DependencyGraph",
    "FractionalCover",
    "Rate",
    "SampleSizes",
    "SamplingConstants",
    "ShiftFactors",
    "SyntheticProblem",
    "TransformedSet",
    "check_cover",
    "dependency_graph",
    "describe_pairs",
    "document_cover",
    "fractional_chromatic_number",
    "full_risk",
    "linear_complexity_bound",
    "linear_complexity_from_data",
    "linear_complexity_monte_carlo",
    "loss_variance",
    "make_problem",
    "maximal_independent_sets",
    "measured_rates",
    "plot_consistency",
    "plot_dependency_graph",
    "plot_transformation",
    "ramp_loss",
    "risk_bound",
    "run_consistency_experiment",
    "sampled_risk",
    "sampling_constants",
    "theorem_1",
    "theorem_2a",
    "theorem_2b",
    "toy_example",
    "transform",
    "zero_one_complexity_bound",
]
