"""Models whose labels or class texts are unusual: every route answers, and names each class."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longtail import TextClassifier

pytest.importorskip("fastapi")
from starlette.testclient import TestClient

from longtail.serve.application import create_app
from longtail.serve.class_details import encode_id
from longtail.serve.settings import Settings
from tests.serve.conftest import BEARER, TOKENS

TEXTS = ["a brown bear", "bears eat honey", "the red fox", "a fox runs far"]
UNUSUAL: dict[str, tuple[list[Any], dict[Any, str] | None]] = {
    "surrogate in a label": (["be\udc80ar", "be\udc80ar", "fox", "fox"], None),
    "surrogate in a class text": (["bear", "bear", "fox", "fox"], {"bear": "brown \ud800 bear"}),
    "booleans": ([True, True, False, False], None),
    "floats": ([1.0, 1.0, 2.0, 2.0], None),
}


@pytest.fixture(params=UNUSUAL)
def service(request: Any, tmp_path: Path) -> Iterator[tuple[TestClient, list[Any]]]:
    labels, texts = UNUSUAL[request.param]
    path = tmp_path / "unusual.longtail"
    TextClassifier(random_state=0).fit(TEXTS, labels, class_texts=texts).save(path)
    app = create_app(path, Settings(tokens=TOKENS))
    with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client, labels


def test_every_route_answers(service: tuple[TestClient, list[Any]]) -> None:
    client, labels = service
    text, label = "a brown bear eats honey", labels[0]
    answer = client.post("/v1/predict", json={"documents": [text]})
    assert answer.status_code == 200
    assert answer.json()["results"][0]["labels"] == [label]
    lines = f"{json.dumps(text)}\n{json.dumps('a fox')}\n"
    answer = client.post(
        "/v1/predict", content=lines, headers={"content-type": "application/x-ndjson"}
    )
    assert [json.loads(line)["labels"] for line in answer.text.splitlines()] == [
        [label],
        [labels[2]],
    ]
    assert client.post("/v1/explain", json={"text": text}).json()["explanation"]["label"] == label
    for query in ("bear", ""):
        assert client.get("/v1/classes", params={"query": query}).status_code == 200
    found = client.get(f"/v1/classes/{encode_id(label)}")
    assert (found.status_code, found.json()["label"]) == (200, label)
    for route in ("/v1/model", "/v1/quality", "/v1/changes", "/v1/threshold?precision=0.5"):
        assert client.get(route, headers=BEARER).status_code == 200, route


def test_a_label_can_be_explained(service: tuple[TestClient, list[Any]]) -> None:
    client, labels = service
    sent = [labels[2]] if isinstance(labels[2], str) else [labels[2], int(labels[2])]
    for label in sent:
        answer = client.post("/v1/explain", json={"text": TEXTS[0], "label": label})
        assert answer.status_code == 200
        assert answer.json()["explanation"]["label"] is labels[2] or not isinstance(label, bool)
        assert answer.json()["explanation"]["label"] == labels[2]
