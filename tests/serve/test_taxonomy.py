"""The API of a model with a hierarchy: paths, branches, nodes to back off to."""

from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from longtail import TextClassifier
from longtail.serve.app import create_app
from longtail.serve.settings import Settings

WORDS = {"bear": "brown honey den winter", "fox": "red den runs night", "owl": "hoots night tree"}
PARENTS = {"bear": "mammal", "fox": "mammal", "mammal": "animal", "owl": "bird", "bird": "animal"}


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    labels = rng.choice(list(WORDS), 300)
    texts = [" ".join(rng.choice(WORDS[label].split(), 3)) for label in labels]
    return TextClassifier(random_state=0).fit(texts, labels.tolist(), hierarchy=PARENTS)


@pytest.fixture
def animals(model, tmp_path: Path):
    path = tmp_path / "animals.longtail"
    model.save(path)
    with TestClient(create_app(path, Settings()), base_url="http://127.0.0.1") as client:
        yield client


def ask(client, **body):
    return client.post("/v1/predict", json={"documents": ["honey in the den"], **body})


def test_candidates_have_paths(animals):
    [result] = ask(animals).json()["results"]
    assert result["classes"][0]["path"] == ["animal", "mammal", "bear"]
    assert "node" not in result or result["node"] is None


def test_within_exclude_and_branch(animals, model):
    for body, names in (
        ({"within": ["owl", "fox"]}, {"owl", "fox"}),
        ({"exclude": ["bear"]}, {"owl", "fox"}),
        ({"branch": "mammal"}, {"bear", "fox"}),
        ({"branch": "mammal", "within": ["bear", "owl"]}, {"bear"}),
    ):
        [result] = ask(animals, **body).json()["results"]
        assert {entry["label"] for entry in result["classes"]} == names
    top = model.predict_proba_topk(["honey in the den"], 2, within=["owl", "fox"])
    [result] = ask(animals, within=["owl", "fox"]).json()["results"]
    assert [c["probability"] for c in result["classes"]] == top.scores[0].tolist()
    assert result["none"] == top.none[0]


def test_nodes(animals, model):
    answer = ask(animals, documents=["honey in the den", "den", "qwertz"], back_off=0.9).json()
    found = model.predict_nodes(["honey in the den", "den", "qwertz"], 0.9)
    nodes = [result["node"] for result in answer["results"]]
    assert [node and node["label"] for node in nodes] == [label or None for label in found.labels]
    assert nodes[0]["path"] == ["animal", "mammal", "bear"]
    assert nodes[2] is None


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"within": ["eel"]}, "not among the classes: 'eel'"),
        ({"branch": "eel"}, "no node 'eel'"),
        ({"branch": "mammal", "within": ["owl"]}, "no class"),
        ({"within": []}, "at least 1"),
    ],
)
def test_what_is_refused(animals, body, detail):
    answer = ask(animals, **body)
    assert answer.status_code == 422
    assert detail in answer.text
