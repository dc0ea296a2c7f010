"""Hierarchies and subsets on the command line."""

import json
import shutil

import numpy as np
import pytest

import longtail
from tests.cli.test_models import fails, run, write_csv

WORDS = {
    "mammal/bear": "brown honey den winter claws",
    "mammal/fox": "red den runs night tail",
    "bird/owl": "hoots night tree feathers",
    "bird/duck": "pond quacks feathers swims",
}


def make_rows(seed, n):
    rng = np.random.default_rng(seed)
    labels = rng.choice(list(WORDS), n).tolist()
    return [(label, " ".join(rng.choice(WORDS[label].split(), 3))) for label in labels]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("taxonomy")
    train = write_csv(folder / "train.csv", make_rows(0, 400))
    test = write_csv(folder / "test.csv", make_rows(1, 60))
    model = folder / "animals.longtail"
    options = ("--text", "body", "--label", "genus", "--quiet")
    run("fit", train, *options, "--path-separator", "/", "-o", model)
    return folder, train, test, model, options


def read_jsonl(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_every_way_to_give_a_hierarchy(files):
    folder, train, _, model, options = files
    pairs = {label: label.split("/")[0] for label in WORDS}
    table = write_csv(folder / "parents.csv", pairs.items(), ("child", "parent"))
    bare = folder / "parents.tsv"
    bare.write_text("".join(f"{child}\t{parent}\n" for child, parent in pairs.items()))
    rows = [(label, body, pairs[label]) for label, body in make_rows(0, 400)]
    column = write_csv(folder / "column.csv", rows, ("genus", "body", "family"))
    wanted = longtail.load(model).hierarchy_
    for name, arguments in {
        "table": (train, "--hierarchy", table),
        "bare": (train, "--hierarchy", bare),
        "column": (column, "--parent-column", "family"),
    }.items():
        run("fit", *arguments, *options, "-o", folder / name)
        found = longtail.load(folder / name).hierarchy_
        assert found.nodes.tolist() == wanted.nodes.tolist()
        assert found.parents.tolist() == wanted.parents.tolist()
    facts = json.loads(run("info", model, "--json").stdout)
    assert facts["hierarchy_nodes"] == 6


def test_within_exclude_and_branch(files):
    folder, _, test, model, _ = files
    allowed = folder / "allowed.txt"
    allowed.write_text("mammal/fox\n\nbird/owl\n")
    loaded = longtail.load(model)
    texts = [body for _, body in make_rows(1, 60)]
    for arguments, given in (
        (("--within", allowed), {"within": ["mammal/fox", "bird/owl"]}),
        (("--exclude", allowed), {"exclude": ["mammal/fox", "bird/owl"]}),
        (("--branch", "bird"), {"within": ["bird/duck", "bird/owl"]}),
        (("--branch", "bird", "--within", allowed), {"within": ["bird/owl"]}),
    ):
        rows = read_jsonl(run("predict", model, test, *arguments, "--json", "--quiet"))
        assert [row["class"] for row in rows] == loaded.predict(texts, within=given.get(
            "within"), exclude=given.get("exclude")).tolist()  # fmt: skip
    text = json.loads(run("predict", model, "honey", "--branch", "mammal", "--json").stdout)
    assert {entry["class"] for entry in text["ranking"]} == {"mammal/bear", "mammal/fox"}
    assert text["path"] == ["mammal", "mammal/bear"]
    assert "mammal > mammal/bear" in run("predict", model, "honey").stdout


def test_nodes_and_levels(files):
    folder, _, test, model, _ = files
    loaded = longtail.load(model)
    texts = [body for _, body in make_rows(1, 60)]
    rows = read_jsonl(run("predict", model, test, "--back-off", "0.95", "--json", "--quiet"))
    assert [row["class"] or "" for row in rows] == loaded.predict(texts, back_off=0.95).tolist()
    texts = ["tail den feathers hoots", "runs den pond pond"]  # of two classes each
    doubtful = write_csv(folder / "doubtful.csv", [("", text) for text in texts])
    arguments = ("--back-off", "0.9", "--unknown", "0.5", "--json", "--quiet")
    rows = read_jsonl(run("predict", model, doubtful, *arguments))
    told = longtail.load(model).expect_unknown(0.5).predict_nodes(texts, 0.9)
    assert [row["class"] or "" for row in rows] == told.labels.tolist()
    assert told.labels.tolist() != loaded.predict(texts, back_off=0.9).tolist()
    texts = [body for _, body in make_rows(1, 60)]
    rows = read_jsonl(run("predict", model, test, "--level", 1, "--json", "--quiet"))
    top = loaded.predict_proba_topk(texts, 1, level=1)
    assert [row["class"] for row in rows] == top.classes[:, 0].tolist()
    report = json.loads(run("evaluate", model, test, "--json", "--quiet").stdout)
    assert report["hierarchical"]["levels"]["1"][0] >= report["accuracy"]
    assert "hierarchical F1" in run("evaluate", model, test, "--quiet").stdout


def test_mistakes(files):
    folder, train, test, model, options = files
    plain, cycle, strange = folder / "plain", folder / "cycle.tsv", folder / "strange.txt"
    cycle.write_text("bird/owl\tmammal/fox\nmammal/fox\tbird/owl\n")
    strange.write_text("eel\n")
    run("fit", train, *options, "-o", plain)
    message = fails("fit", train, *options, "--hierarchy", cycle, "-o", folder / "x")
    assert "cycle" in message
    message = fails("fit", train, *options, "--hierarchy", cycle, "--path-separator", "/",
                    "-o", folder / "x")  # fmt: skip
    assert "--hierarchy and --path-separator each give a hierarchy" in message
    assert "not among the classes: 'eel'" in fails("predict", model, test, "--within", strange)
    assert "no node 'eel'" in fails("predict", model, test, "--branch", "eel")
    assert "no hierarchy" in fails("predict", plain, test, "--branch", "bird")
    assert "no hierarchy" in fails("predict", plain, test, "--back-off", "0.9")
    assert "does not go with" in fails("predict", model, test, "--back-off", "0.9", "--top", "3")
    assert "cannot be read" in fails("predict", model, test, "--within", folder)
    assert "goes with --precision" in fails("predict", model, test, "--unknown", "0.2")


def test_a_vocabulary(files):
    pytest.importorskip("rdflib")
    folder, train, _, _, options = files
    vocabulary = folder / "animals.ttl"
    concepts = "".join(
        f'<http://a.org/{i}> a skos:Concept; skos:notation "{label}"; '
        f'skos:prefLabel "Name {i}"@en; skos:broader <http://a.org/{label.split("/")[0]}> .\n'
        for i, label in enumerate(WORDS)
    ) + "".join(
        f'<http://a.org/{family}> a skos:Concept; skos:notation "{family}" .\n'
        for family in ("mammal", "bird")
    )
    prefix = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
    vocabulary.write_text(prefix + concepts)
    run("fit", train, *options, "--taxonomy", vocabulary, "-o", folder / "skos")
    loaded = longtail.load(folder / "skos")
    assert loaded.hierarchy_.path("bird/owl") == ("bird", "bird/owl")
    assert loaded.class_texts_["bird/owl"] == "Name 2"


def test_parents_are_changed_and_undone(files):
    folder, _, _, model, _ = files
    path = folder / "changed"
    shutil.copy(model, path)
    table = folder / "other.tsv"
    table.write_text("mammal/fox\tred things\nbird/owl\tgrey things\n")
    assert "a hierarchy of 4 nodes" in run("hierarchy", path, table).stdout
    assert "below grey things" in run("move", path, "mammal/bear", "grey things").stdout
    assert longtail.load(path).hierarchy_.path("mammal/bear") == ("grey things", "mammal/bear")
    assert "is a root" in run("move", path, "mammal/bear", "--by", "ann").stdout
    listed = json.loads(run("info", path, "--changes", "--json").stdout)
    summaries = [change["summary"] for change in listed["log"]]
    assert summaries == [
        "4 nodes", "mammal/bear is below grey things", "mammal/bear is a root",
    ]  # fmt: skip
    run("undo", path, 2)
    run("hierarchy", path, "--none")
    assert longtail.load(path).hierarchy_ is None
    assert "hierarchy: " in run("undo", path).stdout
    run("hierarchy", path, "--path-separator", "/")
    run("compact", path)
    assert longtail.load(path).hierarchy_.path("bird/owl") == ("bird", "bird/owl")
    assert "give one of FILE" in fails("hierarchy", path, table, "--none")
    assert "cycle" in fails("move", path, "bird", "bird/owl")
    assert "neither a class nor a node" in fails("move", path, "eel", "bird")
