"""Rows of results -> tables in the layout of the paper's Table 3, and figures.

Everything shown is computed from the rows; figures that the paper states stand in a table of their
own that says so.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from longtail_bench.presets import PRESETS, PaperRow
from longtail_bench.published import PUBLISHED_SETS
from longtail_bench.rows import MEMORY, OK, TEST, TIME_OUT, Row
from longtail_bench.systems import SYSTEMS
from longtail_bench.tables import Table

MISSING = "–"
_GROUPS = {
    "paper": "The systems of the paper",
    "simple": "Simple baselines",
    "today": "Today's systems",
}


@dataclass(frozen=True)
class Entry:
    """One system on one data set, over all its seeds."""

    title: str  # what the system is called in tables
    rows: tuple[Row, ...]  # one for each seed

    @property
    def row(self) -> Row:
        """The first row, for what does not depend on the seed."""
        return self.rows[0]

    @property
    def failure(self) -> Row | None:
        """The first row without results."""
        return next((row for row in self.rows if row.outcome != OK), None)

    def mean(self, value: Callable[[Row], float]) -> float:
        """Return the mean over the seeds; NaN if one has no results."""
        return math.nan if self.failure else fmean(value(row) for row in self.rows)

    @property
    def total_seconds(self) -> float:
        """Processor time of fitting and predicting."""
        return self.mean(lambda row: row.fit_cpu_seconds + row.predict_cpu_seconds)


@dataclass(frozen=True)
class Measure:
    """A line of Table 3: its name, the value of an entry, how it is printed, what is best."""

    name: str
    value: Callable[[Row], float]
    spell: Callable[[float], str]
    best: Callable[[Iterable[float]], float]


def _seconds(value: float) -> str:
    return f"{value:.1f}s" if value < 100 else f"{value:.0f}s"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _megabytes(value: float) -> str:
    return f"{value:.0f}M" if value < 1000 else f"{value / 1000:.1f}G"


TRAIN = "train time"
TOTAL_MEMORY = "total memory"
MEASURES = (
    Measure(TRAIN, lambda row: row.fit_cpu_seconds, _seconds, min),
    Measure("predict time", lambda row: row.predict_cpu_seconds, _seconds, min),
    Measure(TOTAL_MEMORY, lambda row: row.peak_megabytes, _megabytes, min),
    Measure("accuracy", lambda row: row.accuracy, _percent, max),
    Measure("MaF1", lambda row: row.macro_f1_of_means, _percent, max),
    Measure("mean F1", lambda row: row.macro_f1, _percent, max),
    Measure("top 5", lambda row: row.top_5, _percent, max),
    Measure("model", lambda row: row.model_bytes / 1e6, _megabytes, min),
)
_NOTES = (
    "Times are CPU time over all threads and processes, without reading data and without "
    "conversion into a system's file format; memory is the peak of all processes of a system, data "
    "and interpreter included; model is its size when stored.",
    "MaF1 is the harmonic mean of macro precision and macro recall, as the paper defines it; mean "
    "F1 is the mean of the per-class F1. The best of each line is bold.",
)


def collect(rows: Sequence[Row]) -> dict[str, list[Entry]]:
    """Group the rows on test documents by data set and system.

    Parameters
    ----------
    rows : sequence of Row
        Of one file. Of two rows of a system with the same settings and seed the later counts,
        also where the number of threads differs.

    Returns
    -------
    dict of str to list of Entry
        For each data set its entries in the order of `SYSTEMS`. A system that ran with several
        settings has an entry for each.
    """
    tested = [row for row in rows if row.split == TEST]
    groups: dict[tuple[str, str, bool, str], dict[int, Row]] = {}
    for row in tested:
        settings = json.dumps(row.settings, sort_keys=True)
        # Seeds of a tuned system may have found different settings; they are one entry still.
        index = (row.data, row.system, row.tuned > 0, "" if row.tuned else settings)
        groups.setdefault(index, {})[row.seed] = row
    order = {name: position for position, name in enumerate(SYSTEMS)}
    entries: dict[str, list[Entry]] = {}
    for index in sorted(groups, key=lambda index: order.get(index[1], len(order))):
        data, system, tuned, settings = index
        variants = sum(other[:3] == index[:3] for other in groups)
        title = SYSTEMS[system].title if system in SYSTEMS else system
        title += ", tuned" if tuned else ""
        title += f", {settings}" if variants > 1 else ""
        entries.setdefault(data, []).append(Entry(title, tuple(groups[index].values())))
    return {data: entries[data] for data in dict.fromkeys(row.data for row in tested)}


def result_tables(entries: dict[str, list[Entry]]) -> list[Table]:
    """Return a table in the layout of the paper's Table 3 for each group of systems."""
    tables = []
    for group, title in _GROUPS.items():
        selected = {
            data: [entry for entry in some if _belongs(entry, group)]
            for data, some in entries.items()
        }
        titles = list(dict.fromkeys(entry.title for some in selected.values() for entry in some))
        if titles:
            tables.append(_result_table(title, titles, selected))
    if tables:  # said once
        tables[0] = replace(tables[0], notes=_NOTES + tables[0].notes)
    return tables


def quoted_table() -> Table:
    """Return the paper's own Table 3: other data and another machine."""
    systems = list(dict.fromkeys(name for preset in PRESETS.values() for name in preset.results))
    lines = {
        TRAIN: "train_time",
        "predict time": "predict_time",
        TOTAL_MEMORY: "memory",
        "accuracy": "accuracy",
        "MaF1": "macro_f1",
    }
    rows = []
    for preset in PRESETS.values():
        n_documents = preset.n_train + preset.n_test + preset.n_heldout
        side = _sizes(preset.name, n_documents, preset.n_terms, preset.n_classes)
        for index, (name, field) in zip(side, lines.items(), strict=False):
            cells = (getattr(_quoted(preset.results, system), field) for system in systems)
            rows.append((index, name, *cells))
    header = ("data †", "", *(f"{system} †" for system in systems))
    footnote = (
        "† Quoted, not measured here: Table 3 of the paper, its data, its machine, as printed."
    )
    return Table("Quoted from the paper", header, rows, (footnote,))


def band_table(data: str, entries: Sequence[Entry]) -> Table:
    """Return accuracy and mean F1 by number of training documents of a class."""
    shown = [entry for entry in entries if not entry.failure]
    names = [band.name for band in shown[0].row.bands]
    rows = []
    for entry in shown:
        cells = []
        for index, _ in enumerate(names):
            accuracy = entry.mean(lambda row, index=index: row.bands[index].accuracy)  # type: ignore[misc]
            f1 = entry.mean(lambda row, index=index: row.bands[index].macro_f1)  # type: ignore[misc]
            cells.append(f"{100 * accuracy:.1f} / {100 * f1:.1f}")
        rows.append((entry.title, *cells))
    footnote = "Accuracy / mean F1 in percent, by number of training documents of a class."
    return Table(f"{data}: frequent and rare classes", ("", *names), rows, (footnote,))


def settings_table(entries: dict[str, list[Entry]]) -> Table:
    """Return what each entry ran with."""
    rows = [
        (
            data,
            entry.title,
            ", ".join(str(row.seed) for row in entry.rows),
            "; ".join(dict.fromkeys(_spell_settings(row) for row in entry.rows)),
            str(entry.row.n_threads),
            _spell_load(entry.row),
            ", ".join(f"{name} {version}" for name, version in entry.row.versions.items()),
        )
        for data, some in entries.items()
        for entry in some
    ]
    header = ("data", "system", "seeds", "settings", "threads", "load", "versions")
    machines = dict.fromkeys(
        f"{row.machine['processor']}, {row.machine['cores']} cores, "
        f"{row.machine['memory_megabytes'] / 1000:.0f} GB, {row.machine['system']}"
        for some in entries.values()
        for entry in some
        for row in entry.rows
        if row.machine
    )
    notes = ["Load is the mean number of running processes in the minute before and after a run."]
    notes += [f"Machine: {machine}." for machine in machines]
    return Table("Settings", header, rows, tuple(notes))


def write_report(rows: Sequence[Row], folder: str | os.PathLike[str]) -> list[Path]:
    """Write tables as Markdown and HTML and figures as PNG and SVG.

    Parameters
    ----------
    rows : sequence of Row
        What `read_rows` returned.
    folder : str or path-like
        Created if need be; files of an earlier report are replaced.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    ValueError
        If there is no row on test documents.
    ImportError
        If matplotlib is not installed.
    """
    from longtail_bench.report_figures import plot_accuracy_against_time, plot_costs

    collected = collect(rows)
    if not collected:
        raise ValueError("there is no row on test documents to report.")
    sets = {
        data: some
        for data, some in collected.items()
        if any(row.measures for entry in some for row in entry.rows)
    }
    entries = {data: some for data, some in collected.items() if data not in sets}
    index = Path(folder)
    index.mkdir(parents=True, exist_ok=True)
    figures = {}
    if entries:
        figures["costs"] = plot_costs(entries)
        figures["accuracy-time"] = plot_accuracy_against_time(entries)
    written = []
    for name, figure in figures.items():
        for ending in ("png", "svg"):
            written.append(index / f"{name}.{ending}")
            figure.savefig(written[-1], dpi=130)
    bands = [
        band_table(data, some)
        for data, some in entries.items()
        if any(not entry.failure for entry in some)
    ]
    tables = [*result_tables(entries), quoted_table(), *bands, *_label_set_tables(sets)]
    tables.append(settings_table(collected))
    for path, text in (
        (index / "report.md", _to_markdown(tables, figures)),
        (index / "report.html", _to_html(tables, figures)),
    ):
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _label_set_tables(entries: dict[str, list[Entry]]) -> list[Table]:
    """Return the tables of data sets whose documents have label sets."""
    from longtail_bench.report_label_sets import (
        label_band_table,
        label_set_table,
        published_table,
        repository_table,
    )

    tables = []
    for data, some in entries.items():
        tables += [label_set_table(data, some), label_band_table(data, some)]
        published = published_table(data, some)
        tables += [] if published is None else [published]
        if data.lower() in PUBLISHED_SETS:
            tables.append(repository_table(PUBLISHED_SETS[data.lower()], some))
    return tables


def _result_table(title: str, titles: list[str], entries: dict[str, list[Entry]]) -> Table:
    """Return one table: a block of lines for each data set, a column for each system."""
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    for data, some in entries.items():
        by_title = {entry.title: entry for entry in some}
        sizes = next((entry.row for entry in some if entry.row.n_train), None)
        side = [f"**{data}**"]
        if sizes:
            n_documents = sizes.n_train + sizes.n_test
            side = _sizes(data, n_documents, sizes.n_terms, sizes.n_classes)
        side += [""] * (len(MEASURES) - len(side))
        for index, measure in zip(side, MEASURES, strict=True):
            cells = [_cell(by_title.get(name), measure) for name in titles]
            values = [by_title[name].mean(measure.value) for name in titles if name in by_title]
            known = [value for value in values if not math.isnan(value)]
            best = measure.spell(measure.best(known)) if len(known) > 1 else None
            cells = [f"**{cell}**" if cell == best else cell for cell in cells]
            rows.append((index, measure.name, *cells))
        notes += [
            f"{entry.title} on {data}: {(entry.failure.error or '').rstrip('.')}."
            for entry in some
            if entry.failure
        ]
    return Table(title, ("data", "", *titles), rows, tuple(notes))


def _cell(entry: Entry | None, measure: Measure) -> str:
    """Return one value, or as much as is known of it."""
    if entry is None:
        return MISSING
    failure = entry.failure
    if failure is None:
        value = entry.mean(measure.value)
        return MISSING if math.isnan(value) else measure.spell(value)
    if failure.outcome == TIME_OUT and measure.name == TRAIN:
        return f">{failure.time_limit:.0f}s"
    if failure.outcome == MEMORY and measure.name == TOTAL_MEMORY:
        return f">{_megabytes(failure.memory_limit)}"
    return "NA"


def _sizes(name: str, n_documents: int, n_terms: int, n_classes: int) -> list[str]:
    """Return the first column of a block, as the paper has it."""
    return [f"**{name}**", f"m = {n_documents:,}", f"d = {n_terms:,}", f"K = {n_classes:,}", ""]


def _belongs(entry: Entry, group: str) -> bool:
    """Tell whether an entry stands in a group's table; ours stands beside the paper's systems."""
    system = SYSTEMS.get(entry.row.system)
    return (system.group if system else "today") == group or (
        group == "paper" and entry.row.system == "longtail"
    )


def _quoted(results: object, system: str) -> PaperRow:
    """Return what the paper prints for a system."""
    row: PaperRow = results[system]  # type: ignore[index]
    return row


def _spell_settings(row: Row) -> str:
    """Return the settings of a row as a user would write them."""
    values = row.parameters or row.settings
    spelled = ", ".join(f"{name}={value}" for name, value in values.items()) or "defaults"
    return spelled + (f" (best of {row.tuned} on held-out documents)" if row.tuned else "")


def _spell_load(row: Row) -> str:
    """Return how busy the machine was, where the row says it."""
    load = row.machine.get("load")
    return " to ".join(f"{value:.1f}" for value in load) if load else MISSING


def _to_markdown(tables: Sequence[Table], figures: Iterable[str]) -> str:
    """Return the whole report in Markdown."""
    pictures = "\n".join(f"![{name}]({name}.png)\n" for name in figures)
    parts = ["# Benchmark results\n", "Generated by `longtail bench report`; do not edit.\n"]
    return "\n".join([*parts, pictures, *(table.to_markdown() for table in tables)])


def _to_html(tables: Sequence[Table], figures: Iterable[str]) -> str:
    """Return the whole report as a page that stands beside its figures."""
    pictures = "\n".join(f'<p><img src="{name}.svg" alt="{name}"></p>' for name in figures)
    style = (
        "body{font-family:sans-serif;margin:2em}table{border-collapse:collapse}"
        "td,th{border:1px solid #ccc;padding:.25em .6em;text-align:right}"
        "td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}img{max-width:100%}"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>Benchmark results</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<h1>Benchmark results</h1>\n{pictures}\n"
        + "\n".join(table.to_html() for table in tables)
        + "</body>\n</html>\n"
    )
