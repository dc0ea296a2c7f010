"""The consistency experiment and the figures, at a small size."""

import sys

import numpy as np
import pytest

from longtail.paper import theory


@pytest.fixture(scope="module")
def small():
    calls = []
    result = theory.run_consistency_experiment(
        n_classes=8,
        documents=(500, 1000, 2000, 4000),
        adversaries=(1, 3, 7),
        examples=(5, 10, 20, 40),
        repeats=2,
        balanced_repeats=20,
        fresh_per_class=1000,
        progress=lambda *call: calls.append(call),
    )
    return result, calls


def test_inequality_holds_throughout(small):
    result, _ = small
    assert all(run.holds for run in result.runs)


def test_every_term_shrinks_at_the_stated_rate(small):
    result, _ = small
    rates = [rate for rate in theory.measured_rates(result) if rate.quantity != "gap"]
    assert {rate.sweep for rate in rates} == {"documents", "adversaries", "examples"}
    for rate in rates:
        assert rate.measured == pytest.approx(rate.stated, abs=0.08), rate


def test_gap_of_the_balanced_problem_shrinks(small):
    result, _ = small
    gap = result.means("balanced", "gap")
    assert gap[-1] < 0.6 * gap[0]
    (rate,) = [rate for rate in theory.measured_rates(result) if rate.quantity == "gap"]
    assert -0.8 < rate.measured < -0.25


def test_terms_add_up_to_the_bounds(small):
    result, _ = small
    for run in result.runs:
        shared = run.empirical + run.complexity + run.shift_slow + run.shift_fast
        assert run.total_2a == pytest.approx(shared + run.deviation)
        assert run.total_2b == pytest.approx(shared + run.variance + run.remainder)


def test_progress_counts_every_run(small):
    result, calls = small
    total = len(result.runs)
    assert total == 2 * (4 + 3 + 4) + 20 * 4
    assert [done for done, _, _ in calls] == list(range(1, total + 1))
    assert {of for _, of, _ in calls} == {total}


def test_rows_are_plain_data(small):
    row = small[0].rows()[0]
    assert row["sweep"] == "documents"
    assert {type(value) for value in row.values()} <= {str, int, float, bool}


def test_same_seed_same_result():
    options = {
        "n_classes": 3, "documents": [100], "adversaries": [1], "examples": [5],
        "repeats": 1, "balanced_repeats": 1, "fresh_per_class": 20, "random_state": 7,
    }  # fmt: skip
    first, second = (theory.run_consistency_experiment(**options) for _ in range(2))
    assert first.rows() == second.rows()
    assert theory.measured_rates(first) == []


def test_problem_has_the_distribution_it_says():
    problem = theory.make_problem(5, exponent=1.0)
    np.testing.assert_allclose(problem.class_probabilities * (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5),
                               [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5])  # fmt: skip
    np.testing.assert_allclose(problem.term_probabilities.sum(axis=1), 1.0)
    X, y = problem.draw(1000, np.random.default_rng(0))
    assert X.shape == (1000, problem.term_probabilities.shape[1])
    assert set(X.sum(axis=1)) == {problem.document_length}
    assert set(y) == set(range(5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 2.0}, "delta must lie strictly between 0 and 1; got 2.0"),
        ({"adversaries": [20]}, r"at most n_classes - 1 \(here 19\); got 20"),
        ({"documents": []}, r"documents must hold at least one positive value; got \[\]"),
        ({"examples": [0]}, "examples must hold at least one positive value"),
        ({"repeats": 0}, "repeats and balanced_repeats must be at least 1; got 0 and 100"),
        ({"documents": [3], "fresh_per_class": 1}, "meet all 20 classes; 3 documents missed"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        theory.run_consistency_experiment(**options)


def test_bad_problems_are_named():
    with pytest.raises(ValueError, match="n_classes must be an integer of at least 2; got 1"):
        theory.make_problem(1)
    with pytest.raises(ValueError, match="exponent must be a finite number of at least 0; got -1"):
        theory.make_problem(3, exponent=-1)


def test_figures_are_drawn(small, tmp_path):
    pytest.importorskip("matplotlib")
    figures = {
        "transformation": theory.plot_transformation(),
        "graph": theory.plot_dependency_graph(),
        "consistency": theory.plot_consistency(small[0]),
    }
    for name, figure in figures.items():
        figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_figure_1_shows_the_printed_pairs():
    pytest.importorskip("matplotlib")
    texts = [text.get_text() for text in theory.plot_transformation().axes[0].texts]
    fifth = (
        r"$(\mathbf{z}_{5} = (\phi(\mathbf{x}_{2}^{y_{2}}),\,\phi(\mathbf{x}_{2}^{y_{3}})),\ +1)$"
    )
    assert fifth in texts
    assert sum(r"\mathbf{z}" in text for text in texts) == 12


def test_missing_matplotlib_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'longtail\[plot\]'"):
        theory.plot_transformation()
