"""What commands write and print: escaped, never over an input, in every format."""

from __future__ import annotations

import csv
import json
import os
import sys

import numpy as np
import pytest

import longtail
from longtail.cli.outputs import escape_formula
from longtail.cli.show import clean
from tests.cli.test_models import fails, run, write_csv

CLASSES = ["have [v02630189]", "[/y]", "=1+1", "red \x1b[31mfox", "a <b>&", "-3"]


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A model whose classes are what a terminal, a page or a spreadsheet would act on."""
    folder = tmp_path_factory.mktemp("odd")
    rows = [(c, f"word{i} thing{i} {j}") for j in range(8) for i, c in enumerate(CLASSES)]
    table = write_csv(folder / "odd.csv", rows)
    run("fit", table, "--text", "body", "--label", "genus", "-o", folder / "model")
    return folder


def test_classes_keep_their_brackets(odd):
    said = run("explain", odd / "model", "word0 thing0").stdout
    assert "have [v02630189]" in said.replace("\n", " ")
    assert "[/y]" in run("explain", odd / "model", "word1 thing1").stdout
    for name in ("predict", "explain"):
        said = run(name, odd / "model", "word3 thing3")
        assert "\x1b" not in said.stdout + said.stderr
        assert "\\x1b[31mfox" in said.stdout


def test_json_is_escaped_and_reads_the_same(odd):
    said = run("predict", odd / "model", "word3 thing3", "--json").stdout
    assert "\x1b" not in said
    answer = json.loads(said)
    assert answer["class"] == CLASSES[3]
    assert answer["ranking"][0]["class"] == CLASSES[3]


def test_the_report_is_escaped(odd):
    pytest.importorskip("matplotlib")
    page = odd / "report.html"
    columns = ("--text", "body", "--label", "genus")
    run("evaluate", odd / "model", odd / "odd.csv", *columns, "--report", page)
    written = page.read_text()
    assert "<b>&" not in written
    assert "\x1b" not in written
    assert "accuracy on known classes" in written
    assert "unknown to the model" in written
    assert "mean of the per-class F1" in written


def test_the_report_needs_its_extra_before_the_work(odd, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    said = fails("evaluate", odd / "nowhere", odd / "odd.csv", "--report", odd / "no.html")
    assert "longtail[plot]" in said


def test_formulas_are_neutralised(odd, tmp_path):
    out = tmp_path / "out.csv"
    arguments = ("predict", odd / "model", odd / "odd.csv", "--text", "body", "--keep", "genus")
    run(*arguments, "-o", out)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    kept = {row["genus"] for row in rows}
    assert "'=1+1" in kept
    assert "=1+1" not in kept
    assert "-3" in kept  # a number
    assert not any(row["class"].startswith("=") for row in rows)
    run(*arguments, "--no-escape-formulas", "-o", out)
    with out.open(newline="") as file:
        assert "=1+1" in {row["genus"] for row in csv.DictReader(file)}


@pytest.mark.parametrize("text", ["=1", "'=1", "''@x", "+a", "-a", "\tx", "'a", "a=1", "-1.5e3"])
def test_the_rule_is_reversible(text):
    written = escape_formula(text)
    marked = written.startswith("'") and written.lstrip("'")[:1] in tuple("=+-@\t\r")
    assert (written[1:] if marked else written) == text
    assert escape_formula(7) == 7


def test_clean_shows_what_steers():
    assert clean("a\x1b[2J\x9b\u202eb\n") == "a\\x1b[2J\\x9b\\u202eb\n"


def test_outputs_never_replace_inputs(odd, tmp_path):
    model, table = odd / "model", odd / "odd.csv"
    before = model.read_bytes(), table.read_bytes()
    arguments = ("predict", model, table, "--text", "body")
    for written in ("csv", "tsv", "jsonl", "parquet"):
        said = fails(*arguments, "--out-format", written, "-o", model)
        assert "is read by this command" in said
        assert "is read by" in fails(*arguments, "--out-format", written, "-o", table)
    other = tmp_path / "other-model"
    other.write_bytes(before[0])
    assert "is a model" in fails(*arguments, "--out-format", "csv", "-o", other)
    link = tmp_path / "link.csv"
    os.link(table, link)
    assert "is read by" in fails(*arguments, "-o", link)
    columns = ("--text", "body", "--label", "genus")
    assert "is read by" in fails("evaluate", model, table, *columns, "--report", table)
    assert "is read by" in fails(*arguments, "--bad-rows", table, "-o", tmp_path / "o.csv")
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    assert "is no regular file" in fails(*arguments, "-o", pipe)
    assert "is no regular file" in fails("predict", pipe, "a text")
    assert (model.read_bytes(), table.read_bytes()) == before
    assert [name for name in os.listdir(odd) if name.startswith(".longtail")] == []


def test_one_text(odd):
    assert "have [v02630189]" in run("predict", odd / "model", "word0 thing0").stdout
    answer = json.loads(run("predict", odd / "model", "word1 thing1", "--top", 2, "--json").stdout)
    assert answer["ranking"][0]["class"] == "[/y]"
    assert len(answer["ranking"]) == 2
    assert "No such file" in fails("predict", odd / "model", "absent.csv", "--text", "body")


def test_several_files_and_parquet(odd, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [("[/y]", "word1 thing1"), ("-3", "word5 thing5")]
    for i, row in enumerate(rows):
        write_csv(tmp_path / f"part-{i}.csv", [row])
    out = tmp_path / "out.parquet"
    run("predict", odd / "model", tmp_path / "part-*.csv", "--text", "body", "-o", out)
    table = parquet.read_table(out).to_pydict()
    assert table["class"] == ["[/y]", "-3"]
    assert table["line"] == [2, 2]
    assert [os.path.basename(path) for path in table["file"]] == ["part-0.csv", "part-1.csv"]
    both = (tmp_path / "part-0.csv", tmp_path / "part-1.csv")
    columns = ("--text", "body", "--label", "genus", "--unique-labels")
    run("fit", *both, *columns, "-o", tmp_path / "m", "--C", 0.5, "--candidates", 3)
    fitted = longtail.load(tmp_path / "m")
    assert fitted.classes_.tolist() == ["-3", "[/y]"]
    assert fitted.classifier_.get_params()["C"] == 0.5
    assert fitted.classifier_.get_params()["candidates"] == 3


def test_editing_commands(odd, tmp_path):
    model = tmp_path / "model"
    model.write_bytes((odd / "model").read_bytes())
    assert "is now called two" in run("rename", model, "[/y]", "two").stdout
    run("merge", model, "two", "a <b>&", "--quiet")
    classes = longtail.load(model).classes_.tolist()
    assert "two" not in classes
    run("undo", model, 2)
    assert longtail.load(model).classes_.tolist() == sorted(CLASSES)
    run("remove", model, "[/y]", "--json")
    run("compact", model)
    assert "[/y]" not in longtail.load(model).classes_.tolist()
    assert "no class 'absent'" in fails("rename", model, "absent", "x")


def test_version():
    assert run("--version").stdout == f"longtail {longtail.__version__}\n"


def test_the_product_never_imports_the_benchmark():
    from pathlib import Path

    for path in Path(longtail.__file__).parent.rglob("*.py"):
        assert "longtail_bench" not in path.read_text(encoding="utf-8"), path


def test_a_precision_that_cannot_be_reached(odd, tmp_path):
    rng = np.random.default_rng(0)
    rows = [(str(rng.integers(4)), f"word{rng.integers(9)}") for _ in range(300)]
    table = write_csv(tmp_path / "noise.csv", rows)
    run("fit", table, "--text", "body", "--label", "genus", "-o", tmp_path / "m")
    said = fails("predict", tmp_path / "m", table, "--text", "body", "--precision", 0.99)
    assert "cannot be reached" in said
