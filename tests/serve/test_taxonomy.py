"""The API of a model with a hierarchy: paths, branches, nodes to back off to."""

from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from longtail import TextClassifier
from longtail.serve.application import create_app
from longtail.serve.class_details import encode_id
from longtail.serve.settings import Settings, Token
from tests.serve.conftest import BEARER, TEACH

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


@pytest.fixture
def teaching(model, tmp_path):
    """A service of its own, whose classes a test may change."""
    model.save(tmp_path / "animals.longtail")
    settings = Settings(tokens=(Token("teach", "ann", TEACH),))
    app = create_app(tmp_path / "animals.longtail", settings)
    with TestClient(app, "http://127.0.0.1", headers=BEARER) as client:
        yield client


def list_nodes(client, label=None, **more):
    node = {} if label is None else {"node": encode_id(label)}
    return client.get("/v1/hierarchy", params=node | more).json()


def test_a_hierarchy_is_listed_a_node_at_a_time(animals):
    roots = list_nodes(animals)
    assert [node["label"] for node in roots["nodes"]] == ["animal"]
    assert (roots["total"], roots["path"]) == (1, None)
    below = list_nodes(animals, "animal", limit=1, offset=1)
    assert (below["total"], below["path"]) == (2, ["animal"])
    [mammal] = below["nodes"]
    assert (mammal["label"], mammal["size"], mammal["n_children"]) == ("mammal", None, 2)
    leaves = list_nodes(animals, "mammal")["nodes"]
    assert [node["label"] for node in leaves] == ["bear", "fox"]
    assert all(node["size"] > 0 and node["n_children"] == 0 for node in leaves)
    assert list_nodes(animals, "bear")["nodes"] == []
    assert animals.get("/v1/hierarchy", params={"node": encode_id("eel")}).status_code == 404
    details = animals.get(f"/v1/classes/{encode_id('bear')}").json()
    assert details["path"] == ["animal", "mammal", "bear"]
    assert details["parents"] == [{"id": encode_id("mammal"), "label": "mammal"}]


@pytest.mark.filterwarnings("ignore::longtail.exceptions.HierarchyWarning")
def test_nodes_are_moved_and_moved_back(teaching):
    moved = teaching.patch(
        f"/v1/hierarchy/{encode_id('mammal')}", json={"version": "*", "parents": ["bird"]}
    )
    assert moved.status_code == 200
    assert list_nodes(teaching, "mammal")["path"] == ["animal", "bird", "mammal"]
    cycle = teaching.patch(
        f"/v1/hierarchy/{encode_id('bird')}", json={"version": "*", "parents": ["bear"]}
    )
    assert (cycle.status_code, "cycle" in cycle.text) == (422, True)
    teaching.put("/v1/hierarchy", json={"version": "*", "pairs": [["fox", "canine"]]})
    assert [n["label"] for n in list_nodes(teaching)["nodes"]] == ["bear", "canine", "owl"]
    [change, _] = teaching.get("/v1/changes").json()["changes"]
    assert (change["action"], change["content"]) == ("hierarchy", {"n_nodes": 2})
    teaching.put("/v1/hierarchy", json={"version": "*", "remove": True})
    assert teaching.get("/v1/hierarchy").status_code == 404
    assert teaching.get("/v1/model").json()["hierarchy"] is False
    for number in (1, 3, 2):
        undone = teaching.post("/v1/undo", json={"version": "*", "changes": [number]})
        assert undone.status_code == 200
    assert list_nodes(teaching, "mammal")["path"] == ["animal", "mammal"]
    both = teaching.put(
        "/v1/hierarchy", json={"version": "*", "remove": True, "path_separator": "/"}
    )
    assert both.status_code == 422


@pytest.mark.filterwarnings("ignore::longtail.exceptions.HierarchyWarning")
def test_a_hostile_hierarchy_is_refused_and_a_broad_one_listed(teaching):
    cycle = {"version": "*", "pairs": [["bear", "x"], ["x", "y"], ["y", "bear"]]}
    answer = teaching.put("/v1/hierarchy", json=cycle)
    assert (answer.status_code, "cycle, of 3 nodes" in answer.text) == (422, True)
    deep = [["bear", "n0"], *([f"n{i}", f"n{i + 1}"] for i in range(1_500))]
    answer = teaching.put("/v1/hierarchy", json={"version": "*", "pairs": deep})
    assert (answer.status_code, "chain of 1,502 nodes" in answer.text) == (422, True)
    broad = [["bear", "all"], *([f"a/{i:05d}/../b", "all"] for i in range(20_000))]
    assert teaching.put("/v1/hierarchy", json={"version": "*", "pairs": broad}).status_code == 200
    found = list_nodes(teaching, "all", offset=19_999, limit=500)
    assert (found["total"], len(found["nodes"])) == (20_001, 2)
    assert found["nodes"][0]["label"] == "a/19999/../b"
