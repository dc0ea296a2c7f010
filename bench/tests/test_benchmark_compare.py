"""What one system costs as a multiple of another."""

import numpy as np
from longtail_bench.compare import cost_ratios
from longtail_bench.rows import Row


def cost_row(system: str, data: str, seed: int, cost: float, error: str | None = None) -> Row:
    return Row(
        system,
        data,
        seed,
        fit_cpu_seconds=cost,
        predict_cpu_seconds=2 * cost,
        peak_megabytes=3 * cost,
        error=error,
    )


def test_ratios_divide_means_over_seeds():
    rows = [
        cost_row("longtail", "a", 0, 3.0),
        cost_row("longtail", "a", 1, 6.0),
        cost_row("pecos", "a", 0, 2.0),
        cost_row("pecos", "a", 1, 4.0),
        cost_row("longtail", "b", 0, 1.0),
        cost_row("longtail", "c", 0, 1.0),
        cost_row("pecos", "c", 0, float("nan"), error="not finished after 1 s"),
    ]
    a, b, c = cost_ratios(rows)
    assert (a.data, a.fit_cpu, a.predict_cpu, a.peak_memory) == ("a", 1.5, 1.5, 1.5)
    assert b.error == "pecos: not run"
    assert c.error == "pecos: not finished after 1 s"
    assert np.isnan(c.fit_cpu)
