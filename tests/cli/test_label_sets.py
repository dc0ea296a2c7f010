"""Label sets through every command: read, fitted, evaluated, predicted, taught, forgotten."""

from __future__ import annotations

import csv
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import longtail
from tests.cli.test_models import fails, run, run_alone

CLASSES = [f"class {i}" for i in range(12)]


def make_rows(n, seed):
    """Return (labels, text): a document has words of each of its one to three classes."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, 13)
    rows = []
    for _ in range(n):
        labels = rng.choice(12, rng.integers(1, 4), False, popularity / popularity.sum())
        words = [f"w{label}x{rng.integers(5)}" for label in labels for _ in range(6)]
        rows.append(([CLASSES[label] for label in labels], " ".join([*words, "and", "the"])))
    return rows


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same documents in every form, and a model of one of them."""
    folder = tmp_path_factory.mktemp("sets")
    train, test = make_rows(500, 0), make_rows(80, 1)
    made = SimpleNamespace(folder=folder, train=train, test=test, model=folder / "model")
    for name, rows in (("train", train), ("test", test)):
        objects = ({"tags": labels, "body": text} for labels, text in rows)
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(o) + "\n" for o in objects))
    with (folder / "joined.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("tags", "body"), *((" ;".join(t), b) for t, b in train)])
    with (folder / "columns.csv").open("w", newline="") as file:
        rows = ((*[*t, "", ""][:3], b) for t, b in train)
        csv.writer(file).writerows([("one", "two", "three", "body"), *rows])
    made.source = (folder / "train.jsonl", "--text", "body", "--label", "tags")
    run("fit", *made.source, "-o", made.model, "--threads", 1)
    return made


def predictions(model, files, *options):
    out = run("predict", model, files.folder / "test.jsonl", "--text", "body", "--json", *options)
    return [json.loads(line) for line in out.stdout.splitlines()]


def test_every_form_gives_the_same_model(files, tmp_path):
    expected = predictions(files.model, files)
    separator = ("--label", "tags", "--label-separator", ";")
    columns = ("--label", "one", "--label", "two", "--label", "three")
    for name, options in (("joined.csv", separator), ("columns.csv", columns)):
        model = tmp_path / name
        run("fit", files.folder / name, "--text", "body", *options, "-o", model, "--threads", 1)
        assert predictions(model, files) == expected


def test_predicted_sets(files, tmp_path):
    rows = predictions(files.model, files)
    model = longtail.load(files.model)
    assert [row["labels"] for row in rows] == model.predict([text for _, text in files.test])
    for row in rows:
        assert row["classes"][: len(row["labels"])] == row["labels"]
        assert len(row["probabilities"]) == len(row["classes"])
    assert (
        max(len(row["labels"]) for row in predictions(files.model, files, "--max-labels", 1)) == 1
    )
    out = tmp_path / "sets.csv"
    test = files.folder / "test.jsonl"
    run("predict", files.model, test, "--text", "body", "--out", out, "--label-separator", "|")
    with out.open() as file:
        written = list(csv.DictReader(file))
    assert [row["labels"].split("|") for row in written] == [row["labels"] for row in rows]
    assert written[0]["probabilities"].split("|")[0] == f"{rows[0]['probabilities'][0]:.4f}"
    message = fails(
        "predict", files.model, test, "--text", "body", "--label-separator", " ", "-o", out
    )
    assert "contains the separator ' '" in message
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "sets.parquet"
    run("predict", files.model, test, "--text", "body", "--top", 2, "--out", out)
    table = parquet.read_table(out)
    assert table["labels"].to_pylist() == [row["labels"] for row in rows]
    assert table.column_names[-2:] == ["class_2", "probability_2"]
    one = json.loads(run("predict", files.model, files.test[0][1], "--json").stdout)
    assert one["labels"] == rows[0]["labels"]


def test_documents_are_counted_once(files, tmp_path):
    n_labels = sum(len(labels) for labels, _ in files.train)
    model, out = tmp_path / "model", tmp_path / "r.html"
    said = run("fit", *files.source, "-o", model, "--threads", 1).stdout
    assert f"500 documents with {n_labels:,} labels of 12 classes" in said
    sizes = {"documents": 500, "labels": n_labels, "classes": 12}
    for command in (("info", model), ("fit", *files.source, "-o", model, "--threads", 1)):
        found = json.loads(run(*command, "--json").stdout)
        assert {name: found[name] for name in sizes} == sizes
    fitted = longtail.load(model)
    assert fitted.n_documents_ == fitted.health().n_documents == 500
    assert fitted.health().n_labels == fitted.statistics_.n_documents == n_labels
    assert "labels since the last refine" in str(fitted.health())
    run("evaluate", model, files.folder / "test.jsonl", "--report", out)
    assert f"500 documents with {n_labels:,} labels of 12 classes" in out.read_text()
    taught = ("teach", model, "w1x1 w2x2 the", "--class", CLASSES[1], "--class", CLASSES[2])
    found = json.loads(run(*taught, "--json").stdout)
    assert (found["labels"], "documents" in found) == (n_labels + 2, False)
    found = json.loads(run("info", model, "--json").stdout)
    assert (found["documents"], found["labels"]) == (500, n_labels + 2)
    assert "documents of the last fit" in run("info", model).stdout


def test_evaluation(files, tmp_path):
    test = files.folder / "test.jsonl"
    out = run("evaluate", files.model, test, "--json", "--report", tmp_path / "r.html").stdout
    result = json.loads(out)
    predicted = [row["labels"] for row in predictions(files.model, files)]
    expected = longtail.metrics.score_label_sets([labels for labels, _ in files.test], predicted)
    assert result["sets"]["micro_f1"] == pytest.approx(expected.micro_f1)
    assert result["ranking"]["P"]["1"] > 0.8
    assert result["n_labels"] == sum(len(labels) for labels, _ in files.test)
    assert "Calibration" in (tmp_path / "r.html").read_text()
    text = run("evaluate", files.model, test).stdout
    assert "micro F1 of the label sets" in text
    assert "never seen" in text


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_evaluation_writes_labels_beside_their_probabilities(files, tmp_path, ending):
    out = tmp_path / f"p.{ending}"
    run("evaluate", files.model, files.folder / "test.jsonl", "--predictions", out)
    expected = predictions(files.model, files)
    assert any(row["labels"] != sorted(row["labels"]) for row in expected)
    if ending == "csv":
        with out.open(newline="") as file:
            rows = [row["labels"].split(";") for row in csv.DictReader(file)]
        assert rows == [row["labels"] or [""] for row in expected]
    else:
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert [row["labels"] for row in rows] == [row["labels"] for row in expected]


def test_one_label_each_is_evaluated_on_label_sets(files, tmp_path):
    table, model, out = tmp_path / "one.jsonl", tmp_path / "model", tmp_path / "p.jsonl"
    rows = [{"tags": labels[0], "body": text} for labels, text in files.train]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("fit", table, "--text", "body", "--label", "tags", "-o", model, "--threads", 1)
    test = files.folder / "test.jsonl"
    found = json.loads(run("evaluate", model, test, "--predictions", out, "--json").stdout)
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["truth"] for row in written] == [labels for labels, _ in files.test]
    correct = sum(
        row["class"] in labels for row, (labels, _) in zip(written, files.test, strict=True)
    )
    assert found["sets"]["precision"] == pytest.approx(correct / len(files.test))


def test_unknown_classes_are_of_one_label(files):
    said = fails("evaluate", files.model, files.folder / "test.jsonl", "--unknown", 0.2)
    assert "unknown is for models with one label" in said


def test_teach_and_forget(files, tmp_path):
    model = tmp_path / "model"
    shutil.copy(files.model, model)
    text = "zebra crossing zebra stripes"
    run("teach", model, text, "--class", "zebra", "--class", "class 1")
    assert "zebra" in longtail.load(model).classes_.tolist()
    taught = json.loads(run("predict", model, text, "--json").stdout)
    assert taught["ranking"][0]["class"] == "zebra"
    run("forget", model, text, "--class", "zebra")
    assert "zebra" not in longtail.load(model).classes_.tolist()
    run("forget", model, text, "--class", "class 1")
    before, after = longtail.load(files.model).statistics_, longtail.load(model).statistics_
    assert np.array_equal(before.class_sizes, after.class_sizes)
    more = files.folder / "test.jsonl"
    run("teach", model, more)
    n_labels = sum(len(labels) for labels, _ in files.test)
    sizes = longtail.load(model).statistics_.class_sizes
    assert sizes.sum() == before.class_sizes.sum() + n_labels


def test_replicate_is_the_papers_way(files, tmp_path):
    model = tmp_path / "model"
    run("fit", *files.source, "--replicate", "-o", model, "--threads", 1)
    row = predictions(model, files)[0]
    assert isinstance(row["class"], str)
    message = fails(
        "predict", model, files.folder / "test.jsonl", "--text", "body", "--max-labels", 2
    )
    assert "--max-labels is for models of label sets" in message
    text = files.test[0][1]
    assert "give --class once" in fails("teach", model, text, "--class", "a", "--class", "b")


def test_counts(tmp_path):
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(200):
        labels = sorted(rng.choice(8, rng.integers(1, 3), False).tolist())
        terms = sorted({4 * label + rng.integers(4) for label in labels for _ in range(5)})
        lines.append((labels, " ".join(f"{term}:1" for term in terms)))
    body = "".join(f"{','.join(map(str, labels))} {terms}\n" for labels, terms in lines)
    (tmp_path / "train.txt").write_text("200 32 8\n" + body)
    (tmp_path / "train.svm").write_text(body)
    for name, options in (("train.txt", ("--format", "xmc")), ("train.svm", ("--zero-based",))):
        run("fit", tmp_path / name, *options, "-o", tmp_path / "model", "--threads", 1)
        found = run("evaluate", tmp_path / "model", tmp_path / name, *options, "--json").stdout
        result = json.loads(found)
        assert result["n_labels"] == sum(len(labels) for labels, _ in lines)
        assert result["ranking"]["P"]["1"] > 0.9


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ('{"body": "x", "tags": []}', (), "the label in column 'tags' is missing"),
        ('{"body": "x", "tags": ["a", "a"]}', (), "'a' occurs twice"),
        ('{"body": "x", "tags": ["a", null]}', (), "a list with a missing value"),
        ('{"body": "x", "tags": "a;b"}\n{"body": "y", "tags": " ; "}', (";",), "is missing"),
    ],
)
def test_bad_input(tmp_path, rows, options, message):
    path = tmp_path / "t.jsonl"
    path.write_text(rows + "\n")
    separator = ("--label-separator", *options) if options else ()
    columns = ("--text", "body", "--label", "tags", *separator)
    assert message in fails("fit", path, *columns, "-o", tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_check_counts_each_label(files):
    found = json.loads(run("check", *files.source, "--json").stdout)
    assert found["n_classes"] == 12


def test_classes_can_be_known_by_name(files, tmp_path):
    names = tmp_path / "names.tsv"
    names.write_text("class 1\tw1x0\n\nnever seen\tw2x1; w5x1\r\n", encoding="utf-8")
    run("fit", *files.source, "-o", tmp_path / "model", "--class-texts", names, "--threads", 1)
    model = longtail.load(tmp_path / "model")
    assert model.class_texts_ == {"class 1": "w1x0", "never seen": "w2x1; w5x1"}
    assert "never seen" in model.predict_topk(["w2x1 w5x1"], k=5).classes
    for text, message in (("no tab", "label, tab, text"), ("a\tb\na\tc", "line 2: label 'a' is")):
        names.write_text(text)
        for more in ((), ("--workers", 1)):
            words = ("fit", *files.source, "-o", tmp_path / "m", "--class-texts", names, *more)
            assert message in fails(*words)
        assert not (tmp_path / "m").exists()


def test_class_texts_come_in_every_format(files, tmp_path):
    expected = {"class 1": "w1x0", "never seen": "w2x1; w5x1"}
    rows = list(expected.items())
    lines = "".join(f"{label}\t{text}\n" for label, text in rows)
    objects = "".join(json.dumps({"id": a, "a": b[:2], "b": b[2:]}) + "\n" for a, b in rows)
    (tmp_path / "header.tsv").write_text(f"label\ttext\n{lines}")
    turned = "".join(f"{text}\t{label}\n" for label, text in rows)
    (tmp_path / "turned.tsv").write_text(f"text\tlabel\n{turned}")
    (tmp_path / "names.csv").write_text("text,label\n" + "".join(f"{b},{a}\n" for a, b in rows))
    (tmp_path / "parts.jsonl").write_text(objects)
    (tmp_path / "other.tsv").write_text(f"key\tname\n{lines}")
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"label": list(expected), "text": list(expected.values())})
    parquet.write_table(table, tmp_path / "names.parquet")
    for name, *columns in (
        ("header.tsv",),
        ("turned.tsv",),
        ("names.csv",),
        ("names.parquet",),
        ("other.tsv", "--class-texts-label", "key", "--class-texts-text", "name"),
    ):
        given = ("--class-texts", tmp_path / name, *columns, "--no-calibrate", "--quiet")
        run("fit", *files.source, "-o", tmp_path / "model", *given)
        assert (name, longtail.load(tmp_path / "model").class_texts_) == (name, expected)
    columns = ("--class-texts-label", "id", "--class-texts-text", "a", "--class-texts-text", "b")
    given = ("--class-texts", tmp_path / "parts.jsonl", "--no-calibrate", "--quiet")
    run("fit", *files.source, "-o", tmp_path / "model", *given, *columns)
    assert longtail.load(tmp_path / "model").class_texts_["class 1"] == "w1 x0"
    message = fails("fit", *files.source, "-o", tmp_path / "model", *given)
    assert "there is no column 'text'" in message or "there is no column 'label'" in message
    assert ". --class-texts takes a table" in message
    assert "--class-texts-label" in message
    (tmp_path / "three.tsv").write_text("id\tlabel\tname\n1\tclass 1\tw1x0\n")
    given = ("--class-texts", tmp_path / "three.tsv", "-o", tmp_path / "model")
    assert "there is no column 'text'" in fails("fit", *files.source, *given)


def test_a_header_of_class_texts_is_no_class(files, tmp_path):
    names = tmp_path / "names.tsv"
    words = ("fit", *files.source, "-o", tmp_path / "m", "--class-texts", names, "--no-calibrate")
    names.write_text("key\tname\nclass 1\tw1x0\n")
    for more in ((), ("--workers", 1)):
        message = fails(*words, *more)
        assert "are 'key' and 'name' in its first line the names of columns?" in message
        assert "--class-texts-label 'key' --class-texts-text 'name'" in message
        assert not (tmp_path / "m").exists()
    run(*words, "--class-texts-label", "key", "--class-texts-text", "name", "--quiet")
    assert longtail.load(tmp_path / "m").class_texts_ == {"class 1": "w1x0"}
    run(*words, "--class-texts-label", "1", "--class-texts-text", "2", "--quiet")
    expected = {"class 1": "w1x0", "key": "name"}
    assert longtail.load(tmp_path / "m").class_texts_ == expected


def test_class_texts_stand_beside_their_classes(files, tmp_path):
    names = tmp_path / "names.csv"
    names.write_text("label,text\n" + "".join(f"{c},the {c.split()[1]}th\n" for c in CLASSES[:6]))
    model, test = tmp_path / "model", files.folder / "test.jsonl"
    run("fit", *files.source, "-o", model, "--class-texts", names, "--threads", 1, "--quiet")
    texts = longtail.load(model).class_texts_
    assert texts["class 3"] == "the 3th"
    for row in predictions(model, files, "--top", 4):
        assert row["class_texts"] == [texts.get(label) for label in row["classes"]]
    out = tmp_path / "out.csv"
    run("predict", model, test, "-o", out, "--top", 2, "--quiet")
    with out.open(newline="") as file:
        for row in csv.DictReader(file):
            labels = row["labels"].split(";") if row["labels"] else []
            assert row["label_texts"] == " | ".join(texts.get(label, "") for label in labels)
            assert row["class_text_2"] == texts.get(row["class_2"], "")
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    run("predict", model, test, "-o", tmp_path / "out.parquet", "--quiet")
    for row in parquet.read_table(tmp_path / "out.parquet").to_pylist():
        assert row["label_texts"] == [texts.get(label) for label in row["labels"]]
    folder = tmp_path / "folder"
    run("predict", model, test, "-o", folder, "--workers", 1, "--quiet")
    [written] = folder.iterdir()
    for row in map(json.loads, written.read_text().splitlines()):
        assert row["class_texts"] == [texts.get(label) for label in row["classes"]]
    assert "the 1th" in run("predict", model, "w1x0 w1x1 w1x2").stdout
    [first, *_] = json.loads(run("predict", model, "w1x0 w1x1", "--json").stdout)["ranking"]
    assert first["text"] == texts.get(first["class"])
    assert "class 1: the 1th" in run("explain", model, "w1x0 w1x1 w1x2").stdout
    assert json.loads(run("explain", model, "w1x0", "--json").stdout)["text"] == "the 1th"


# ---- what a model was told about its tables


@pytest.fixture(scope="module")
def told(files):
    """A model of labels joined in a column, and a table for testing."""
    folder = files.folder
    for name, rows in (("told.csv", files.train), ("test.csv", files.test)):
        with (folder / name).open("w", newline="") as file:
            joined = (("; ".join(labels), text) for labels, text in rows)
            csv.writer(file).writerows([("tags", "body"), *joined])
    columns = ("--text", "body", "--label", "tags", "--label-separator", "; ")
    run("fit", folder / "told.csv", *columns, "-o", folder / "told", "--threads", 1)
    return SimpleNamespace(model=folder / "told", test=folder / "test.csv")


def test_the_label_separator_is_remembered(told, tmp_path):
    explicit = run("evaluate", told.model, told.test, "--label-separator", "; ", "--json")
    remembered = run("evaluate", told.model, told.test, "--json")
    assert json.loads(remembered.stdout) == json.loads(explicit.stdout)
    assert json.loads(remembered.stdout)["n_unknown"] == 0
    assert json.loads(run("info", told.model, "--json").stdout)["label_separator"] == "; "
    model = shutil.copy(told.model, tmp_path / "model")
    run("teach", model, told.test, "--no-refine", "--quiet")
    assert longtail.load(model).classes_.tolist() == sorted(CLASSES)
    run("forget", model, told.test, "--quiet")
    out = tmp_path / "out.csv"
    run("predict", model, told.test, "-o", out, "--quiet")
    with out.open(newline="") as file:
        predicted = [row["labels"] for row in csv.DictReader(file)]
    with told.test.open(newline="") as file:
        sets = longtail.load(told.model).predict([row["body"] for row in csv.DictReader(file)])
    assert predicted == ["; ".join(labels) for labels in sets]


def test_a_class_is_split_as_in_the_tables(told, tmp_path):
    model = shutil.copy(told.model, tmp_path / "model")
    said = run("teach", model, "w1x0 w2x1", "--class", "class 1; class 2").stdout
    assert "1 document of class 1, class 2 taught" in said
    assert longtail.load(model).classes_.tolist() == sorted(CLASSES)
    before = longtail.load(told.model).statistics_.n_documents
    run("forget", model, "w1x0 w2x1", "--class", "class 1; class 2")
    assert longtail.load(model).statistics_.n_documents == before


def test_options_that_differ_from_what_the_model_was_told_are_named(told, tmp_path):
    said = run("evaluate", told.model, told.test, "--label-separator", "|", "--json").stderr
    assert "--label-separator '|': the model was fitted with '; '." in said
    other = tmp_path / "other.csv"
    other.write_text(told.test.read_text().replace("tags,body", "subjects,text", 1))
    given = ("--text", "text", "--label", "subjects")
    said = run("evaluate", told.model, other, *given).stderr
    assert "--text 'text': the model was fitted with 'body'." in said
    assert "--label 'subjects': the model was fitted with 'tags'." in said
    quiet = run("evaluate", told.model, other, *given, "--quiet").stderr
    assert "fitted with" not in quiet
    same = run("evaluate", told.model, told.test, "--text", "body", "--label-separator", "; ")
    assert "fitted with" not in same.stderr


def test_a_separator_that_was_not_given_is_asked_for(files, told, tmp_path, monkeypatch):
    joined, columns = files.folder / "joined.csv", ("--text", "body", "--label", "tags")
    out = tmp_path / "model"
    for command in (("fit", joined, *columns, "-o", out), ("check", joined, *columns)):
        message = fails(*command)
        assert "most labels in column 'tags' contain ';', such as 'class" in message
        assert "--label-separator ';' to split them" in message
        assert "--label-separator '' to keep them whole" in message
    assert "--label-separator" in fails("fit", joined, *columns, "-o", out, "--workers", 1)
    assert not out.exists()
    # A model of label sets that was told nothing about tables.
    labels, texts = zip(*files.train, strict=True)
    longtail.TextClassifier(random_state=0).fit(texts, list(labels)).save(out)
    for command in ("evaluate", "teach", "forget"):
        assert "--label-separator ';'" in fails(command, out, told.test, *columns)

    whole = tmp_path / "whole"
    run("fit", joined, *columns, "--label-separator", "", "-o", whole, "--no-calibrate", "--quiet")
    assert not longtail.load(whole).classifier_.multilabel_
    run("evaluate", whole, joined, "--quiet")  # it was told once

    monkeypatch.setattr("longtail.cli.inputs._in_terminal", lambda: True)
    asked = run("fit", joined, *columns, "-o", tmp_path / "asked", "--threads", 1, input="y\n")
    assert "Split them at ';'?" in asked.stderr
    assert longtail.load(tmp_path / "asked").columns_.label_separator == ";"
    assert predictions(tmp_path / "asked", files) == predictions(files.model, files)
    asked = run("check", joined, *columns, "--json", input="n\n")
    assert json.loads(asked.stdout[asked.stdout.index("{") :])["n_classes"] > len(CLASSES)


def test_how_files_are_written_is_remembered(files, tmp_path):
    rows = [(text, f"ö {labels[0]}") for labels, text in files.train[:120]]
    table = tmp_path / "table.csv"
    table.write_bytes("".join(f"{text}|{label}\n" for text, label in rows).encode("latin-1"))
    reading = ("--no-header", "--delimiter", "|", "--encoding", "latin-1")
    columns = ("--text", "1", "--label", "2")
    run("fit", table, *columns, *reading, "-o", tmp_path / "model", "--threads", 1)
    run("evaluate", tmp_path / "model", table, *columns, *reading, "--json")
    measured = json.loads(run("evaluate", tmp_path / "model", table, "--json").stdout)
    assert measured["n_documents"] == 120
    assert measured["n_unknown"] == 0
    # A file of another format is read as that format is.
    lines = (json.dumps({"1": text, "2": label}) + "\n" for text, label in rows)
    (tmp_path / "table.jsonl").write_text("".join(lines))
    other = json.loads(
        run("evaluate", tmp_path / "model", tmp_path / "table.jsonl", "--json").stdout
    )
    assert other["accuracy"] == measured["accuracy"]
    # One whose name says nothing is of the format that the model was told.
    shutil.copy(table, tmp_path / "table")
    assert "120 documents" in run("evaluate", tmp_path / "model", tmp_path / "table").stdout


def test_standard_input_is_read_as_the_tables_of_the_fit(files):
    table = files.folder / "test.jsonl"
    named = run("predict", files.model, table).stdout
    assert run_alone("predict", files.model, "-", input=table.read_text()).stdout == named
