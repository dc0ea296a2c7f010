"""`longtail fit` and `predict` over partitions."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from longtail.cli.app import app
from tests.distributed import data


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data.write_svmlight(tmp_path, 3)
    return tmp_path


def test_fit_and_predict(folder):
    assert run("fit", "part-*.svm", "-o", "whole", "--quiet").exit_code == 0
    words = ["fit", "part-*.svm", "-o", "parts", "--memory-limit", "6GB", "--scratch", "s"]
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["tasks"] > 10
    assert summary["bytes_written"] > 0
    assert (folder / "parts").read_bytes() == (folder / "whole").read_bytes()
    assert json.loads(run(*words, "--json").stdout)["tasks"] == 0
    done = run("predict", "parts", "part-*.svm", "--workers", 1)
    assert (done.exit_code, "--out FOLDER" in done.output) == (1, True)
    done = run("predict", "parts", "part-*.svm", "--workers", 1, "--top", 2, "-o", "out", "-q")
    assert done.exit_code == 0, done.output
    assert run("predict", "whole", "part-*.svm", "--top", 2, "-o", "all.jsonl").exit_code == 0
    whole = [json.loads(line) for line in (folder / "all.jsonl").read_text().splitlines()]
    parts = [
        json.loads(line)
        for path in sorted((folder / "out").iterdir())
        for line in path.read_text().splitlines()
    ]
    for name in ("line", "classes", "probabilities"):
        assert [row[name] for row in parts] == [row[name] for row in whole]


@pytest.mark.slow
def test_class_texts(folder):
    """Names of a file, and classes that are known by them alone, through a pool of processes."""
    data.write_tables(folder, "parquet", 3)
    documents, labels = data.texts()
    first = dict(reversed([*zip(labels, documents, strict=True)]))
    names = first | {"never seen": f"{documents[0]} {documents[1]}"}
    lines = "".join(f"{label}\t{text}\n" for label, text in names.items())
    (folder / "names.tsv").write_text(lines)
    words = ["part-*.parquet", "--text", "body", "--label", "label", "--class-texts", "names.tsv"]
    assert run("fit", *words, "-o", "whole", "--quiet").exit_code == 0
    done = run("fit", *words, "-o", "parts", "--workers", 2, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["classes"] == len(names)
    assert (folder / "parts").read_bytes() == (folder / "whole").read_bytes()
    for texts, message in (("no tab\n", "label, tab, text"), ("a\tb\na\tc\n", "line 2: label 'a'")):
        (folder / "names.tsv").write_text(texts)
        for more in ([], ["--workers", 2], ["--scratch", "s"]):
            done = run("fit", *words, "-o", "model", *more)
            assert (done.exit_code, message in done.output) == (1, True)
    assert not (folder / "model").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dask", "tcp://127.0.0.1:9", "--workers", 2, "--scratch", "s"], "give one of them"),
        (["--dask", "tcp://127.0.0.1:9"], "needs --scratch FOLDER"),
        (["--workers", 1, "--skip-bad-rows"], "--skip-bad-rows and --bad-rows do not go"),
        (["--memory-limit", "100MB"], "0.10GB is too low for 1 worker"),
    ],
)
def test_options_that_do_not_go_together(words, message, folder):
    done = run("fit", "part-00.svm", "-o", "model", *words)
    assert done.exit_code == 1
    assert message in done.output
    assert not (folder / "model").exists()
