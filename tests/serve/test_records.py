"""Documents of several fields through the API and its adapters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from longtail import TextClassifier
from longtail.serve.application import create_app
from longtail.serve.highlights import find_terms
from longtail.serve.settings import Settings
from tests.estimator.test_records import FIELDS, make_records
from tests.serve.conftest import BEARER, TOKENS

RECORD = {
    "subject": "broken order",
    "body": "order late item7",
    "brand": "zed co",
    "price": 150,
    "tags": ["new"],
}
EXPECTED = "broken/zed co/dear"
RECORDS, LABELS = make_records(480)
for i, record in enumerate(RECORDS):  # a word of few classes, which explanations do not fold
    record["body"] += f" item{i % 40}"
CONFIGURATION = '<View><Text name="t" value="$subject"/><Choices name="c" toName="t"/></View>'


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    path = tmp_path_factory.mktemp("records") / "orders.longtail"
    TextClassifier(fields=FIELDS, random_state=0).fit(RECORDS, LABELS).save(path)
    app = create_app(Path(path), Settings(tokens=TOKENS))
    with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client:
        client.headers.update(BEARER)
        yield client


def best(answer: dict) -> str:
    return answer["results"][0]["classes"][0]["label"]


def test_predict_takes_records_texts_and_json(client: TestClient) -> None:
    for document in (RECORD, json.dumps(RECORD)):
        answer = client.post("/v1/predict", json={"documents": [document]})
        assert best(answer.json()) == EXPECTED
    documents = [{"text": "broken"}, "broken", {"brand": None}, '{"price": "cheap"}']
    answer = client.post("/v1/predict", json={"documents": documents, "new_words": True}).json()
    first, second, nothing, text = answer["results"]
    assert first == second
    assert nothing["classes"] == []
    assert text["new_words"] == ["price", "cheap"]
    assert client.get("/v1/model").json()["fields"] == FIELDS


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"price": "cheap"}, "document 0: field 'price' holds 'cheap'; expected a number."),
        ({"subject": {"a": 1}}, "document 0: field 'subject' holds a dict"),
        ({"prise": 1}, "document 0 must be a text, or an object with 'subject' and 'body'"),
    ],
)
def test_bad_records_are_refused(client: TestClient, document: dict, message: str) -> None:
    answer = client.post("/v1/predict", json={"documents": [document]})
    assert answer.status_code == 422
    assert message in answer.json()["detail"]


def test_a_stream_takes_records(client: TestClient) -> None:
    lines = [json.dumps(RECORD), json.dumps({"price": "cheap"}), json.dumps("broken")]
    headers = {"Content-Type": "application/x-ndjson"}
    answer = client.post("/v1/predict", content="\n".join(lines), headers=headers)
    found = [json.loads(line) for line in answer.text.splitlines()]
    assert found[0]["classes"][0]["label"] == EXPECTED
    assert found[1]["error"]["status"] == 422
    assert found[2]["classes"]


def test_explain_names_fields(client: TestClient) -> None:
    answer = client.post("/v1/explain", json={"text": RECORD, "top_terms": 20}).json()
    explanation = answer["explanation"]
    terms = {part["term"]: part for part in explanation["terms"]}
    assert "brand=zed co" in terms or "brand=zed co" in explanation["common"]
    assert all(part["spans"] == [] for term, part in terms.items() if "=" in term)


def test_words_are_found_in_their_field() -> None:
    model = TextClassifier(fields=FIELDS, random_state=0).fit(RECORDS, LABELS)
    wanted = ["order", "subject:order", "body:order", "body:order late", "brand=zed co"]
    found = find_terms(model.vocabulary_, json.dumps(RECORD), wanted)
    assert found == {
        "order": [(7, 12), (13, 18)],
        "subject:order": [(7, 12)],
        "body:order": [(13, 18)],
        "body:order late": [(13, 23)],
        "brand=zed co": [],
    }


def test_teach_and_undo(client: TestClient) -> None:
    taught = [{"text": {"brand": "new brand", "price": 3}, "label": "new"}]
    answer = client.post("/v1/teach", json={"documents": taught, "version": "*"})
    assert answer.status_code == 200
    answer = client.post("/v1/predict", json={"documents": [{"brand": "new brand"}]})
    assert best(answer.json()) == "new"
    [change] = client.get("/v1/changes").json()["changes"]
    assert change["content"]["documents"] == ['{"brand": "new brand", "price": 3}']
    assert client.get("/v1/classes").status_code == 200
    client.post("/v1/undo", json={"version": "*"})
    empty = [{"text": {"brand": None}, "label": "new"}]
    answer = client.post("/v1/teach", json={"documents": empty, "version": "*"})
    assert answer.status_code == 422


def test_label_studio_and_annif(client: TestClient) -> None:
    data = {"id": 1, "data": {k: v for k, v in RECORD.items() if k != "tags"}}
    expected = best(client.post("/v1/predict", json={"documents": [data["data"]]}).json())
    asked = {"tasks": [data], "label_config": CONFIGURATION}
    [result] = client.post("/predict", json=asked).json()["results"]
    assert result["result"][0]["value"]["choices"] == [expected]
    form = urlencode(data["data"] | {"limit": 3})
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = client.post("/v1/projects/longtail/suggest", content=form, headers=headers)
    assert answer.json()["results"][0]["label"] == expected
    event = {
        "action": "ANNOTATION_CREATED",
        "project": {"label_config": CONFIGURATION},
        "task": {"data": {"subject": "broken", "brand": "labelled brand"}},
        "annotation": {"result": [{"type": "choices", "value": {"choices": ["by hand"]}}]},
    }
    assert client.post("/webhook", json=event).status_code == 200
    asked = {"documents": [{"brand": "labelled brand"}]}
    assert best(client.post("/v1/predict", json=asked).json()) == "by hand"
    taught = [{"text": event["task"]["data"], "label": "by hand"}]
    answer = client.post("/v1/forget", json={"documents": taught, "version": "*"})
    assert answer.status_code == 200
    assert client.post("/v1/predict", json=asked).json()["results"][0]["classes"] == []


def test_mlflow_takes_records(client: TestClient) -> None:
    pd = pytest.importorskip("pandas")
    from longtail.integrations.mlflow import LongtailModel

    model = TextClassifier(fields=FIELDS, random_state=0).fit(RECORDS, LABELS)
    found = LongtailModel(model).predict(pd.DataFrame([RECORD]))
    assert found["label"].tolist() == [EXPECTED]
