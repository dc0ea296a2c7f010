"""From a table to a model and back: every command on definitions of WordNet, and every mistake."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import longtail
from longtail import teaching
from longtail.cli.app import app
from longtail.datasets import load_wordnet

COLUMNS = ("--text", "body", "--label", "genus")


def run(*arguments, code=0, **options):
    """Run a command in this process, which spares importing everything each time."""
    result = CliRunner().invoke(app, list(map(str, arguments)), **options)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def run_alone(*arguments, code=0, **options):
    """Run a command in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-m", "longtail", *map(str, arguments)],
        capture_output=True,
        text=True,
        **options,
    )
    assert result.returncode == code, result.stderr
    return result


def fails(*arguments):
    """Run a command that must fail with one helpful line; return that line."""
    lines = run(*arguments, code=1).stderr.splitlines()
    # A busy machine may have had time for lines of stages before it.
    [message] = [line for line in lines if not re.search(r": \d+\.\d s|compil", line)]
    assert message.startswith("longtail: ")
    return message


def write_csv(path, rows, header=("genus", "body")):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Definitions of 30 classes as tables, and a model of them."""
    folder = tmp_path_factory.mktemp("models")
    wordnet = load_wordnet()
    common = [name for name, _ in Counter(wordnet.train_labels.tolist()).most_common(30)]
    pairs = zip(wordnet.train_labels.tolist(), wordnet.train_text, strict=True)
    rows = [pair for pair in pairs if pair[0] in set(common)]
    pairs = zip(wordnet.test_labels.tolist(), wordnet.test_text, strict=True)
    held = [pair for pair in pairs if pair[0] in set(common)][:200]
    made = SimpleNamespace(
        folder=folder,
        train=write_csv(folder / "train.csv", rows),
        test=write_csv(folder / "test.csv", held),
        model=folder / "model",
        classes=sorted(common),
        rows=rows,
        held=held,
    )
    summary = run("fit", made.train, *COLUMNS, "-o", made.model, "--json").stdout
    made.summary = json.loads(summary)
    return made


@pytest.fixture
def model(files, tmp_path):
    """A copy of the model, to change."""
    return shutil.copy(files.model, tmp_path / "model")


# ---- fit


def test_stop_words_of_english(files, tmp_path):
    out = tmp_path / "model"
    run("fit", files.train, *COLUMNS, "-o", out, "--stop-words", "english", "--no-calibrate")
    model = longtail.load(out)
    assert model.get_params()["vectorizer__stop_words"] == "english"
    assert "the" not in model.vocabulary_.terms
    assert "river" in model.vocabulary_.terms


def test_fit(files):
    assert files.summary["kind"] == "TextClassifier"
    assert files.summary["documents"] == len(files.rows)
    assert files.summary["classes"] == 30
    assert files.summary["bytes"] == files.model.stat().st_size
    fitted = longtail.load(files.model)
    assert fitted.classes_.tolist() == files.classes
    again = longtail.TextClassifier(random_state=0, n_jobs=1)
    again.fit([text for _, text in files.rows], [label for label, _ in files.rows])
    texts = [text for _, text in files.held]
    assert (
        fitted.predict_topk(texts, 3).scores.tolist()
        == again.predict_topk(texts, 3).scores.tolist()
    )


def test_fit_says_what_it_did(files, tmp_path):
    small = write_csv(tmp_path / "small.csv", files.rows[:60])
    out = tmp_path / "small"
    said = run("fit", small, *COLUMNS, "-o", out, "--ngrams", 1, "--min-df", 2).stdout
    assert "60 documents of" in said
    assert longtail.load(out).get_params()["vectorizer__ngram_range"] == (1, 1)
    assert longtail.load(out).get_params()["vectorizer__min_df"] == 2
    assert run("fit", small, *COLUMNS, "-o", out, "--quiet").stdout == ""


def test_every_option_of_fit_reaches_the_model(files, tmp_path):
    small = write_csv(tmp_path / "small.csv", files.rows[:60])
    words = tmp_path / "words.txt"
    words.write_text("the\nof and\n")
    run(
        *("fit", small, *COLUMNS, "-o", tmp_path / "model", "--max-df", 0.9),
        *("--max-features", 500, "--keep-case", "--keep-accents", "--stop-words", words),
        *("--token-pattern", r"\w\w+", "--keep-unspaced", "--remember-documents"),
        *("--C", 0.5, "--candidates", 7, "--no-calibrate", "--seed", 3, "--ngram-weight", 0.25),
    )
    found = longtail.load(tmp_path / "model").get_params()
    expected = {
        "vectorizer__max_df": 0.9,
        "vectorizer__max_features": 500,
        "vectorizer__lowercase": False,
        "vectorizer__strip_accents": None,
        "vectorizer__stop_words": ("the", "of", "and"),
        "vectorizer__token_pattern": r"\w\w+",
        "vectorizer__split_unspaced": False,
        "vectorizer__ngram_weight": 0.25,
        "remember_documents": True,
        "classifier__C": 0.5,
        "classifier__candidates": 7,
        "classifier__calibrate": False,
        "random_state": 3,
    }
    assert {name: found[name] for name in expected} == expected


def test_columns_are_remembered(files, model, tmp_path):
    """What fit was told holds for every later command, also after the model was taught."""
    explicit = run("predict", model, files.test, "--text", "body").stdout
    assert run("predict", model, files.test).stdout == explicit
    teach = write_csv(tmp_path / "more.csv", [("owl", "an owl hoots")])
    run("teach", model, teach, "--quiet")
    run("compact", model)
    told = json.loads(run("info", model, "--json").stdout)
    assert (told["text"], told["label"]) == (["body"], "genus")
    run("forget", model, teach, "--quiet")
    measured = json.loads(run("evaluate", model, files.test, "--json").stdout)
    assert measured["n_documents"] == len(files.held)
    other = write_csv(tmp_path / "other.csv", files.held[:3], ("genus", "text"))
    assert "there is no column 'body'; there are 'genus', 'text'" in fails("predict", model, other)
    assert run("predict", model, other, "--text", "text").stdout.count("\n") == 4


def test_what_to_expect_is_said(files):
    fitted = longtail.load(files.model)
    figures = fitted.self_check_.summary()
    expected = files.summary["expected"]
    for name in ("accuracy", "macro_f1", "top_3", "top_20"):
        low, high = expected["intervals"][name]
        assert low <= expected[name] == figures[name] <= high
    assert expected["calibration_error"] == fitted.calibration_error_
    assert len(expected["intervals"]["calibration_error"]) == 2
    assert expected["by_class_frequency"]["1"] is None
    assert expected["by_class_frequency"]["more"] == figures["more"]
    assert len(expected["intervals"]["by_class_frequency"]["more"]) == 2
    assert json.loads(run("info", files.model, "--json").stdout)["expected"] == expected
    table = run("info", files.model).stdout
    assert f"{figures['accuracy']:.1%}" in table
    assert "accuracy, classes of more than 100 documents" in table
    said = run("evaluate", files.model, files.test).stdout
    assert "Expected by documents held out in fit, and found on known classes" in said
    found = json.loads(run("evaluate", files.model, files.test, "--json").stdout)
    assert found["measures"]["accuracy"] == found["accuracy_known"]
    rows = [[*map(str.strip, line.split("│"))][1:5] for line in said.splitlines()]
    [row] = [row for row in rows if row[:2] == ["accuracy", f"{figures['accuracy']:.1%}"]]
    assert row[3] == f"{found['accuracy_known']:.1%}"
    n_shared = len(expected.keys() & found["measures"].keys())
    assert n_shared == len(found["measures"]) == 7


def test_stages_off_a_terminal(files, tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.cli.show._SHORTEST_STAGE", 0.0)
    small = write_csv(tmp_path / "small.csv", files.rows[:300])
    lines = run("fit", small, *COLUMNS, "-o", tmp_path / "model").stderr.splitlines()
    stages = [line.split(": ")[1] for line in lines if re.search(r": \d+\.\d s", line)]
    assert stages == [
        *("reading small.csv", "vocabulary", "statistics", "shared weights", "self-check"),
        *("calibration", "mining", "residuals", "index", "writing"),
    ]
    [reading] = [line for line in lines if "reading small.csv" in line]
    assert re.fullmatch(r"longtail: reading small.csv: \d+\.\d s, 300 documents, [\d,]+/s", reading)


def test_check(tmp_path):
    """Every kind of oddity, planted once."""
    rows = [
        *[("brown bear", f"the brown bear number {'abcdef'[i]}") for i in range(6)],
        *[("owl", f"hoots at night {'abcdef'[i]}") for i in range(6)],
        ("Owl ", "a barn owl"),
        ("fox", "Red fox."),
        ("fox", "red  FOX"),
        ("wolf", "runs far"),
        ("fox", "runs far"),
        ("elk", "?!"),
    ]
    table = write_csv(tmp_path / "train.csv", rows)
    test = write_csv(tmp_path / "test.csv", [("owl", "A barn owl"), ("owl", "unseen")])
    found = json.loads(run("check", table, *COLUMNS, "--against", test, "--json").stdout)
    counts = {finding["name"]: finding["count"] for finding in found["findings"]}
    assert counts == {
        "documents that are there twice with different labels": 2,
        "labels that differ by case or space only": 2,
        "documents without a word": 1,
        "documents that are there again with the same label": 1,
        "documents that contain the name of their class": 9,
        "classes of one document": 3,
        "documents that are also in the other table": 1,
    }
    examples = {finding["name"]: finding["examples"] for finding in found["findings"]}
    assert examples["documents that are there twice with different labels"] == [
        "wolf (line 17), fox (line 18)"
    ]
    assert examples["documents without a word"] == ["line 19"]
    [alone] = [f["advice"] for f in found["findings"] if f["name"] == "classes of one document"]
    assert "About 17% of the labels of new documents will be of classes that are not here" in alone
    assert examples["documents that contain the name of their class"] == ["brown bear: 6 of 6"]
    assert found["class_sizes"] == {
        "1": 3, "2 to 5": 1, "6 to 20": 2, "21 to 100": 0, "more": 0,
    }  # fmt: skip
    assert "'owl' / 'Owl '" in run("check", table, *COLUMNS).stdout
    counted = tmp_path / "c.svm"
    counted.write_text("1 1:2 3:1\n2 3:1 1:2\n2 4:1\n2 5:1\n1 6:1\n")
    found = json.loads(run("check", counted, "--json").stdout)
    assert [finding["count"] for finding in found["findings"]] == [2]
    clean = write_csv(
        tmp_path / "clean.csv", [("a", "x one"), ("a", "two"), ("b", "y"), ("b", "z")]
    )
    assert "Nothing odd was found." in run("check", clean, *COLUMNS).stdout


def test_every_format_gives_the_same_model(files, tmp_path):
    rows = files.rows[:80]
    made = {"csv": write_csv(tmp_path / "t.csv", rows)}
    made["jsonl"] = tmp_path / "t.jsonl"
    made["jsonl"].write_text(
        "".join(json.dumps({"genus": label, "body": text}) + "\n" for label, text in rows)
    )
    made["tsv"] = tmp_path / "t.tsv.gz"
    lines = "".join(f"{label}\t{text}\n" for label, text in rows)
    made["tsv"].write_bytes(gzip.compress(lines.encode()))
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    made["parquet"] = tmp_path / "t.parquet"
    labels, texts = zip(*rows, strict=True)
    parquet.write_table(pa.table({"genus": labels, "body": texts}), made["parquet"])
    models = {}
    for name, path in made.items():
        columns = ("--no-header", "--text", 2, "--label", 1) if name == "tsv" else COLUMNS
        run("fit", path, *columns, "-o", tmp_path / name)
        # Without the format that each remembers, and the names that the columns of one lack.
        longtail.load(tmp_path / name).set_columns(["body"], "genus").save(tmp_path / name)
        models[name] = (tmp_path / name).read_bytes()
    assert len(set(models.values())) == 1


def test_fit_mistakes(files, tmp_path):
    out = tmp_path / "model"
    assert "--text is missing" in fails("fit", files.train, "--label", "genus", "-o", out)
    assert "--label is missing" in fails("fit", files.train, "--text", "body", "-o", out)
    message = fails("fit", files.train, "--text", "bdy", "--label", "genus", "-o", out)
    assert "no column 'bdy'; there are 'genus', 'body'; did you mean 'body'?" in message
    message = fails("fit", tmp_path / "no.csv", *COLUMNS, "-o", out)
    assert "no.csv: No such file" in message
    assert "does not tell its format" in fails("fit", "train.xls", *COLUMNS, "-o", out)
    assert "format must be one of" in fails("fit", "t", "--format", "xls", *COLUMNS, "-o", out)
    empty = write_csv(tmp_path / "empty.csv", [])
    assert "empty.csv has no document" in fails("fit", empty, *COLUMNS, "-o", out)
    one = write_csv(tmp_path / "one.csv", [("Ovis", "sheep"), ("Ovis", "ram")])
    assert "only 1 class" in fails("fit", one, *COLUMNS, "-o", out)
    assert "is a folder" in fails("fit", files.train, *COLUMNS, "-o", tmp_path)
    assert "does not exist" in fails("fit", files.train, *COLUMNS, "-o", tmp_path / "a" / "b")
    assert "test.csv: is not a longtail model" in fails(
        "fit", files.train, *COLUMNS, "-o", files.test
    )
    assert files.test.read_text().startswith("genus,body")  # left as it is
    assert not out.exists()
    assert run("fit", files.train, code=2).stderr  # usage: -o is missing
    assert run("fit", files.train, "-o", out, "--ngrams", "two", code=2).stderr


def test_fit_does_not_leave_a_log_behind_that_fits_no_model(files, model, tmp_path):
    small = write_csv(tmp_path / "small.csv", files.rows[:60])
    teaching.Teacher(model).teach(["something new"], ["new class"])
    assert "--discard-changes" in fails("fit", small, *COLUMNS, "-o", model)
    run("fit", small, *COLUMNS, "-o", model, "--discard-changes")
    assert "new class" not in longtail.load(model).classes_
    teaching.Teacher(model).teach(["something new"], ["new class"])
    run("info", model, "--compact")  # leaves a log without changes, which is no obstacle
    run("fit", small, *COLUMNS, "-o", model)
    assert "new class" not in longtail.load(model).classes_


def test_bad_rows(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_csv(tmp_path / "bad.csv", [*files.rows[:60], ("", "nameless"), ("a", "b", "c")])
    message = fails("fit", path, *COLUMNS, "-o", "model")
    assert "bad.csv, line 62: the label in column 'genus' is missing" in message
    assert not (tmp_path / "model").exists()
    result = run("fit", path, *COLUMNS, "-o", "model", "--skip-bad-rows")
    assert "2 bad rows skipped; bad.csv.bad-rows.csv lists them" in result.stderr
    with open("bad.csv.bad-rows.csv", newline="") as file:
        report = list(csv.DictReader(file))
    assert [row["line"] for row in report] == ["62", "63"]
    assert "3 fields" in report[1]["reason"]
    assert report[1]["start"] == "a,b,c"
    run("predict", "model", path, "--text", "body", "--bad-rows", "report.csv", "-o", "out.csv")
    assert "63" in (tmp_path / "report.csv").read_text()
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + 61
    assert sorted(os.listdir(tmp_path)) == [
        "bad.csv",
        "bad.csv.bad-rows.csv",
        "model",
        "out.csv",
        "report.csv",
    ]


def test_a_report_of_bad_rows_explains_a_failure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_csv(tmp_path / "bad.csv", [("", "nameless")])
    said = run("fit", path, *COLUMNS, "-o", "model", "--skip-bad-rows", code=1).stderr
    assert "has no document" in said
    assert "line,reason,start" in (tmp_path / "bad.csv.bad-rows.csv").read_text()


def test_an_interrupted_fit_leaves_no_file(files, tmp_path):
    fifo = tmp_path / "rows.csv"
    os.mkfifo(fifo)
    out = tmp_path / "out"
    out.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "longtail", "fit", str(fifo), *COLUMNS, "-o", str(out / "model")],
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts what runs in the background with this signal ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with fifo.open("w") as file:  # opens when the command reads, which then waits for more
        file.write("genus,body\nOvis,sheep\n")
        file.flush()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    assert list(out.iterdir()) == []


# ---- predict


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_predict(files, tmp_path):
    out = tmp_path / "predictions.csv"
    result = run(
        "predict",
        files.model,
        files.test,
        "--text",
        "body",
        "--top",
        3,
        "--keep",
        "genus",
        "-o",
        out,
    )
    assert "200 documents predicted" in result.stderr
    rows = read_csv(out)
    fitted = longtail.load(files.model)
    top = fitted.predict_proba_topk([text for _, text in files.held], 3)
    assert [row["class"] for row in rows] == top.classes[:, 0].tolist()
    third = zip(top.classes[:, 2].tolist(), top.valid[:, 2], strict=True)
    assert [row["class_3"] for row in rows] == [c if valid else "" for c, valid in third]
    assert [float(row["probability"]) for row in rows] == pytest.approx(top.scores[:, 0], abs=1e-4)
    assert [row["genus"] for row in rows] == [label for label, _ in files.held]
    assert [int(row["line"]) for row in rows] == list(range(2, 202))


def test_predict_abstains(files, tmp_path):
    fitted = longtail.load(files.model)
    threshold = fitted.threshold_for(0.9)
    arguments = ("predict", files.model, files.test, "--text", "body", "--precision", 0.9)
    lines = run(*arguments, "--top", 2, "--json").stdout.splitlines()
    two = fitted.predict_proba_topk([text for _, text in files.held], 2)
    chances = two.scores[:, 0]
    answers = [json.loads(line) for line in lines]
    assert [answer["class"] is not None for answer in answers] == (chances >= threshold).tolist()
    assert 0 < sum(answer["class"] is None for answer in answers) < 200
    assert [len(answer["classes"]) for answer in answers] == two.valid.sum(axis=1).tolist()
    run(*arguments, "-o", tmp_path / "out.tsv")
    rows = (tmp_path / "out.tsv").read_text().splitlines()
    assert rows[0] == "line\tclass\tprobability"
    assert [bool(row.split("\t")[1]) for row in rows[1:]] == (chances >= threshold).tolist()
    assert "between 0 and 1" in fails(*arguments[:-1], 1.5)


def test_predict_each_and_texts_without_a_known_word(files, tmp_path):
    fitted, out = longtail.load(files.model), tmp_path / "out.csv"
    texts = [text for _, text in files.held[:50]]
    table = tmp_path / "table.csv"
    write_csv(table, [("", text) for text in [*texts, "zzzqq", "0x0"]])
    arguments = ("predict", files.model, table, "--text", "body", "-o", out, "--top", 2)
    result = run(*arguments, "--precision", 0.8, "--each")
    top = fitted.predict_proba_topk(texts, 1)
    kept = (top.scores[:, 0] >= 0.8) & (top.scores[:, 0] >= top.none)
    rows = read_csv(out)
    assert [bool(row["class"]) for row in rows] == [*kept.tolist(), False, False]
    assert [set(row.values()) - {row["line"]} for row in rows[-2:]] == [{""}, {""}]
    held = 52 - int(kept.sum())
    assert f"52 documents predicted, {held} of them without a class" in result.stderr
    assert "2 documents have no known word." in result.stderr
    write_csv(table, [("", "zzzqq")])
    to_output = run("predict", files.model, table, "--text", "body")
    assert to_output.stdout == "line,class,probability\n2,,\n"
    assert "1 document has no known word." in to_output.stderr
    alone = run("predict", files.model, "zzzqq qqzz")
    assert "no known word" in alone.stdout
    assert json.loads(run("predict", files.model, "zzzqq qqzz", "--json").stdout) == {
        "class": None,
        "ranking": [],
    }
    assert "--each goes with --precision" in fails(*arguments, "--each")


def test_predict_from_standard_input_to_standard_output(files):
    content = files.test.read_bytes()[:3000]
    content = gzip.compress(content[: content.rindex(b"\n") + 1])
    arguments = ("predict", files.model, "-", "--text", "body", "--format", "csv", "--quiet")
    result = subprocess.run(
        [sys.executable, "-m", "longtail", *map(str, arguments)],
        input=content,
        capture_output=True,
        check=True,
    )
    assert result.stderr == b""
    rows = list(csv.DictReader(result.stdout.decode().splitlines()))
    assert len(rows) > 10
    alone = longtail.load(files.model).predict([text for _, text in files.held[: len(rows)]])
    assert [row["class"] for row in rows] == alone.tolist()


def test_predict_of_nothing_is_a_header(files, tmp_path):
    empty = write_csv(tmp_path / "empty.csv", [])
    assert run("predict", files.model, empty, "--text", "body").stdout == "line,class,probability\n"


def test_predict_mistakes(files, tmp_path):
    out = tmp_path / "out.csv"
    arguments = ("predict", files.model, files.test, "--text", "body")
    assert "end it in .csv" in fails(*arguments, "-o", tmp_path / "out.xls")
    assert "csv, tsv, jsonl or parquet; got 'xls'" in fails(*arguments, "--out-format", "xls")
    assert "longtail fit" in fails("predict", tmp_path / "no", files.test, "--text", "body")
    assert "does not exist" in fails(*arguments, "-o", tmp_path / "a" / "b.csv")
    bad = write_csv(tmp_path / "bad.csv", [*files.held, ("too", "many", "fields")])
    assert "line 202" in fails("predict", files.model, bad, "--text", "body", "-o", out)
    assert not out.exists()
    assert "takes texts" in fails("predict", files.model, "counts.svm")
    truncated = tmp_path / "truncated"
    truncated.write_bytes(files.model.read_bytes()[:-100])
    assert "truncated" in fails("predict", truncated, files.test, "--text", "body")
    assert run("predict", files.model, files.test, "--top", 0, code=2).stderr


# ---- evaluate


def test_evaluate(files, tmp_path):
    page, folder = tmp_path / "report.html", tmp_path / "figures"
    arguments = ("evaluate", files.model, files.test, *COLUMNS)
    report = json.loads(run(*arguments, "--report", page, "--figures", folder, "--json").stdout)
    predicted = longtail.load(files.model).predict([text for _, text in files.held])
    right = [p == label for p, (label, _) in zip(predicted.tolist(), files.held, strict=True)]
    assert report["accuracy"] == sum(right) / 200
    assert report["accuracy"] > 0.5
    assert {"macro_f1", "macro_f1_of_means", "top", "bands", "confusions"} <= set(report)
    assert report["certainty"]["abstention"]["wanted"] == 0.9
    names = ("calibration", "frequency", "precision")
    assert sorted(os.listdir(folder)) == [f"{name}.png" for name in names]
    assert all((folder / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in names)
    assert page.read_text().count("<svg") == 3
    assert "Most confused classes" in page.read_text()
    run(*arguments, "--figures", folder, "--figure-format", "svg")
    assert (folder / "precision.svg").read_text().startswith("<?xml")
    table = run(*arguments).stdout
    assert f"{report['accuracy']:.1%}" in table
    for word in ("macro F1", "in the top 5", "calibration error", "documents seen"):
        assert word in table


def test_evaluate_says_what_it_wrote(files, tmp_path):
    page, folder, rows = tmp_path / "r.html", tmp_path / "figures", tmp_path / "p.csv"
    arguments = ("evaluate", files.model, files.test, *COLUMNS, "--report", page)
    said = run(*arguments, "--figures", folder, "--predictions", rows).stderr
    assert f"the report is in {page}." in said
    assert f"3 figures are in {folder}." in said
    assert f"the predictions are in {rows}." in said
    assert "is in" not in run(*arguments, "--quiet").stderr


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_evaluate_writes_predictions(files, tmp_path, ending):
    out = tmp_path / f"p.{ending}"
    columns = (*COLUMNS, "--keep", "body")
    run("evaluate", files.model, files.test, *columns, "--predictions", out)
    if ending == "csv":
        with out.open(newline="") as file:
            rows = list(csv.DictReader(file))
    elif ending == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        rows = pytest.importorskip("pyarrow.parquet").read_table(out).to_pylist()
    model = longtail.load(files.model)
    top = model.predict_proba_topk([text for _, text in files.held], 1)
    assert [row["truth"] for row in rows] == [label for label, _ in files.held]
    assert [row["class"] for row in rows] == top.classes[:, 0].tolist()
    assert [row["body"] for row in rows] == [text for _, text in files.held]
    assert [int(row["line"]) for row in rows][:2] == [2, 3]
    if ending == "csv":
        assert list(rows[0]) == ["line", "body", "truth", "class", "probability"]
        assert float(rows[0]["probability"]) == pytest.approx(top.scores[0, 0], abs=1e-4)
    else:
        assert "truth" in rows[0]
    assert "does not tell the format" in fails(
        "evaluate", files.model, files.test, *COLUMNS, "--predictions", tmp_path / "p"
    )


def test_kept_numbers_stay_numbers(files, tmp_path):
    ids = [7, "007", 1.5, True]
    rows = [
        {"id": name, "genus": label, "body": text}
        for name, (label, text) in zip(ids, files.held[:4], strict=True)
    ]
    table, out = tmp_path / "ids.jsonl", tmp_path / "p.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = ("--keep", "id", "--text", "body")
    run("evaluate", files.model, table, *columns, "--label", "genus", "--predictions", out)
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ids
    run("predict", files.model, table, *columns, "--out", out)
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ids
    run("predict", files.model, table, *columns, "--out", tmp_path / "p.csv")
    with (tmp_path / "p.csv").open(newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ["7", "007", "1.5", "True"]


def test_evaluate_compares_two_models(files, tmp_path):
    other, page = tmp_path / "half", tmp_path / "r.html"
    half = write_csv(tmp_path / "half.csv", files.rows[::4])
    run("fit", half, *COLUMNS, "-o", other)
    arguments = ("evaluate", files.model, files.test, *COLUMNS, "--compare", other)
    found = json.loads(run(*arguments, "--json", "--report", page).stdout)["comparison"]
    texts, labels = [text for _, text in files.held], [label for label, _ in files.held]
    right = [
        [p == label for p, label in zip(longtail.load(m).predict(texts), labels, strict=True)]
        for m in (files.model, other)
    ]
    accuracy = found["accuracy"]
    assert (accuracy["value"], accuracy["other"]) == (sum(right[0]) / 200, sum(right[1]) / 200)
    assert accuracy["n_better"] == sum(a and not b for a, b in zip(*right, strict=True))
    assert 0 <= accuracy["p_value"] <= 1
    assert "Compared with half" in page.read_text()
    table = run(*arguments).stdout
    assert "Compared with half" in table
    assert "points" in table
    same = run("evaluate", files.model, files.test, *COLUMNS, "--compare", files.model).stdout
    assert "Both models fare the same on every document." in same
    columns = write_csv(tmp_path / "columns.csv", files.rows[::4], ("kind", "words"))
    named = ("--text", "words", "--label", "kind", "--no-calibrate")
    run("fit", columns, *named, "-o", tmp_path / "named", "--quiet")
    said = fails("evaluate", files.model, files.test, "--compare", tmp_path / "named")
    assert "there is no column 'words'" in said
    assert "--compare: " in said
    assert "was fitted on other columns" in said
    said = fails("evaluate", files.model, "-", *COLUMNS, "--compare", other)
    assert "reads the documents twice" in said
    assert "there is no model file" in fails(*arguments[:-1], tmp_path / "nowhere")


def test_evaluate_counts_unknown_classes(files, tmp_path):
    held = write_csv(tmp_path / "held.csv", [*files.held, ("never seen", "whatever")])
    assert "1 document of classes that" in run("evaluate", files.model, held, *COLUMNS).stdout


def test_evaluate_mistakes(files, tmp_path):
    arguments = ("evaluate", files.model, files.test, *COLUMNS)
    assert "--precision must be between 0 and 1" in fails(*arguments, "--precision", 90)
    assert "png or svg; got 'gif'" in fails(*arguments, "--figure-format", "gif")
    empty = write_csv(tmp_path / "empty.csv", [])
    assert "no documents to evaluate" in fails("evaluate", files.model, empty, *COLUMNS)
    assert "does not exist" in fails(*arguments, "--report", tmp_path / "a" / "b.html")


def test_a_missing_extra_is_named(files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    message = fails("evaluate", files.model, files.test, *COLUMNS, "--figures", tmp_path)
    assert "pip install 'longtail[plot]'" in message
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    table = shutil.copy(files.test, tmp_path / "t.parquet")
    message = fails("predict", files.model, table, "--text", "body")
    assert "pip install 'longtail[data]'" in message


def test_without_typer(tmp_path):
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no typer', name='typer')")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    result = run_alone("--help", code=1, env={**os.environ, "PYTHONPATH": paths})
    assert "pip install 'longtail[cli]'" in result.stderr


# ---- explain


def test_explain(files, tmp_path):
    text = files.held[0][1]
    figure = tmp_path / "why.svg"
    report = json.loads(run("explain", files.model, text, "--json", "--figure", figure).stdout)
    fitted = longtail.load(files.model)
    assert report["class"] == fitted.predict([text])[0]
    assert sum(report["features"].values()) == pytest.approx(report["score"], abs=1e-5)
    whole = sum(report["terms"].values()) + report["other_terms"] + report["constant"]
    assert whole == pytest.approx(report["score"], abs=1e-5)
    rival = report["runner_up"]
    assert rival["class"] == fitted.predict_topk([text], 2).classes[0, 1]
    assert list(rival["terms"]) == list(report["terms"])
    whole = sum(rival["terms"].values()) + rival["other_terms"] + rival["constant"]
    assert whole == pytest.approx(rival["score"], abs=1e-5)
    assert report["probability"] == fitted.predict_proba_topk([text], 1).scores[0, 0]
    assert figure.read_text().startswith("<?xml")
    table = run("explain", files.model, text, "--terms", 2).stdout
    assert "difference" in table
    assert "other terms" in table


def test_explain_another_class_and_from_standard_input(files):
    text, other = files.held[0][1], files.classes[3]
    report = json.loads(run("explain", files.model, text, "--class", other, "--json").stdout)
    assert report["class"] == other
    arguments = ("explain", files.model, "-", "--class", other, "--json")
    assert json.loads(run(*arguments, input=text).stdout) == report


def test_explain_mistakes(files, tmp_path):
    name = files.classes[0].split()[0]
    message = fails("explain", files.model, "text", "--class", name[:-1] + "#")
    assert "the model has no class" in message
    assert "Similar: " in fails("explain", files.model, "text", "--class", name[:-1].upper())
    assert "must end in one of" in fails(
        "explain", files.model, "text", "--figure", tmp_path / "why.doc"
    )
    assert run("explain", files.model, "qqqqq").stdout.startswith("The text has no known word, so")
    table = run("explain", files.model, "qqqqq", "--class", files.classes[0]).stdout
    assert "No term of the document is known" in table


# ---- teach and forget


def test_teach_one_text_and_forget_it(files, model):
    text = "a zorble is a made up instrument for frobnicating"
    others = [text for _, text in files.held]
    before = longtail.load(model).predict_topk(others, 3).scores.tolist()
    said = run("teach", model, text, "--class", "zorble", "--by", "ann").stdout
    assert "Change 1: 1 document of zorble taught." in said
    assert longtail.load(model).predict(["a zorble"]).tolist() == ["zorble"]
    report = json.loads(run("forget", model, text, "--class", "zorble", "--json").stdout)
    assert report["classes"] == 30
    assert report["changes"] == [2]
    assert longtail.load(model).predict_topk(others, 3).scores.tolist() == before
    log = json.loads(run("info", model, "--changes", "--json").stdout)["log"]
    assert [(row["action"], row["by"]) for row in log] == [("teach", "ann"), ("forget", None)]
    assert log[0]["summary"] == "1 document of zorble"


def test_a_table_is_one_change(files, model, tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.teaching.log._LARGEST_BATCH", 2000)
    more = write_csv(tmp_path / "more.csv", files.held)
    monkeypatch.setattr("longtail.training.relearning.MIN_TAUGHT", 1_000)  # none is due
    said = json.loads(run("teach", model, more, *COLUMNS, "--json").stdout)
    assert said["done"] == "200 documents of 30 classes taught."
    assert said["changes"] == [1]
    assert said["documents"] == len(files.rows) + 200
    assert len(longtail.Teacher(model).changes()[0].rows) > 3
    at_once = longtail.load(files.model).partial_fit(
        [text for _, text in files.held], [label for label, _ in files.held]
    )
    texts = [text for _, text in files.rows[:50]]
    taught = longtail.load(model)
    assert taught.predict_topk(texts).scores.tolist() == at_once.predict_topk(texts).scores.tolist()
    assert "Change 2: 200 documents" in run("forget", model, more, *COLUMNS).stdout
    assert longtail.load(model).statistics_.n_documents == len(files.rows)
    run("undo", model)
    assert longtail.load(model).statistics_.n_documents == len(files.rows) + 200
    run("forget", model, more, *COLUMNS, "--erase")
    assert longtail.load(model).statistics_.n_documents == len(files.rows)
    assert json.loads(run("info", model, "--json").stdout)["changes"] == 0


def test_a_bad_row_teaches_nothing(files, model, tmp_path):
    more = write_csv(tmp_path / "more.csv", [*files.held, ("", "nameless")])
    assert "line 202" in fails("teach", model, more, *COLUMNS)
    assert json.loads(run("info", model, "--json").stdout)["changes"] == 0


def test_a_bad_row_forgets_nothing(files, model, tmp_path):
    bad = ("Nonsense", "never taught at all")
    rows = [*files.rows[:150], bad, *files.rows[150:300]]
    message = fails("forget", model, write_csv(tmp_path / "gone.csv", rows), *COLUMNS)
    assert "gone.csv, line 152: " in message
    assert "not among the classes" in message
    assert "Nothing was changed" in message
    rows[150] = (files.classes[0], "never taught at all " * 3)
    message = fails("forget", model, write_csv(tmp_path / "gone.csv", rows), *COLUMNS)
    assert "gone.csv, line 152: " in message
    assert "never added to their class" in message
    assert longtail.load(model).statistics_.n_documents == len(files.rows)
    assert json.loads(run("info", model, "--json").stdout)["changes"] == 0


def test_rename_merge_remove_undo_compact(files, model):
    first, second, third, *_ = files.classes
    assert "is now called it" in run("rename", model, first, "it").stdout
    run("merge", model, second, third)
    run("remove", model, third)
    names = longtail.load(model).classes_.tolist()
    assert "it" in names
    assert not {first, second, third} & set(names)
    said = run("undo", model, 2).stdout
    assert f"2 changes undone: 2 (merge: {second} is part of {third}), 3 (remove: {third})." in said
    names = longtail.load(model).classes_.tolist()
    assert "it" in names
    assert {second, third} <= set(names)
    table = run("info", model, "--changes").stdout
    assert "rename" in table
    assert "in effect" in table
    assert re.search(r"undo +. changes \d+, \d+ ", table)
    report = json.loads(run("info", model, "--compact", "--json").stdout)
    assert report["changes"] == 0
    assert longtail.load(model).classes_.tolist() == names


def test_teach_mistakes(files, model, tmp_path):
    assert "Missing argument 'TEXT|FILE'" in run("teach", model, code=2).stderr
    assert "No such option" in run("teach", model, "--undo", 1, code=2).stderr
    assert "no file 'some text'. To give a text itself" in fails("teach", model, "some text")
    assert "no class 'nothing'" in fails("remove", model, "nothing")
    assert "no class 'nothing'" in fails("merge", model, "nothing", files.classes[0])
    assert "there is nothing to undo" in fails("undo", model)
    assert "longtail fit" in fails("teach", tmp_path / "no", "text", "--class", "a")
    assert "--class names the class of one text" in fails(
        "teach", model, "text", "--class", "a", "--label", "genus"
    )
    message = fails("forget", model, "never taught at all", "--class", files.classes[0])
    assert "never added to their class" in message
    assert run("undo", model, 0, code=2).stderr
    assert json.loads(run("info", model, "--json").stdout)["changes"] == 0


# ---- counts


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counts")
    lines = [
        f"{i % 9} " + " ".join(f"{t}:{c}" for t, c in ((i % 9 + 1, 2), (i % 5 + 10, 1)))
        for i in range(400)
    ]
    (folder / "train.svm").write_text("\n".join(lines) + "\n")
    run("fit", folder / "train.svm", "-o", folder / "model")
    return folder


def test_counts(counts, tmp_path):
    model, train = counts / "model", counts / "train.svm"
    facts = json.loads(run("info", model, "--json").stdout)
    assert facts["kind"] == "LongTailClassifier"
    assert (facts["documents"], facts["classes"], facts["terms"]) == (400, 9, 14)
    report = json.loads(run("evaluate", model, train, "--json").stdout)
    assert report["accuracy"] == 1
    new = tmp_path / "new.svm"
    new.write_text("3:1 99:5\n# nothing\n 7:1\n")
    rows = run("predict", model, new, "--top", 20).stdout.splitlines()
    assert [row.split(",")[:2] for row in rows[1:]] == [["1", "2"], ["3", "6"]]
    assert all(row.endswith(",") for row in rows[1:])  # there are fewer than 20 classes
    why = json.loads(run("explain", model, "3:1 12:1", "--json").stdout)
    assert why["class"] == 2
    assert set(why["terms"]) == {"3"}
    assert set(why["common_terms"]) == {"12"}  # every class has it


def test_counts_can_be_taught(counts, tmp_path):
    model = shutil.copy(counts / "model", tmp_path / "model")
    run("teach", model, "14:3 1:1", "--class", 77)
    run("teach", model, counts / "train.svm")
    assert longtail.load(model).classes_.tolist() == [*range(9), 77]
    assert longtail.load(model).statistics_.n_documents == 801
    assert "whole numbers; got 'x'" in fails("teach", model, "14:3", "--class", "x")
    assert "'honey' is not term:count" in fails("explain", model, "honey")


def test_counts_mistakes(counts, files, tmp_path):
    train = counts / "train.svm"
    assert "have no meaning" in fails("fit", train, *COLUMNS, "-o", tmp_path / "m")
    assert "options for text" in fails("fit", train, "--ngrams", 1, "-o", tmp_path / "m")
    message = fails("predict", counts / "model", files.test, "--text", "body")
    assert "takes counts" in message
    zero = tmp_path / "zero.svm"
    zero.write_text("1 0:1\n2 1:1\n2 1:2\n")
    assert "must be read as zero-based" in fails("fit", zero, "-o", tmp_path / "m")
    run("fit", zero, "--zero-based", "-o", tmp_path / "m")


# ---- info, warmup, help


def test_info(files, model):
    facts = json.loads(run("info", model, "--json").stdout)
    assert facts["kind"] == "TextClassifier"
    assert facts["format"] == 1
    assert facts["table_format"] == "csv"
    assert facts["classes"] == 30
    assert facts["parameters"]["random_state"] == 0
    table = run("info", model, "--changes").stdout
    assert "TextClassifier" in table
    assert "Nothing was taught" in table
    assert re.search(r"header +. yes", table)
    assert "_bytes" not in table
    assert "longtail fit" in fails("info", "nowhere")
    assert "health" not in facts
    health = json.loads(run("info", model, "--health", "--json").stdout)["health"]
    assert health["n_classes"] == 30
    assert health["n_stale"] == 0
    assert "stale classes" in run("info", model, "--health").stdout


def test_a_torn_journal_is_a_warning(model):
    run("teach", model, "a text", "--class", "new")
    with open(f"{model}.journal-wal", "wb") as log:
        log.write(b"torn")
    result = run("info", model, "--json")
    assert result.stderr.startswith("longtail: warning: ")
    assert "Traceback" not in result.stderr
    assert json.loads(result.stdout)["changes"] == 1


@pytest.mark.slow
def test_warmup():
    report = json.loads(run("warmup", "--json").stdout)
    assert report["seconds"] > 0
    assert all(os.path.isdir(folder) for folder in report["folders"])
    assert report["folders"]
    said = run("warmup").stdout
    assert "Kernels are ready" in said


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--version"], "numpy scipy sklearn numba pyarrow matplotlib joblib"),
        (["--help"], "numpy scipy sklearn numba pyarrow matplotlib joblib"),
        (["fit", "--help"], "numpy scipy sklearn numba pyarrow matplotlib joblib"),
        (["info", "MODEL"], "scipy sklearn numba pyarrow matplotlib joblib"),
        (["info", "MODEL", "--changes", "--json"], "scipy sklearn numba pyarrow matplotlib joblib"),
    ],
)
def test_commands_that_compute_nothing_import_no_library(files, arguments, heavy):
    """They must be quick: none of what takes long is imported."""
    given = [str(files.model) if argument == "MODEL" else argument for argument in arguments]
    code = (
        "import sys\nfrom longtail.cli import main\n"
        f"sys.argv = ['longtail', *{given}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print('imported', sorted(set({heavy.split()}) & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "imported []"


@pytest.mark.parametrize("column", [["--text", "nosuch"], []], ids=["wrong", "missing"])
def test_a_wrong_column_is_said_before_estimators_are_imported(files, tmp_path, column):
    given = ["fit", str(files.train), *column, "--label", "label", "-o", str(tmp_path / "m")]
    code = (
        "import sys\nfrom longtail.cli import main\n"
        f"sys.argv = ['longtail', *{given}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 1\n"
        "print('imported', sorted({'sklearn', 'longtail.estimators'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "column" in result.stderr
    assert result.stdout.splitlines()[-1] == "imported []"


def test_info_counts_what_was_taught(files, model):
    before = json.loads(run("info", model, "--json").stdout)
    run("teach", model, "a heron wades", "--class", "a new class")
    after = json.loads(run("info", model, "--json").stdout)
    assert (after["documents"], after["classes"]) == (before["documents"] + 1, 31)
    run("undo", model)
    undone = json.loads(run("info", model, "--json").stdout)
    assert (undone["documents"], undone["classes"], undone["changes"]) == (
        before["documents"],
        before["classes"],
        2,
    )


def test_info_of_damaged_files(files, model):
    content = bytearray(model.read_bytes())
    content[-9] ^= 1
    model.write_bytes(content)
    assert "is damaged: array" in fails("info", model)


def test_every_command_has_help():
    listed = run("--help").stdout
    models = ("fit", "evaluate", "predict", "explain", "teach", "forget", "info")
    for command in (*models, "demo", "warmup", "bench"):
        assert command in listed
        assert "Usage" in run(command, "--help").stdout
    assert run("nonsense", code=2).stderr


def test_nothing_is_printed_of_a_table_that_cannot_be_read(files, model, tmp_path):
    other = write_csv(tmp_path / "other.csv", files.held[:3], ("genus", "text"))
    latin = tmp_path / "latin.csv"
    latin.write_bytes("genus,body\nbär,ein brauner Bär\n".encode("latin-1"))
    for table, problem in (
        (tmp_path / "missing.csv", "No such file"),
        (other, "there is no column 'body'"),
        (latin, "not valid UTF-8; give the encoding, such as latin-1"),
    ):
        result = run("predict", model, table, code=1)
        assert result.stdout == ""
        assert problem in result.stderr
    assert run("predict", model, latin, "--encoding", "latin-1").stdout.count("\n") == 2


def test_a_column_of_ids_is_not_taken_for_labels(files, tmp_path):
    out = tmp_path / "model"
    rows = [(f"T-{i}", text) for i, (_, text) in enumerate(files.rows[:50])]
    table = write_csv(tmp_path / "tickets.csv", rows)
    for more in ((), ("--workers", 1)):
        message = fails("fit", table, *COLUMNS, "-o", out, *more)
        assert "every class has one document: is genus the label?" in message
        assert "--unique-labels" in message
    counts = tmp_path / "counts.svm"
    counts.write_text("".join(f"{i} {i + 1}:1 {i + 2}:1\n" for i in range(1, 20)))
    assert "the first number of a row the label?" in fails("fit", counts, "-o", out)
    assert not out.exists()
    assert "is this column the label?" in run("check", table, *COLUMNS).stdout
    run("fit", table, *COLUMNS, "-o", out, "--unique-labels", "--quiet")
    assert len(longtail.load(out).classes_) == 50
    twice = write_csv(tmp_path / "twice.csv", [*rows, rows[0]])
    run("fit", twice, *COLUMNS, "-o", tmp_path / "other", "--quiet")
