"""Rows of documents with label sets -> tables: measures, class frequency, published figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from longtail_bench.cli.show import LABEL_SET_MEASURES
from longtail_bench.label_set_measures import PUBLISHED
from longtail_bench.published import COLUMNS, PublishedSet
from longtail_bench.report import MISSING, Entry
from longtail_bench.tables import Table

_NOTES = (
    "In percent. Labels that training never saw are left out of the truth but for their own "
    "column. F1@5 is the mean of the documents' F1; PSP and PSnDCG use propensities with A = 0.55 "
    "and B = 1.5 on the training counts. The best of each column is bold.",
    "Times are CPU time over all threads and processes, without reading data and without "
    "conversion into a system's file format; memory is the peak of all processes of a system.",
)
_LANGUAGES = ("de", "en")


def label_set_table(data: str, entries: Sequence[Entry]) -> Table:
    """Return what each system reached and cost on one data set, the best P@1 first."""
    shown = sorted(
        (entry for entry in entries if not entry.failure), key=lambda entry: -_mean(entry, "P@1")
    )
    best = {
        name: max((round(_mean(entry, name), 3) for entry in shown), default=math.nan)
        for name in LABEL_SET_MEASURES
    }
    rows = [
        (
            entry.title,
            *(_cell(_mean(entry, name), best[name]) for name in LABEL_SET_MEASURES),
            f"{entry.mean(lambda row: row.fit_cpu_seconds):.0f}",
            f"{entry.mean(lambda row: row.predict_cpu_seconds / row.n_test * 1e6):.0f}",
            f"{entry.mean(lambda row: row.peak_megabytes):,.0f}",
        )
        for entry in shown
    ]
    header = ("", *LABEL_SET_MEASURES, "fit, CPU s", "predict, CPU µs", "memory, MB")
    failures = tuple(
        f"{entry.title}: {(entry.failure.error or '').rstrip('.')}."
        for entry in entries
        if entry.failure
    )
    sizes = next((entry.row for entry in entries if entry.row.n_train), None)
    title = data
    if sizes is not None:
        title += (
            f": {sizes.n_train:,} / {sizes.n_test:,} documents with label sets, "
            f"{sizes.n_classes:,} classes, {sizes.n_terms:,} terms"
        )
    return Table(title, header, rows, _NOTES + failures)


def label_band_table(data: str, entries: Sequence[Entry]) -> Table:
    """Return recall and mean F1 at 5 by number of training documents of a class."""
    shown = [entry for entry in entries if not entry.failure]
    bands = shown[0].row.label_bands
    rows = []
    for entry in shown:
        cells = []
        for i, _ in enumerate(bands):
            recall = entry.mean(lambda row, i=i: row.label_bands[i].recall)  # type: ignore[misc]
            f1 = entry.mean(lambda row, i=i: row.label_bands[i].macro_f1)  # type: ignore[misc]
            cells.append(f"{_percent(recall)} / {_percent(f1)}")
        rows.append((entry.title, *cells))
    header = ("", *(f"{band.name} ({band.n_labels:,})" for band in bands))
    footnote = (
        "Recall / mean of the per-class F1 among the first five classes, in percent, by number of "
        "training documents of a class (and how many labels the band has)."
    )
    return Table(f"{data}: frequent and rare classes", header, rows, (footnote,))


def published_table(data: str, entries: Sequence[Entry]) -> Table | None:
    """Return F1@5 and nDCG with all labels in the truth beside what others published."""
    if data not in PUBLISHED:
        return None
    rows = [
        (f"{name} †", *(cell for f1, ndcg in (values[:2], values[2:]) for cell in _pair(f1, ndcg)))
        for name, values in PUBLISHED[data].items()
    ]
    for entry in entries:
        if entry.failure or "all labels de F1@5" not in entry.row.measures:
            continue
        cells: list[str] = []
        for language in _LANGUAGES:
            names = (f"all labels {language} {name}" for name in ("F1@5", "nDCG@5", "nDCG@20"))
            cells += [f"{_mean(entry, name):.3f}" for name in names]
        rows.append((entry.title, *cells))
    header = (
        "",
        *(f"{code} {name}" for code in _LANGUAGES for name in ("F1@5", "nDCG@5", "nDCG@20")),
    )
    notes = (
        "All labels are in the truth, also those that training never saw, which no system here but "
        "one with names can find. F1@5 is the mean of the documents' F1.",
        "† Quoted from Annif's team, not measured here: the same documents, but training text "
        "translated and partly written by a large language model; their nDCG is given without its "
        "depth and stands in the column nDCG@20.",
    )
    return Table(f"{data}: beside published figures", header, rows, notes)


def repository_table(published: PublishedSet, entries: Sequence[Entry]) -> Table:
    """Return what systems reached beside what others published, the best P@1 first."""
    sources = list(dict.fromkeys(row.source for row in published.rows))
    lines: list[tuple[tuple[float, ...], str, tuple[str, ...]]] = [
        (row.values, f"{row.system} (published) [{sources.index(row.source) + 1}]", (MISSING,) * 2)
        for row in published.rows
    ]
    shown = [entry for entry in entries if not entry.failure]
    for entry in shown:
        costs = (
            f"{entry.mean(lambda row: row.fit_cpu_seconds):.1f}",
            f"{entry.mean(lambda row: row.predict_cpu_seconds / row.n_test * 1e6):.0f}",
        )
        values = tuple(100 * _mean(entry, name) for name in COLUMNS.values())
        lines.append((values, entry.title, costs))
    rows = [
        (title, *(MISSING if math.isnan(value) else f"{value:.2f}" for value in values), *costs)
        for values, title, costs in sorted(lines, key=lambda line: -line[0][0])
    ]
    title = published.name
    notes = [
        "In percent. All labels are in the truth, also those that training never saw, and a "
        "document without label counts as 0. PSP uses propensities with A = 0.55 and B = 1.5 on "
        "the training counts. Times are CPU time over all threads, predict per document.",
        *(f"[{i}] Quoted, not measured here: {source}." for i, source in enumerate(sources, 1)),
    ]
    if sizes := next((entry.row for entry in entries if entry.row.n_train), None):
        title += (
            f": {sizes.n_train:,} / {sizes.n_test:,} documents, {sizes.n_classes:,} classes with "
            f"training documents, {sizes.n_terms:,} terms"
        )
        if sizes.fractions:
            notes.append(
                "The values of the files are not all whole numbers: LongTailClassifier takes them "
                "for counts, as `fit --format xmc` does; systems that weigh terms take them as "
                "weights, rows of unit length."
            )
        if sizes.n_unlabelled:
            notes.append(
                f"{sizes.n_unlabelled:,} training documents without a label were left out."
            )
    notes += [
        f"{entry.title}: {(entry.failure.error or '').rstrip('.')}."
        for entry in entries
        if entry.failure
    ]
    header = ("", *COLUMNS, "fit, CPU s", "predict, CPU µs")
    return Table(title, header, rows, tuple(notes))


def _pair(f1: float, ndcg: float) -> tuple[str, str, str]:
    """Return the cells of a published pair."""
    return f"{f1:.3f}", MISSING, f"{ndcg:.3f}"


def _mean(entry: Entry, name: str) -> float:
    """Return a measure's mean over the seeds."""
    return entry.mean(lambda row: row.measures.get(name, math.nan))


def _percent(value: float) -> str:
    """Return a share in percent, or a dash."""
    return MISSING if math.isnan(value) else f"{100 * value:.1f}"


def _cell(value: float, best: float) -> str:
    """Return a share in percent, bold where it is the best."""
    cell = _percent(value)
    return f"**{cell}**" if round(value, 3) == best and best > 0 else cell
