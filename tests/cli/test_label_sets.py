"""Label sets through every command: read, fitted, evaluated, predicted, taught, forgotten."""

from __future__ import annotations

import csv
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import longtail
from tests.cli.test_models import fails, run

if "multilabel" not in longtail.LongTailClassifier().get_params():
    pytest.skip("this version fits one label for each document", allow_module_level=True)

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
    for text, message in (("no tab", "line 1: no tab"), ("a\tb\na\tc", "line 2: label 'a' is")):
        names.write_text(text)
        for more in ((), ("--workers", 1)):
            words = ("fit", *files.source, "-o", tmp_path / "m", "--class-texts", names, *more)
            assert message in fails(*words)
        assert not (tmp_path / "m").exists()
