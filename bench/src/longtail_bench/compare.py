"""What one system costs as a multiple of another, on the same data in the same run."""

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
    peer: str
    fit_processor: float = _NAN
    predict_processor: float = _NAN
    peak_memory: float = _NAN
    error: str | None = None


def cost_ratios(rows: Sequence[Row], system: str = "longtail", peer: str = "pecos") -> list[Ratio]:
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
    >>> costs = dict(predict_processor_seconds=1.0, peak_megabytes=300.0)
    >>> rows = [Row("longtail", "letters", 0, fit_processor_seconds=9.0, **costs),
    ...         Row("pecos", "letters", 0, fit_processor_seconds=6.0, **costs)]
    >>> cost_ratios(rows)[0].fit_processor
    1.5
    """
    return [_divide(rows, name, system, peer) for name in dict.fromkeys(row.data for row in rows)]


def _divide(rows: Sequence[Row], data: str, system: str, peer: str) -> Ratio:
    """Return the ratios for one data set."""
    ours, theirs = (
        [row for row in rows if (row.system, row.data) == (name, data)] for name in (system, peer)
    )
    for name, chosen in ((system, ours), (peer, theirs)):
        errors = [row.error for row in chosen if row.error] if chosen else ["not run"]
        if errors:
            return Ratio(data, system, peer, error=f"{name}: {errors[0]}")

    def ratio(cost: str) -> float:
        top, bottom = (fmean(getattr(row, cost) for row in chosen) for chosen in (ours, theirs))
        return top / bottom if bottom else _NAN

    return Ratio(
        data,
        system,
        peer,
        fit_processor=ratio("fit_processor_seconds"),
        predict_processor=ratio("predict_processor_seconds"),
        peak_memory=ratio("peak_megabytes"),
    )
