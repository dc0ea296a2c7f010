"""Rows -> tables and figures."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from longtail_bench.presets import PRESETS
from longtail_bench.report import (
    Table,
    band_table,
    collect,
    quoted_table,
    result_tables,
    settings_table,
    write_report,
)
from longtail_bench.rows import Row, read_rows

from longtail.metrics.classes import frequency_report

MACHINE = {"processor": "abacus", "cores": 2, "memory_megabytes": 8000, "system": "Linux 6"}
BANDS = tuple(frequency_report([0, 0, 1, 2], [0, 1, 1, 1], {0: 5, 1: 1, 2: 9}))


def make_row(system, data="letters", seed=0, cost=1.0, accuracy=0.5, **fields):
    row = Row(
        system,
        data,
        seed,
        n_train=1000,
        n_test=200,
        n_classes=26,
        n_terms=3000,
        accuracy=accuracy,
        macro_f1=accuracy / 2,
        macro_f1_of_means=accuracy / 2 + 0.01,
        top_5=accuracy + 0.2,
        fit_cpu_seconds=10 * cost,
        predict_cpu_seconds=cost,
        peak_megabytes=400 * cost,
        model_bytes=int(7e6 * cost),
        bands=BANDS,
        n_threads=2,
        time_limit=600.0,
        memory_limit=12000.0,
        versions={"python": "3.11.7"},
        machine=MACHINE,
    )
    return replace(row, **fields)


def make_failure(system, outcome, error, data="letters"):
    sizes = {"n_train": 1000, "n_test": 200, "n_classes": 26, "n_terms": 3000}
    limits = {"time_limit": 600.0, "memory_limit": 12000.0, "machine": MACHINE}
    return Row(system, data, 0, outcome=outcome, error=error, **sizes, **limits)


ROWS = [
    make_row("recalltree", cost=2.0, accuracy=0.25, top_5=float("nan")),
    make_failure("ova", "time", "not finished after 600 s"),
    make_failure("msvm", "memory", "more than 12,000 MB of memory"),
    make_row("longtail", seed=0, accuracy=0.5),
    make_row("longtail", seed=1, accuracy=0.7, cost=3.0),
    make_row("bm25", accuracy=0.4, split="held-out"),
    make_row("bm25", accuracy=0.4, cost=0.01),
    make_row("paper", data="digits", accuracy=0.9, cost=30.0),
]

TABLE = """\
## The systems of the paper

| data |  | LongTailClassifier | OVA | M-SVM | RecallTree | (π,κ)-DS |
|---|---|---|---|---|---|---|
| **letters** | train time | **20.0s** | >600s | NA | **20.0s** | – |
| m = 1,200 | predict time | **2.0s** | NA | NA | **2.0s** | – |
| d = 3,000 | total memory | **800M** | NA | >12.0G | **800M** | – |
| K = 26 | accuracy | **60.0%** | NA | NA | 25.0% | – |
|  | MaF1 | **31.0%** | NA | NA | 13.5% | – |
|  | mean F1 | **30.0%** | NA | NA | 12.5% | – |
|  | top 5 | 80.0% | NA | NA | – | – |
|  | model | **14M** | NA | NA | **14M** | – |
| **digits** | train time | – | – | – | – | 300s |
| m = 1,200 | predict time | – | – | – | – | 30.0s |
| d = 3,000 | total memory | – | – | – | – | 12.0G |
| K = 26 | accuracy | – | – | – | – | 90.0% |
|  | MaF1 | – | – | – | – | 46.0% |
|  | mean F1 | – | – | – | – | 45.0% |
|  | top 5 | – | – | – | – | 110.0% |
|  | model | – | – | – | – | 210M |

"""


def test_table_in_the_layout_of_the_paper():
    paper, simple, today = result_tables(collect(ROWS))
    text = paper.to_markdown()
    assert text.startswith(TABLE)
    notes = text.removeprefix(TABLE).splitlines()
    assert notes[0].startswith("- Times are CPU time")
    assert notes[1].startswith("- MaF1 is the harmonic mean")
    assert notes[2:] == [
        "- OVA on letters: not finished after 600 s.",
        "- M-SVM on letters: more than 12,000 MB of memory.",
    ]
    assert simple.header == ("data", "", "BM25")
    assert today.header == ("data", "", "LongTailClassifier")
    assert not today.notes


def test_the_later_row_counts_and_settings_are_told_apart():
    rows = [
        make_row("bm25", accuracy=0.1),
        make_row("bm25", accuracy=0.2),
        make_row("bm25", accuracy=0.3, settings={"k1": 2}),
        make_row("bm25", accuracy=0.4, settings={"k1": 2}, tuned=5),
        make_row("bm25", accuracy=0.6, settings={"k1": 1}, tuned=5, seed=1),
    ]
    entries = collect(rows)["letters"]
    assert [(entry.title, entry.row.accuracy) for entry in entries] == [
        ("BM25, {}", 0.2),
        ('BM25, {"k1": 2}', 0.3),
        ("BM25, tuned", 0.4),
    ]
    assert entries[2].mean(lambda row: row.accuracy) == 0.5
    (line,) = settings_table({"letters": entries[2:]}).rows
    assert line[2:4] == (
        "0, 1",
        "k1=2 (best of 5 on held-out documents); k1=1 (best of 5 on held-out documents)",
    )


def test_threads_are_no_seeds():
    busy = MACHINE | {"load": [6.62, 5.0]}
    rows = [
        make_row("bm25", accuracy=0.1, n_threads=2),
        make_row("bm25", accuracy=0.2, n_threads=1),
        make_row("bm25", accuracy=0.3, n_threads=2, machine=busy),
        make_row("bm25", accuracy=0.5, n_threads=2, seed=1),
    ]
    entries = collect(rows)
    assert [row.accuracy for row in entries["letters"][0].rows] == [0.3, 0.5]
    table = settings_table(entries)
    assert table.rows[0][4:6] == ("2", "6.6 to 5.0")
    assert settings_table(collect(ROWS)).rows[0][5] == "–"
    # One machine, however busy it was
    assert sum(note.startswith("Machine:") for note in table.notes) == 1


def test_quoted_figures_are_marked_and_as_printed():
    table = quoted_table()
    assert table.header[2:] == tuple(f"{name} †" for name in PRESETS["lshtc1"].results)
    assert len(table.rows) == 25
    assert table.rows[3][-1] == "37.4%"
    assert table.rows[1][0] == "m = 163,589"
    assert "not measured here" in table.notes[0]


def test_bands():
    entries = collect(ROWS)["letters"]
    table = band_table("letters", entries)
    assert table.header[1:] == tuple(band.name for band in BANDS)
    assert [row[0] for row in table.rows] == ["LongTailClassifier", "RecallTree", "BM25"]
    one = BANDS[0]
    assert table.rows[0][1] == f"{100 * one.accuracy:.1f} / {100 * one.macro_f1:.1f}"


class Checker(HTMLParser):
    """Counts cells and sees that every tag is closed in its turn."""

    def __init__(self):
        super().__init__()
        self.open, self.cells = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open:
            self.cells.append(data)


def test_cells_are_escaped():
    table = Table("a < b", ("x", "y"), [("**a|b**", "<script>")], ("a & b",))
    assert r"| **a\|b** | <script> |" in table.to_markdown()
    assert "<td><b>a|b</b></td><td>&lt;script&gt;</td>" in table.to_html()
    assert "<h2>a &lt; b</h2>" in table.to_html()
    assert "<li>a &amp; b</li>" in table.to_html()


def test_files_of_a_report(tmp_path):
    from matplotlib.image import imread

    written = write_report(ROWS, tmp_path / "report")
    assert sorted(path.name for path in written) == [
        "accuracy-time.png",
        "accuracy-time.svg",
        "costs.png",
        "costs.svg",
        "report.html",
        "report.md",
    ]
    for path in written:
        if path.suffix == ".png":
            assert np.ptp(imread(path)[:, :, 0]) > 0.5  # something is drawn
        elif path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
    checker = Checker()
    checker.feed((tmp_path / "report" / "report.html").read_text())
    assert checker.open == []
    assert {"OVA", "60.0%", ">600s"} <= set(checker.cells) | {"OVA"}
    text = (tmp_path / "report" / "report.md").read_text()
    assert TABLE in text
    assert "![costs](costs.png)" in text
    assert "abacus, 2 cores, 8 GB, Linux 6" in text


def test_figures_show_what_has_no_result():
    from longtail_bench.report_figures import plot_accuracy_against_time, plot_costs

    entries = collect(ROWS)
    costs = plot_costs(entries)
    texts = [text.get_text().strip() for axes in costs.axes for text in axes.texts]
    assert texts.count("time limit") == texts.count("memory limit") == 3
    points = plot_accuracy_against_time(entries).axes[0]
    names = [text.get_text() for text in points.texts]
    assert sorted(names) == ["BM25", "LongTailClassifier", "RecallTree"]
    nothing = collect([make_failure("ova", "failed", "no")])
    assert plot_costs(nothing).axes
    assert plot_accuracy_against_time(nothing).axes


def test_nothing_to_report(tmp_path):
    with pytest.raises(ValueError, match="no row on test documents"):
        write_report([make_row("bm25", split="held-out")], tmp_path)
    (only,) = result_tables(collect([make_failure("ova", "failed", "no")]))
    assert "OVA on letters: no." in only.notes
    files = write_report([make_failure("ova", "failed", "no")], tmp_path)
    assert all(path.stat().st_size for path in files)


def test_rows_of_earlier_versions_are_read():
    path = Path(__file__).parents[2] / "docs" / "benchmarks" / "results.jsonl"
    rows = [row for row in read_rows(path) if row.error is None]
    assert rows
    assert all(row.fit_cpu_seconds > 0 and row.predict_cpu_seconds > 0 for row in rows)
    assert {row.split for row in rows} <= {"test", "held-out"}
