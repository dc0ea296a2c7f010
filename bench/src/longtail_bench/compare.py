"""Cost of one system as a multiple of another, on the same data in the same run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from longtail_bench.rows import Row

__all__ = ["Ratio", "Row", "cost_ratios"]

_NAN = math.nan


@dataclass(frozen=True)
class Ratio:
    """Cost of one system divided by that of another on the same data in the same run.

    Below 1 the first is cheaper. With several seeds the means are divided. NaN where `error` says
    why there is nothing to divide.
    """

    data: str
    system: str
    baseline: str
    fit_cpu: float = _NAN
    predict_cpu: float = _NAN
    peak_memory: float = _NAN
    error: str | None = None


def cost_ratios(
    rows: Sequence[Row], system: str = "longtail", baseline: str = "pecos"
) -> list[Ratio]:
    """Divide what one system cost by what another cost, for each data set.

    Parameters
    ----------
    rows : sequence of Row
        Of one run.
    system, peer : str
        Numerator and denominator.

    Returns
    -------
    list of Ratio
        One for each data set, in the order of the rows.

    Examples
    --------
    >>> costs = dict(predict_cpu_seconds=1.0, peak_megabytes=300.0)
    >>> rows = [Row("longtail", "letters", 0, fit_cpu_seconds=9.0, **costs),
    ...         Row("pecos", "letters", 0, fit_cpu_seconds=6.0, **costs)]
    >>> cost_ratios(rows)[0].fit_cpu
    1.5
    """
    return [
        _divide(rows, name, system, baseline) for name in dict.fromkeys(row.data for row in rows)
    ]


def _divide(rows: Sequence[Row], data: str, system: str, baseline: str) -> Ratio:
    """Return the ratios for one data set."""
    ours, theirs = (
        [row for row in rows if (row.system, row.data) == (name, data)]
        for name in (system, baseline)
    )
    for name, selected in ((system, ours), (baseline, theirs)):
        errors = [row.error for row in selected if row.error] if selected else ["not run"]
        if errors:
            return Ratio(data, system, baseline, error=f"{name}: {errors[0]}")

    def ratio(cost: str) -> float:
        top, bottom = (fmean(getattr(row, cost) for row in selected) for selected in (ours, theirs))
        return top / bottom if bottom else _NAN

    return Ratio(
        data,
        system,
        baseline,
        fit_cpu=ratio("fit_cpu_seconds"),
        predict_cpu=ratio("predict_cpu_seconds"),
        peak_memory=ratio("peak_megabytes"),
    )
