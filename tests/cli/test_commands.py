"""The commands as a user runs them: in a process of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from inspect import signature

import numpy as np
import pytest
import scipy.sparse as sp

import longtail
from longtail import Teacher, TextClassifier
from longtail.cli.fit_options import CLASSIFIER_OPTIONS, TEXT_OPTIONS, VECTORIZER_OPTIONS
from longtail.text import TextVectorizer
from tests.conftest import make_problem


def run(*arguments, code=0, env=None):
    command = [sys.executable, "-m", "longtail", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, env=env)
    assert result.returncode == code, result.stderr
    return result


@pytest.fixture
def lshtc_files(tmp_path):
    problem = make_problem(0, n_documents=200)
    lines = [
        f"{y + 1} " + " ".join(f"{t}:{count}" for t, count in enumerate(x) if count)
        for x, y in zip(problem.X, problem.y, strict=True)
    ]
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    train.write_text("\n".join(lines[:150]) + "\n")
    test.write_text("\n".join(lines[150:]) + "\n")
    return train, test


def test_help():
    assert "demo" in run("--help").stdout
    assert "paper" in run("bench", "--help").stdout


@pytest.mark.parametrize("command", ["fit", "predict", "serve", "evaluate"])
def test_help_fits_80_columns(command):
    text = run(command, "--help", env={**os.environ, "COLUMNS": "80"}).stdout
    assert "\N{HORIZONTAL ELLIPSIS}" not in text  # no option is cut
    assert "<bool>" not in text  # a flag has no value, so no type
    assert max(map(len, text.splitlines())) <= 80
    if command == "serve":
        assert "Needs longtail[serve]." in text
    if command == "fit":
        assert "--discard-changes " in text
        assert "\nLimits on what a file may hold:\n" in text


def test_help_lists_each_command_with_a_whole_sentence():
    text = run("--help", env={**os.environ, "COLUMNS": "80"}).stdout
    assert "..." not in text.split("Commands:")[1]
    assert re.search(r"\n  bench +Compare systems", text)


def test_bench_without_its_package():
    bare = "import importlib.metadata as m; m.entry_points = lambda **_: []; "
    code = f"{bare}from longtail.cli.app import app; app()"
    for more in (["run", "--data", "x.csv"], ["--help"], []):
        command = [sys.executable, "-c", code, "bench", *more]
        result = subprocess.run(command, capture_output=True, text=True)
        said = "longtail: bench is in a package of its own: pip install longtail-bench\n"
        assert (result.returncode, result.stdout, result.stderr) == (1, "", said)
    assert (
        "bench"
        not in subprocess.run(
            [sys.executable, "-c", code, "--help"], capture_output=True, text=True
        ).stdout
    )


@pytest.mark.parametrize(
    ("typed", "meant"), [("predcit", "'predict'"), ("teahc", ""), ("mrege", ""), ("udno", "")]
)
def test_a_misspelt_command_is_not_taken_for_one_that_changes_a_model(typed, meant):
    said = run(typed, "model", code=2).stderr
    assert f"No such command '{typed}'" in said
    assert ("Did you mean" in said) == bool(meant)
    assert meant in said


@pytest.mark.slow
def test_demo():
    report = json.loads(run("demo", "--json").stdout)
    assert report["accuracy"] > 0.46
    assert report["macro_f1"] > 0.30
    assert report["top"] > report["accuracy"]
    assert len(report["examples"]) == 6
    assert any(e["class"] == e["predicted"][0] for e in report["examples"])
    assert report["explanation"]["class"].startswith("river")
    assert "france" in report["explanation"]["table"]
    correction = report["correction"]
    assert correction["taught"] == "language model" != correction["before"]
    assert correction["undone"] == correction["before"]


@pytest.mark.slow
def test_paper_preset(lshtc_files):
    train, test = lshtc_files
    report = json.loads(
        run("bench", "paper", "lshtc1", "--train", train, "--test", test, "--json").stdout
    )
    assert report["here"]["accuracy"] > 0.5
    assert report["paper"]["accuracy"] == "37.4%"
    table = run("bench", "paper", "lshtc1", "--train", train, "--test", test).stdout
    assert "37.4%" in table
    assert "26.5%" in table
    assert "harmonic mean" in table


@pytest.fixture
def data_folder(tmp_path):
    """A folder of data sets with one small set in it."""
    problem = make_problem(1, n_documents=300)
    arrays = {"shape": np.array([240, 60, 7, 25])}
    for part, rows in (("train", slice(0, 240)), ("test", slice(240, 300))):
        X = sp.csr_array(problem.X[rows])
        arrays |= {f"{part}_{name}": getattr(X, name) for name in ("data", "indices", "indptr")}
        arrays[f"{part}_y"] = problem.y[rows]
    (tmp_path / "small").mkdir()
    np.savez(tmp_path / "small" / "counts.npz", **arrays)
    return tmp_path


@pytest.mark.slow
def test_compare(data_folder):
    out = data_folder / "rows.jsonl"
    arguments = ("bench", "compare", "--folder", data_folder, "--out", out)
    report = json.loads(run(*arguments, "--systems", "longtail,centroid", "--json").stdout)
    assert {row["system"] for row in report["rows"]} == {"longtail", "centroid"}
    assert all(row["accuracy"] > 0.5 for row in report["rows"])
    assert len(out.read_text().splitlines()) == 2
    unknown = run(*arguments, "--systems", "nonsense", code=1)
    assert "nonsense" in unknown.stderr


@pytest.mark.slow
def test_ablation(data_folder):
    table = run("bench", "ablation", "--folder", data_folder, "--seeds", "0").stdout
    assert "without residuals" in table
    wrong = run("bench", "ablation", "--folder", data_folder, "--seeds", "zero", code=1)
    assert "--seeds must be integers" in wrong.stderr
    absent = run("bench", "ablation", "--folder", data_folder / "absent", code=1)
    assert "absent" in absent.stderr


@pytest.mark.slow
def test_calibration(data_folder):
    table = run("bench", "calibration", "--folder", data_folder, "--seeds", "0").stdout
    assert "calibration error" in table
    assert "small" in table


@pytest.mark.slow
def test_theory(tmp_path):
    figure = tmp_path / "theory.png"
    report = json.loads(run("bench", "theory", "--quick", "--figure", figure, "--json").stdout)
    assert all(row["holds"] for row in report["runs"])
    assert figure.stat().st_size > 10_000


@pytest.mark.slow
def test_mistakes_are_one_line(lshtc_files, tmp_path):
    train, test = lshtc_files
    unknown = run("bench", "paper", "lshtc9", "--train", train, "--test", test, code=1)
    assert unknown.stderr.startswith("longtail: ")
    assert "lshtc9" in unknown.stderr
    missing = run("bench", "paper", "dmoz", "--train", tmp_path / "no", "--test", test, code=1)
    assert "no" in missing.stderr
    assert "Traceback" not in unknown.stderr + missing.stderr
    bad = tmp_path / "bad.txt"
    bad.write_text("1 2:1\n1 two:1\n")
    broken = run("bench", "paper", "dmoz", "--train", bad, "--test", test, code=1)
    assert "line 2" in broken.stderr


def test_closed_standard_output_is_one_sentence(tmp_path):
    model, table = tmp_path / "m.longtail", tmp_path / "t.csv"
    texts = ["a bear", "bears and honey", "a fox", "the red fox"]
    TextClassifier(random_state=0).fit(texts, ["bear", "bear", "fox", "fox"]).save(model)
    table.write_text("text\na bear\n")
    for arguments in (["predict", model, table, "--text", "text"], ["info", model]):
        command = " ".join(map(str, [sys.executable, "-m", "longtail", *arguments, ">&-"]))
        result = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True)
        assert result.returncode == 1
        assert result.stderr.splitlines()[-1].startswith("longtail: standard output is closed")
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("options", "estimator", "n_without"),
    [
        (VECTORIZER_OPTIONS, TextVectorizer, 3),
        (TEXT_OPTIONS, longtail.TextClassifier, 7),
        (CLASSIFIER_OPTIONS, longtail.LongTailClassifier, 5),
    ],
)
def test_every_parameter_is_an_option_of_fit(options, estimator, n_without):
    """But for those that are no option by intent; the source is read as Python reads it."""
    parameters = signature(estimator).parameters
    assert len(options) + n_without == len(parameters)
    assert {option.parameter for option in options} < set(parameters)
    assert all(option.help for option in options)


def test_teach_refines_where_it_is_due(tmp_path):
    texts = [f"w{i % 7} w{i % 5} w{i % 3}" for i in range(120)]
    labels = [f"class {i % 7}" for i in range(120)]
    model, table = tmp_path / "model", tmp_path / "more.csv"
    TextClassifier(random_state=0).fit(texts, labels).save(model)
    rows = [f"{text},{label}" for text, label in zip(texts, labels, strict=True)]
    table.write_text("\n".join(["text,label", *rows]) + "\n")
    given = ("teach", model, table, "--text", "text", "--label", "label")
    assert "Run longtail refine: it is due." in run(*given, "--no-refine").stdout
    assert re.search(r"taught\. Refined, \d+ s\.", run(*given).stdout)
    assert [change.by for change in Teacher(model).changes()] == [None, None, "auto"]
