"""`longtail bench run | report | systems | environments` as a user runs them."""

import json
import os
import subprocess
import sys

import pytest
from benchmark_data import write_counts
from longtail_bench.rows import read_rows

from tests.conftest import make_problem

pytest.importorskip("typer")


@pytest.fixture
def letters(tmp_path):
    problem = make_problem(n_documents=300, n_classes=20, n_terms=60)
    return write_counts(tmp_path / "data" / "letters", problem.X, problem.y, 220)


def bench(*arguments, code=0, **variables):
    result = subprocess.run(
        [sys.executable, "-m", "longtail", "bench", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    assert result.returncode == code, result.stderr
    return result


def test_run_and_report(letters, tmp_path):
    out = tmp_path / "results.jsonl"
    arguments = ("run", "--folder", letters.parent, "--out", out, "--set", "bm25.k1=2.5")
    result = bench(*arguments, "--systems", "bm25,knn", "--json")
    rows = json.loads(result.stdout)
    assert [row["system"] for row in rows] == ["bm25", "knn"]
    assert rows[0]["settings"] == {"k1": 2.5}
    assert "letters, knn, seed 0: accuracy" in result.stderr
    for wrong in ("nonsense", "bm25,nonsense"):
        line = bench(*arguments, "--systems", wrong, code=1).stderr
        assert line.startswith("longtail: systems must be among")
        assert len(line.splitlines()) == 1
    assert len(read_rows(out)) == 2
    listed = bench("report", out, "--out", tmp_path / "report").stdout
    assert "report.html" in listed
    assert "| m = 300 |" in (tmp_path / "report" / "report.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--systems", "bm25", "--set", "bm25.k1"), "--set must be like ova.C=10; got"),
        (("run", "--systems", "bm25", "--seeds", "one"), "--seeds must be integers"),
        (("run", "--data", "digits", "--systems", "bm25"), "no data set digits"),
        (("report", "absent.jsonl"), "absent.jsonl"),
        (("environments", "nonsense"), "environments must be among pecos, "),
    ],
)
def test_mistakes_are_one_line(letters, tmp_path, arguments, message):
    options = ("--folder", letters.parent, "--out", tmp_path / "rows")
    line = bench(*arguments, *(options if arguments[0] == "run" else ()), code=1).stderr
    assert line.startswith("longtail: ")
    assert message in line
    assert len(line.splitlines()) == 1


def test_environments_that_cannot_be_created(tmp_path):
    (tmp_path / "file").touch()
    place = {"LONGTAIL_ENVIRONMENTS": str(tmp_path / "file")}
    result = bench("environments", "pecos", "omikuji", code=1, **place)
    assert [line.split(" in ")[0] for line in result.stderr.splitlines()] == [
        "longtail: no environment for pecos",
        "longtail: no environment for omikuji",
    ]
    systems = json.loads(bench("systems", "--json", **place).stdout)
    states = {entry["system"]: entry["environment"] for entry in systems}
    assert states["bm25"] == "none needed"
    assert states["parabel"] == "omikuji, not created yet"


def test_run_takes_any_table(tmp_path):
    lines = [f"class {i % 6}\tterm{i % 6} word{i % 7} common" for i in range(60)]
    table = tmp_path / "animals.tsv"
    table.write_text("\n".join(["label\tbody", *lines]) + "\n")
    out = tmp_path / "results.jsonl"
    arguments = ("run", "--data", table, "--systems", "bm25", "--out", out)
    line = bench(*arguments, code=1).stderr
    assert "--text is missing: animals.tsv is a table" in line
    result = bench(*arguments, "--text", "body", "--label", "label", "--json")
    (row,) = json.loads(result.stdout)
    assert (row["data"], row["n_classes"], row["accuracy"]) == ("animals", 6, 1.0)


def test_run_takes_label_sets_and_a_table_to_test(tmp_path):
    sets = [[f"c{i % 6}", f"c{(i + 1) % 6}"] for i in range(90)]
    rows = [f"{'; '.join(labels)}\t{' '.join(f't{c}' for c in labels)}" for labels in sets]
    train, test = tmp_path / "train.tsv", tmp_path / "test.tsv"
    train.write_text("\n".join(["label\tbody", *rows[:72]]) + "\n")
    test.write_text("\n".join(["label\tbody", *rows[72:]]) + "\n")
    arguments = ("run", "--data", train, "--systems", "text,centroid", "--threads", 1)
    columns = ("--text", "body", "--label", "label", "--label-separator", ";")
    results = bench(*arguments, *columns, "--test", test, "--out", tmp_path / "a", "--json")
    rows = json.loads(results.stdout)
    assert [(row["system"], row["n_test"], row["error"]) for row in rows] == [
        ("text", 18, None),
        ("centroid", 18, None),
    ]
    for row in rows:
        assert (row["measures"]["P@1"], row["n_classes"]) == (1.0, 6)
    # Tests of the table itself are another run, which a file of results knows.
    again = bench(*arguments, *columns, "--out", tmp_path / "a", "--json")
    assert [row["n_test"] for row in json.loads(again.stdout)] == [14, 14]
    assert len(read_rows(tmp_path / "a")) == 4


def test_texts_are_a_system_of_tables(letters, tmp_path):
    lines = [f"class {i % 6}\tterm{i % 6} word{i % 7} common" for i in range(60)]
    table = tmp_path / "animals.tsv"
    table.write_text("\n".join(["label\tbody", *lines]) + "\n")
    arguments = ("run", "--systems", "text", "--threads", 1, "--json")
    columns = ("--text", "body", "--label", "label")
    (row,) = json.loads(
        bench(*arguments, "--data", table, *columns, "--out", tmp_path / "a").stdout
    )
    assert (row["accuracy"], row["error"]) == (1.0, None)
    (row,) = json.loads(bench(*arguments, "--data", letters, "--out", tmp_path / "b").stdout)
    assert "the data set has counts only" in row["error"]
    line = bench(*arguments, "--data", letters, "--test", table, code=1).stderr
    assert "--test goes with a table" in line
