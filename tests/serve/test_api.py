"""The API in this process: what it answers, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import longtail
from longtail.serve.app import create_app
from longtail.serve.class_details import encode_id
from longtail.serve.served_model import Snapshot
from longtail.serve.settings import Limits, Settings
from tests.serve.conftest import BEARER, READ, TOKENS, make_documents, version_of

TEXT = "a large animal eats honey in its den"


def teach(client: TestClient, text: str, label: Any, **more: Any) -> Any:
    document = {"text": text, "label": label}
    body = {"documents": [document], "version": "*"} | more
    return client.post("/v1/teach", json=body, headers=BEARER)


def best(client: TestClient, text: str) -> Any:
    body = {"documents": [text], "k": 1}
    return client.post("/v1/predict", json=body).json()["results"][0]["labels"][0]


def problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert {"type", "title", "detail"} <= body.keys()
    return body


def test_predictions_are_those_of_the_model(client: TestClient, model_file: Path) -> None:
    texts = [TEXT, "", "hoots at night", "\0 \x1b[31m \u202e <script>"]
    model = longtail.load(model_file)
    top = model.predict_proba_topk(texts, 12)
    body = {"documents": texts, "k": 4, "precision": 0.9, "new_words": True}
    answer = client.post("/v1/predict", json=body).json()
    threshold = model.threshold_for(0.9)
    for row, result in enumerate(answer["results"]):
        found = [entry["label"] for entry in result["classes"]]
        probabilities = [entry["probability"] for entry in result["classes"]]
        assert found == top.classes[row, :4].tolist()
        assert probabilities == top.scores[row, :4].tolist()
        assert result["none"] == pytest.approx(max(0, 1 - top.scores[row].sum()), abs=1e-12)
        is_sure = top.scores[row, 0] >= threshold.threshold
        assert result["labels"] == (found[:1] if is_sure else [])
        assert result["abstained"] is not bool(is_sure)
    assert answer["results"][0]["new_words"] == ["in", "its"]
    assert np.isclose(answer["threshold"]["coverage"], threshold.coverage)


def test_a_stream_has_an_answer_for_every_line(client: TestClient) -> None:
    lines = [json.dumps({"text": TEXT}), json.dumps("hoots"), "{", json.dumps("x" * 100_001), ""]
    lines += [json.dumps(f"honey {i}") for i in range(300)]
    kind = {"content-type": "application/x-ndjson"}
    answer = client.post("/v1/predict?k=2", content="\n".join(lines), headers=kind)
    found = [json.loads(line) for line in answer.text.splitlines()]
    assert len(found) == 304
    assert [entry.get("error", {}).get("status") for entry in found[:5]] == [
        *(None, None, 422, 422, None)
    ]
    assert found[0]["labels"] == ["bear"]
    assert all(len(entry["classes"]) == 2 for entry in found[4:])


def test_an_explanation_adds_up_and_finds_its_terms(client: TestClient) -> None:
    text = "HONEY, and a dën \U0001f43b honey"
    answer = client.post("/v1/explain", json={"text": text, "label": "bear"}).json()
    for part in (answer["explanation"], answer["runner_up"]):
        terms = sum(term["contribution"] for term in part["terms"])
        assert terms + part["rest"] + part["constant"] == pytest.approx(part["score"])
        assert sum(part["features"].values()) == pytest.approx(part["score"])
    named = [
        [term["term"] for term in answer[key]["terms"]] for key in ("explanation", "runner_up")
    ]
    assert named[0] == named[1]  # so that they can be compared
    spans = {term["term"]: term["spans"] for term in answer["explanation"]["terms"]}
    assert [text[a:b] for a, b in spans["honey"]] == ["HONEY", "honey"]
    assert [text[a:b] for a, b in spans["den"]] == ["dën"]
    problem(client.post("/v1/explain", json={"text": "x", "label": "yeti"}), 422)


def test_what_is_taught_counts_at_once_and_is_undone_exactly(
    client: TestClient, model_file: Path
) -> None:
    before = client.post("/v1/predict", json={"documents": [TEXT]}).json()
    answer = teach(client, "stripes and whiskers", "tiger", version=before["version"], by="zoe")
    assert answer.json()["change"] == 1
    assert best(client, "whiskers") == "tiger"
    assert longtail.load(model_file).predict(["whiskers"]).tolist() == ["tiger"]
    changes = client.get("/v1/changes").json()["changes"]
    assert (changes[0]["by"], changes[0]["action"]) == ("ann: zoe", "teach")
    undone = client.post("/v1/undo", json={"version": answer.json()["version"]}, headers=BEARER)
    assert undone.json()["change"] == 2
    after = client.post("/v1/predict", json={"documents": [TEXT]}).json()
    assert after["results"] == before["results"]
    taught = {"documents": [{"text": "x y", "label": "tiger"}], "version": "*"}
    assert client.post("/v1/teach", json=taught, headers=BEARER).status_code == 200
    assert client.post("/v1/forget", json=taught, headers=BEARER).status_code == 200
    problem(client.post("/v1/forget", json=taught, headers=BEARER), 422)


def test_a_change_against_an_old_version_is_refused(client: TestClient) -> None:
    version = version_of(client)
    current = teach(client, "first", "tiger", version=version).json()["version"]
    refused = problem(teach(client, "second", "tiger", version=version), 409)
    assert refused["version"] == current
    assert refused["type"].endswith("#version-moved")
    assert client.get("/v1/changes").json()["total"] == 1


def test_classes_are_found_shown_and_edited(client: TestClient) -> None:
    for query, expected in (("wol", "wolf"), ("wlof", "wolf"), ("BÉAR", "bear")):
        found = client.get("/v1/classes", params={"query": query, "by": "name"}).json()
        assert found["classes"][0]["label"] == expected, query
    by_score = client.get("/v1/classes", params={"query": "hoots", "by": "score"}).json()
    assert by_score["classes"][0]["label"] == "owl"
    listed = client.get("/v1/classes", params={"sort": "size", "limit": 3, "offset": 1}).json()
    assert listed["total"] == 12
    assert [entry["size"] for entry in listed["classes"]] == [40] * 3
    details = client.get(f"/v1/classes/{encode_id('owl')}").json()
    assert details["size"] == 40
    assert "hoots" in [entry["term"] for entry in details["terms"]]
    assert "owl" not in [entry["label"] for entry in details["neighbours"]]

    def edit(label: str, **change: Any) -> Any:
        address = f"/v1/classes/{encode_id(label)}"
        return client.patch(address, json={"version": "*"} | change, headers=BEARER)

    assert edit("owl", rename="barn owl / strix").status_code == 200
    assert best(client, "hoots") == "barn owl / strix"
    assert client.get("/v1/classes", params={"query": "strx"}).json()["classes"][0]["size"] == 40
    assert edit("fox", merge_into="wolf").status_code == 200
    assert client.get(f"/v1/classes/{encode_id('wolf')}").json()["size"] == 80
    assert edit("seal", remove=True).status_code == 200
    problem(client.get(f"/v1/classes/{encode_id('seal')}"), 404)
    problem(edit("owl", rename="x"), 404)
    problem(edit("hare", rename="x", remove=True), 422)
    problem(edit("hare", merge_into="nobody"), 422)


@pytest.mark.parametrize(
    "label", ["", " ", "a\0b", "a\nb", "\x1b[31mred", "x" * 1_001, None, 1.5, ["a"]]
)
def test_labels_that_cannot_be_shown_are_refused(client: TestClient, label: Any) -> None:
    problem(teach(client, "text", label), 422)


@pytest.mark.parametrize("label", ["<img src=x onerror=alert(1)>", "\u202egnorw", "é\U0001f43b/.."])
def test_hostile_names_are_kept_as_they_are(client: TestClient, label: str) -> None:
    assert teach(client, "zyx", label).status_code == 200
    assert best(client, "zyx") == label
    assert client.get(f"/v1/classes/{encode_id(label)}").json()["label"] == label
    found = client.get("/v1/classes", params={"query": label, "by": "name"}).json()
    assert found["classes"][0]["label"] == label


def test_requests_that_cannot_be_used_are_problems(client: TestClient) -> None:
    predict = "/v1/predict"
    problem(client.post(predict, content="{", headers={"content-type": "application/json"}), 422)
    problem(client.post(predict, content="{}", headers={"content-type": "text/plain"}), 415)
    lone = b'{"documents": ["\\ud800"]}'
    problem(client.post(predict, content=lone, headers={"content-type": "application/json"}), 422)
    for body in ({}, {"documents": []}, {"documents": [1]}, {"documents": ["x"], "k": 0},
                 {"documents": ["x"], "other": 1}, {"documents": ["x" * 100_001]},
                 {"documents": ["x"] * 1_025}, {"documents": ["x"], "precision": 2}):  # fmt: skip
        problem(client.post(predict, json=body), 422)
    problem(client.get("/nothing"), 404)
    problem(client.delete("/v1/model", headers=BEARER), 405)
    problem(client.get("/page/..%2Fapp.py"), 404)
    surrogate = b'{"documents": [{"text": "x", "label": "\\ud800"}], "version": "*"}'
    headers = BEARER | {"content-type": "application/json"}
    problem(client.post("/v1/teach", content=surrogate, headers=headers), 422)


def test_changes_need_a_token_that_teaches(client: TestClient, model_file: Path) -> None:
    body = {"documents": [{"text": "x", "label": "bear"}], "version": "*"}
    refused = client.post("/v1/teach", json=body)
    assert refused.headers["www-authenticate"] == "Bearer"
    problem(refused, 401)
    for value in ("Bearer wrong-secret-0123456789", "Bearer", "Bearer ", "Basic !!"):
        problem(client.post("/v1/teach", json=body, headers={"Authorization": value}), 401)
    reading = {"Authorization": f"Bearer {READ}"}
    problem(client.post("/v1/teach", json=body, headers=reading), 403)
    for method, path in (
        ("PATCH", "/v1/classes/sYQ"),
        ("POST", "/v1/reload"),
        ("POST", "/webhook"),
    ):
        problem(client.request(method, path, json=body), 401)
    assert client.get("/v1/changes").json()["total"] == 0
    basic = client.post("/v1/teach", json=body, auth=("anyone", BEARER["Authorization"][7:]))
    assert basic.status_code == 200
    trail = [json.loads(line) for line in model_file.with_suffix(".audit").read_text().splitlines()]
    assert [entry["outcome"] for entry in trail[:-1]].count("done") == 0
    assert (trail[-1]["by"], trail[-1]["action"], trail[-1]["outcome"]) == ("ann", "teach", "done")
    assert "secret" not in json.dumps(trail)


def test_reading_needs_a_token_where_others_can_ask(model_file: Path) -> None:
    settings = Settings(host="0.0.0.0", tokens=TOKENS, allowed_hosts=("taxa.example",))
    with TestClient(create_app(model_file, settings), "http://taxa.example") as client:
        problem(client.get("/v1/classes"), 401)
        problem(client.post("/v1/predict", json={"documents": ["x"]}), 401)
        problem(client.get("/metrics"), 401)
        reading = {"Authorization": f"Bearer {READ}"}
        assert client.get("/v1/classes", headers=reading).status_code == 200
        assert client.get("/health/ready").status_code == 200
        assert client.get("/").status_code == 200
        problem(client.get("/", headers={"host": "evil.example"}), 421)


def test_limits(model_file: Path) -> None:
    limits = Limits(body_bytes=2_000, queued_documents=8, requests_per_client=0)
    app = create_app(model_file, Settings(tokens=TOKENS, limits=limits))
    with TestClient(app, "http://127.0.0.1") as client:
        problem(client.post("/v1/predict", json={"documents": ["x" * 2_000]}), 413)
        refused = client.post("/v1/predict", json={"documents": ["x"]})
        problem(refused, 429)
        assert refused.headers["retry-after"] == "1"
        app._settings = Settings(limits=Limits(body_bytes=2_000))
        problem(client.post("/v1/predict", json={"documents": ["x"] * 9}), 503)

        def pieces() -> Any:
            yield b'{"documents": ["'
            yield b"x" * 3_000

        headers = {"content-type": "application/json"}  # and no length
        problem(client.post("/v1/predict", content=pieces(), headers=headers), 413)


def test_a_fault_shows_nothing_of_itself(client: TestClient, monkeypatch: Any) -> None:
    import longtail.serve.routes.status as status

    def fail(snapshot: Any) -> None:
        raise RuntimeError("secret detail in /root/models")

    monkeypatch.setattr(status, "measure_quality", fail)
    body = problem(client.get("/v1/quality"), 500)
    assert "secret" not in json.dumps(body)


def test_answers_carry_security_headers_and_no_cors(client: TestClient) -> None:
    answer = client.get("/", headers={"origin": "http://evil.example"})
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not any(name.startswith("access-control") for name in answer.headers)
    assert "http://" not in answer.text.replace("http://www.w3.org", "")


def test_quality_and_metrics(client: TestClient) -> None:
    client.post("/v1/predict", json={"documents": ["x"]})
    quality = client.get("/v1/quality").json()
    assert quality["n_held_out"] >= 0
    assert sum(entry["n_documents"] for entry in quality["bins"]) == quality["n_held_out"]
    text = client.get("/metrics").text
    assert 'longtail_requests_total{method="POST",route="/v1/predict",status="200"} 1.0' in text
    assert "longtail_batch_documents_sum 1.0" in text


def test_a_new_file_is_taken_in_and_a_wrong_one_is_not(
    client: TestClient, model_file: Path
) -> None:
    other = longtail.load(model_file).partial_fit(["purrs"], ["tiger"])
    other.save(model_file)
    answer = client.post("/v1/reload", headers=BEARER).json()
    assert answer["changed"] is True
    assert best(client, "purrs") == "tiger"
    wrong = model_file.with_suffix(".wrong")
    wrong.write_bytes(b"nonsense")
    wrong.replace(model_file)  # never written in place: the open file is mapped
    refused = problem(client.post("/v1/reload", headers=BEARER), 409)
    assert str(model_file.parent) not in refused["detail"]
    assert best(client, "purrs") == "tiger"


def test_read_only_services_follow_the_one_that_teaches(
    client: TestClient, model_file: Path
) -> None:
    settings = Settings(tokens=TOKENS, read_only=True)
    with TestClient(create_app(model_file, settings), "http://127.0.0.1") as follower:
        body = {"documents": [{"text": "x", "label": "bear"}], "version": "*"}
        problem(follower.post("/v1/teach", json=body, headers=BEARER), 403)
        service = follower.app.fastapi.state.service  # type: ignore[attr-defined]

        def catch_up() -> None:
            assert follower.portal is not None
            follower.portal.call(service.model.refresh)

        for _ in range(2):
            version = teach(client, "purrs", "tiger").json()["version"]
            catch_up()
            assert version_of(follower) == version
            assert best(follower, "purrs") == "tiger"
        client.post("/v1/undo", json={"version": "*", "n": 2}, headers=BEARER)
        catch_up()
        assert version_of(follower) == version_of(client)
        assert best(follower, "purrs") != "tiger"


def test_label_sets(tmp_path: Path) -> None:
    texts, labels = make_documents(25)
    both = [f"{a} {b}" for a, b in zip(texts, texts[25:], strict=False)]
    sets = [sorted({a, b}) for a, b in zip(labels, labels[25:], strict=False)]
    path = tmp_path / "sets.longtail"
    model = longtail.TextClassifier(random_state=0).fit(both, sets)
    model.save(path)
    app = create_app(path, Settings(tokens=TOKENS))
    with TestClient(app, "http://127.0.0.1") as client:
        assert client.get("/v1/model").json()["multilabel"] is True
        asked = {"documents": both[::40], "k": 12}
        results = client.post("/v1/predict", json=asked).json()["results"]
        assert [result["labels"] for result in results] == model.predict(both[::40])
        threshold = model.threshold_for(0.7)
        results = client.post("/v1/predict", json=asked | {"precision": 0.7}).json()["results"]
        expected = model.predict(both[::40], threshold=threshold)
        assert [result["labels"] for result in results] == expected
        document = {"text": "stripes purring", "labels": ["tiger", "zebra"]}
        body = {"documents": [document], "version": "*"}
        assert client.post("/v1/teach", json=body, headers=BEARER).status_code == 200
        (result,) = client.post("/v1/predict", json={"documents": ["stripes"]}).json()["results"]
        assert {entry["label"] for entry in result["classes"][:2]} == {"tiger", "zebra"}
        assert client.get("/v1/quality").status_code == 200


def test_classes_with_names_are_shown_and_found_by_them(sets_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "sets.longtail"
    path.write_bytes(sets_file.read_bytes())
    app = create_app(path, Settings(tokens=TOKENS))
    with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client:
        model = longtail.load(path)
        body = {"documents": ["honey in the den, claws"], "k": 13}
        result = client.post("/v1/predict", json=body).json()["results"][0]
        assert result["labels"] == model.predict(body["documents"])[0]
        assert result["classes"][0]["text"] == model.class_texts_[result["classes"][0]["label"]]
        marginals = [entry["probability"] for entry in result["classes"]]
        assert result["none"] == pytest.approx(np.prod(1 - np.array(marginals)))

        def find(query: str) -> list[str]:
            answer = client.get("/v1/classes", params={"query": query, "by": "name"}).json()
            return [entry["label"] for entry in answer["classes"]]

        assert find("furry")[0] == find("frury animals")[0] == "id-fur"
        assert find("id-fur").count("id-fur") == 1
        assert find("the").count("id-00") == 1  # though it is found by both of its names
        address = f"/v1/classes/{encode_id('id-fur')}"
        changed = client.patch(
            address, json={"text": "with a coat", "version": "*"}, headers=BEARER
        )
        assert changed.status_code == 200
        assert client.get(address).json()["text"] == "with a coat"
        assert find("with a coat")[0] == "id-fur"
        assert find("furry")[:1] != ["id-fur"]
        suggested = client.post("/v1/projects/longtail/suggest", data={"text": "honey den"})
        assert suggested.json()["results"][0]["label"] == "the bear"
        answer = client.post("/v1/explain", json={"text": "honey den"}).json()
        assert answer["explanation"]["text"] == "the bear"
        labels = ["id-00", "id-fur", "id-new"]
        document = {"text": "purrs softly", "labels": labels}
        body = {"documents": [document], "version": "*"}
        assert client.post("/v1/teach", json=body, headers=BEARER).status_code == 200
        found = client.post("/v1/predict", json={"documents": ["purrs softly"]}).json()
        assert found["results"][0]["classes"][0]["label"] in labels
        assert "text" not in next(
            entry for entry in found["results"][0]["classes"] if entry["label"] == "id-new"
        )


@pytest.mark.parametrize("kind", ["one label", "label sets"])
def test_quality_and_thresholds_are_those_of_the_model(
    kind: str, fitted_file: Path, sets_file: Path
) -> None:
    path = fitted_file if kind == "one label" else sets_file
    model = longtail.load(path)
    with TestClient(create_app(path, Settings()), "http://127.0.0.1") as client:
        quality = client.get("/v1/quality").json()
        for precision in (0.5, 0.8, 0.9):
            found = client.get("/v1/threshold", params={"precision": precision}).json()
            expected = model.threshold_for(precision)
            assert found["threshold"] == pytest.approx(expected.threshold)
            assert found["coverage"] == pytest.approx(expected.coverage)
            # The curve has the point that the threshold chooses, or one next to it.
            point = min(quality["curve"], key=lambda p: abs(p["threshold"] - found["threshold"]))
            assert point["precision"] == pytest.approx(found["expected_precision"], abs=0.02)
            assert point["coverage"] == pytest.approx(found["coverage"], abs=0.05)
    health = model.health()
    assert quality["health"]["n_documents"] == health.n_documents
    assert quality["health"]["advice"] == list(health.advice)
    check = model.classifier_.self_check_.summary()
    assert quality["figures"]["accuracy"] == check["accuracy"]
    assert quality["figures"]["calibration_error"] == model.classifier_.calibration_error_
    assert sum(entry["n_documents"] for entry in quality["bins"]) == quality["n_held_out"]
    n_kept = sum(entry["n_documents"] * entry["measured"] for entry in quality["bins"])
    assert n_kept == pytest.approx(model.classifier_.state_.calibrator.held_out_correct.sum())


def test_sizes_and_sums_of_changed_classes_are_those_of_the_merged_model(fitted_file: Path) -> None:
    model = longtail.load(fitted_file)
    model.partial_fit(["purrs softly", "honey again"], ["tiger", "bear"])
    model.forget(["honey again"], ["bear"])
    snapshot, merged = Snapshot(model, "1", None), model.statistics_
    assert model.classifier_.state_.delta is not None  # else there is nothing to compare
    assert snapshot.class_sizes.tolist() == merged.class_sizes.tolist()
    assert snapshot.n_documents == merged.n_documents
    for row in range(len(snapshot.classes)):
        found, entries = snapshot.sum_class(row), slice(*merged.indptr[row : row + 2].tolist())
        assert found.indices.tolist() == merged.indices[entries].tolist()
        assert found.centroid_sums.tolist() == merged.centroid_sums[entries].tolist()
        assert found.document_frequencies.tolist() == merged.document_frequencies.tolist()
