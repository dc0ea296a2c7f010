"""The API in this process: what it answers, and what it refuses."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import longtail
from longtail import TextClassifier
from longtail.class_search import ClassSearch
from longtail.serve.access import Caller
from longtail.serve.application import create_app
from longtail.serve.audit import MAX_REFUSALS, AuditTrail
from longtail.serve.class_details import encode_id, top_terms
from longtail.serve.counters import Metrics
from longtail.serve.monitoring import Monitor
from longtail.serve.predictions import predict
from longtail.serve.served_model import Snapshot
from longtail.serve.settings import Limits, Settings
from tests.serve.conftest import BEARER, CLASSES, READ, TOKENS, make_documents, version_of

TEXT = "a large animal eats honey in its den"


def teach(client: TestClient, text: Any, label: Any, **more: Any) -> Any:
    document = {"text": text, "label": label}
    body = {"documents": [document], "version": "*"} | more
    return client.post("/v1/teach", json=body, headers=BEARER)


def best(client: TestClient, text: Any) -> Any:
    body = {"documents": [text], "k": 1}
    labels = client.post("/v1/predict", json=body).json()["results"][0]["labels"]
    return labels[0] if labels else None


def problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert {"type", "title", "detail"} <= body.keys()
    return body


def test_a_text_without_a_known_word_has_no_class(client: TestClient) -> None:
    for more in ({}, {"precision": 0.9}, {"precision": 0.9, "each": True}):
        body = {"documents": ["", "zzzqq", TEXT], **more}
        *unknown, known = client.post("/v1/predict", json=body).json()["results"]
        for result in unknown:
            assert result["labels"] == result["classes"] == []
            assert (result["abstained"], result["none"]) == (True, 1.0)
        assert known["classes"]
    lines = client.post(
        "/v1/predict", content='"zzzqq"\n', headers={"Content-Type": "application/x-ndjson"}
    )
    assert json.loads(lines.text)["abstained"] is True


def test_each_label_can_be_asked_to_be_that_probable(client: TestClient, model_file: Path) -> None:
    model, (texts, _) = longtail.load(model_file), make_documents(8, seed=5)
    top = model.predict_proba_topk(texts, 1)
    answers = {}
    for each in (False, True):
        threshold = model.threshold_for(0.8, each=each)
        query: dict[str, Any] = {"precision": 0.8, "each": each}
        shown = client.get("/v1/threshold", params=query).json()
        assert shown["threshold"] == threshold.threshold
        answer = client.post("/v1/predict", json={"documents": texts, **query}).json()
        assert answer["threshold"]["threshold"] == threshold.threshold
        kept = [not result["abstained"] for result in answer["results"]]
        assert kept == threshold.keeps(top)[:, 0].tolist()
        lines = client.post(
            "/v1/predict",
            params={"k": 1, **query},
            content="\n".join(json.dumps(text) for text in texts),
            headers={"Content-Type": "application/x-ndjson"},
        ).text.splitlines()
        assert [not json.loads(line)["abstained"] for line in lines] == kept
        answers[each] = sum(kept)
    assert 0 < answers[True] < answers[False]


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
        n_found = 0 if texts[row] == "" or "script" in texts[row] else 4
        assert found == top.classes[row, :n_found].tolist()
        assert probabilities == top.scores[row, :n_found].tolist()
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
        for lines in (part["term_lines"], part["feature_lines"]):
            assert sum(value for _, value in lines) == pytest.approx(part["score"])
        assert [name for name, _ in part["feature_lines"]].count("cosine") == 1
        assert "dampened_cosine" not in dict(part["feature_lines"])
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


def test_no_change_without_its_record(model_file: Path) -> None:
    settings = Settings(tokens=TOKENS, audit=Path("/dev/full"))
    body = {"documents": [{"text": "x", "label": "bear"}], "version": "*"}
    with TestClient(create_app(model_file, settings), "http://127.0.0.1") as client:
        answer = teach(client, "x", "bear")
        assert "nothing was changed" in problem(answer, 503)["detail"]
        assert (
            "nothing was changed"
            in problem(client.post("/v1/reload", headers=BEARER), 503)["detail"]
        )
        problem(client.post("/v1/teach", json=body), 401)
        assert client.get("/v1/changes").json()["total"] == 0
        assert 'longtail_audit_lost_total{reason="failed"} 3.0' in client.get("/metrics").text


def test_a_change_that_was_made_is_acknowledged(client: TestClient, monkeypatch: Any) -> None:
    """Whatever becomes of its second record: who repeats it would teach twice."""
    write, n_written = os.write, []

    def fail(file: int, line: bytes) -> int:
        n_written.append(line)
        if b'"done"' in line:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, line)

    monkeypatch.setattr("longtail.serve.audit.os.write", fail)
    assert teach(client, "x", "bear").json()["change"] == 1
    assert b'"begun"' in n_written[0]
    assert 'longtail_audit_lost_total{reason="failed"} 1.0' in client.get("/metrics").text


def test_refusals_do_not_fill_the_disk(tmp_path: Path, monkeypatch: Any) -> None:
    lost: list[str] = []
    now = 1_000_000.0
    monkeypatch.setattr("longtail.serve.audit.time.monotonic", lambda: now)
    trail = AuditTrail(tmp_path / "trail", lost.append)
    caller = Caller("", "192.0.2.1", False)
    for _ in range(1_000):
        trail.record_refusal(caller, "POST /v1/teach", "This needs a token")
    trail.record(Caller("ann", "192.0.2.2", True), "teach", "done")
    now += 60
    trail.record_refusal(caller, "POST /v1/undo", "This needs a token")
    trail.close()
    entries = [json.loads(line) for line in (tmp_path / "trail").read_text().splitlines()]
    assert len(entries) == MAX_REFUSALS + 3
    assert [entry["action"] for entry in entries[-3:]] == ["teach", "refusals", "POST /v1/undo"]
    assert entries[-2]["outcome"].startswith(f"{1_000 - MAX_REFUSALS} more")
    assert lost == ["too many"] * (1_000 - MAX_REFUSALS)


def test_a_line_that_was_cut_short_spoils_no_other(tmp_path: Path, monkeypatch: Any) -> None:
    write = os.write
    trail = AuditTrail(tmp_path / "trail")
    caller = Caller("ann", "192.0.2.1", True)
    monkeypatch.setattr("longtail.serve.audit.os.write", lambda f, line: write(f, line[:10]))
    with pytest.raises(OSError, match="in part"):
        trail.begin(caller, "teach")
    monkeypatch.undo()
    trail.record(caller, "teach", "done")
    trail.close()
    torn, whole = (tmp_path / "trail").read_text().splitlines()
    assert len(torn) == 10
    assert json.loads(whole)["outcome"] == "done"


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


def test_without_a_name_a_service_is_reached_by_addresses(model_file: Path) -> None:
    app = create_app(model_file, Settings(host="0.0.0.0", tokens=TOKENS))
    with TestClient(app, "http://10.0.0.7:8080") as client:
        for host in ("10.0.0.7:8080", "[2001:db8::1]:8080", "localhost:8080"):
            assert client.get("/health/ready", headers={"host": host}).status_code == 200
        for host in ("evil.example", "10.0.0.7.evil.example:8080", ""):
            problem(client.get("/health/ready", headers={"host": host}), 421)


def test_no_answer_leads_elsewhere(client: TestClient) -> None:
    for path in ("/v1/classes/", "/v1/model/", "/v1/changes/"):
        problem(client.get(path, headers=BEARER, follow_redirects=False), 404)


def test_reading_may_need_a_token_on_this_machine(model_file: Path) -> None:
    app = create_app(model_file, Settings(tokens=TOKENS, require_token=True))
    with TestClient(app, "http://127.0.0.1") as client:
        problem(client.post("/v1/predict", json={"documents": ["x"]}), 401)
        reading = {"Authorization": f"Bearer {READ}"}
        assert client.get("/v1/classes", headers=reading).status_code == 200
        assert client.get("/health/ready").status_code == 200


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


def test_a_stream_is_longer_than_other_bodies_and_there_are_few(model_file: Path) -> None:
    limits = Limits(body_bytes=1_000, streams=1)
    lines = "\n".join(json.dumps(f"honey {i}") for i in range(1_000))
    kind = {"content-type": "Application/X-NDJSON; charset=utf-8"}
    app = create_app(model_file, Settings(tokens=TOKENS, limits=limits))
    with TestClient(app, "http://127.0.0.1") as client:
        problem(client.post("/v1/explain", content=lines, headers=kind), 415)
        for _ in range(2):  # the place of a stream is free after it
            answer = client.post("/v1/predict", content=lines, headers=kind)
            assert len(answer.text.splitlines()) == 1_000
        app._n_streams = 1
        problem(client.post("/v1/predict", content=lines, headers=kind), 503)


def test_large_bodies_share_what_they_take(model_file: Path) -> None:
    limits = Limits(bodies_bytes=100_000)
    app = create_app(model_file, Settings(tokens=TOKENS, limits=limits))
    small = {"documents": ["honey"]}
    with TestClient(app, "http://127.0.0.1") as client:
        for _ in range(3):  # what is taken is given back
            large = {"documents": ["x" * 75_000] * 2}
            assert client.post("/v1/predict", json=large).status_code == 200
        answer = client.post("/v1/predict", json={"documents": ["x" * 90_000] * 2})
        assert problem(answer, 503)["detail"].startswith("Too many large requests")
        assert answer.headers["retry-after"] == "1"
        assert client.post("/v1/predict", json=small).status_code == 200


def test_searches_that_hang_stop_nothing_else(model_file: Path, monkeypatch: Any) -> None:
    released = threading.Event()
    monkeypatch.setattr(ClassSearch, "search", lambda *_: [released.wait(60)][:0])
    limits = Limits(queued_reads=3, answer_seconds=1.0)
    app = create_app(model_file, Settings(tokens=TOKENS, limits=limits))
    try:
        with (
            TestClient(app, "http://127.0.0.1") as client,
            ThreadPoolExecutor(40) as threads,  # more than any pool of threads has
        ):
            search = partial(client.get, "/v1/classes?query=bear&by=name")
            searches = [threads.submit(search) for _ in range(40)]
            assert client.post("/v1/explain", json={"text": TEXT}).status_code == 200
            assert client.get("/v1/quality").status_code == 200
            assert client.get("/v1/changes").status_code == 200
            details = [problem(some.result(60), 503)["detail"] for some in searches]
            released.set()
    finally:
        released.set()
    assert {detail.split(";")[0] for detail in details} == {
        *("3 requests are waiting already", "The answer took too long")
    }


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
    health = quality["health"]
    assert f"longtail_outcomes {float(health['n_outcomes'])}" in text
    for name in ("accuracy", "calibration_error", "abstention"):
        value = float(re.search(rf"\nlongtail_outcome_{name} (\S+)", text)[1])  # type: ignore[index]
        assert (health[name] is None) == np.isnan(value)
        assert health[name] is None or health[name] == pytest.approx(value)


def test_what_was_asked_is_counted(client: TestClient, model_file: Path) -> None:
    assert client.get("/v1/quality").json()["hours"] == []
    model, (texts, _) = longtail.load(model_file), make_documents(2, seed=7)
    texts = ["honey zzzqq", "zzzqq", *texts]  # one document in 16 is looked at for its words
    for some in (texts[:1], texts[1:20], texts[20:]):
        client.post("/v1/predict", json={"documents": some})
    top = model.predict_proba_topk(texts, 1)
    kept = model.threshold_for(0.9).keeps(top)[:, 0]
    hours = client.get("/v1/quality").json()["hours"]
    assert sum(hour["n_documents"] for hour in hours) == len(texts) == 26
    looked_at = [set(text.split()) for text in texts[::16]]
    expected = {
        "longtail_predicted_documents_total": 26,
        "longtail_abstained_documents_total": 26 - kept.sum(),
        "longtail_documents_without_known_word_total": 1,
        "longtail_words_total": sum(map(len, looked_at)),
        "longtail_unknown_words_total": 1,
        "longtail_probability_count": 25,
    }
    text = client.get("/metrics").text
    for name, value in expected.items():
        assert f"\n{name} {float(value)}\n" in text
    total = float(re.search(r"longtail_probability_sum (\S+)", text)[1])  # type: ignore[index]
    assert total == pytest.approx(top.scores[top.valid].sum())


def test_hours_are_counted_apart_and_the_last_week_is_kept(model_file: Path) -> None:
    now = 7200.0
    monitor = Monitor(Metrics(), lambda: now)
    snapshot = Snapshot(longtail.load(model_file), "1", None)

    def ask(*texts: str) -> None:
        monitor.observe(snapshot, list(texts), predict(snapshot, list(texts)))

    ask("zzzqq", "honey den claws")
    now = 7200 + 3599.0
    ask("zzzqq")
    now = 14_400.0
    ask("honey den claws")
    first, second = monitor.describe()
    assert (first["start"], first["n_documents"]) == (7200, 3)
    assert first["without_known_word"] == pytest.approx(2 / 3)
    assert (first["unknown_words"], second["unknown_words"]) == (1.0, None)
    assert (second["start"], second["n_documents"], second["without_known_word"]) == (14_400, 1, 0)
    best = snapshot.model.predict_proba_topk(["honey den claws"], 1).scores[0, 0]
    assert first["mean_probability"] == second["mean_probability"] == best
    for hour in range(5, 5 + 7 * 24):
        now = 3600.0 * hour
        ask("honey")
    assert monitor.describe()[0]["start"] == 5 * 3600


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
        served = client.get("/v1/model").json()
        assert (served["n_documents"], served["n_labels"]) == (len(sets), sum(map(len, sets)))
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
    assert quality["health"]["advice"] == list(health.commands)
    check = model.classifier_.self_check_.summary()
    figures = {figure["measure"]: figure for figure in quality["figures"]}
    names = ["accuracy", "top_20"] if kind == "one label" else ["mean_f1", "P@5", "nDCG@5"]
    for name in ("macro_f1", *names):
        assert (
            figures[name]["low"] <= figures[name]["value"] == check[name] <= figures[name]["high"]
        )
    assert ("accuracy" in figures) == (kind == "one label") == ("calibration_error" in figures)
    assert ("label_calibration_error" in figures) == (kind != "one label")
    assert sum(entry["n_documents"] for entry in quality["bins"]) == quality["n_held_out"]
    n_kept = sum(entry["n_documents"] * entry["measured"] for entry in quality["bins"])
    assert n_kept == pytest.approx(model.classifier_.state_.calibrator.held_out_correct.sum())


def test_sizes_and_sums_of_changed_classes_are_those_of_the_merged_model(fitted_file: Path) -> None:
    model = longtail.load(fitted_file)
    model.partial_fit(["purrs softly", "honey again"], ["tiger", "bear"])
    model.forget(["honey again"], ["bear"])
    snapshot, merged = Snapshot(model, "1", None), model.statistics_
    assert model.classifier_.state_.overlay is not None  # else there is nothing to compare
    assert snapshot.class_sizes.tolist() == merged.class_sizes.tolist()
    assert snapshot.n_documents == merged.n_documents
    for row in range(len(snapshot.classes)):
        found, entries = snapshot.sum_class(row), slice(*merged.indptr[row : row + 2].tolist())
        assert found.indices.tolist() == merged.indices[entries].tolist()
        assert found.centroid_sums.tolist() == merged.centroid_sums[entries].tolist()
        assert found.document_frequencies.tolist() == merged.document_frequencies.tolist()


def test_terms_of_removed_classes_are_in_no_more_documents_than_there_are(tmp_path: Path) -> None:
    texts, labels = ["common bear"] * 20 + ["common owl"], ["bear"] * 20 + ["owl"]
    model = longtail.TextClassifier(random_state=0).fit(texts, labels).remove_class("bear")
    model.save(tmp_path / "model")
    for saved in (model, longtail.load(tmp_path / "model")):
        state = saved.classifier_.state_
        assert top_terms(Snapshot(saved, "1", None), 0)[1].min() > 0
        assert saved.statistics_.document_frequencies.max() == 1
        assert (state.overlay or state.statistics).document_frequencies.max() == 21


def test_records_are_joined_as_in_the_fit(columns_file: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(columns_file, tmp_path / "columns.longtail"))
    records = [
        {"body": "in its den", "subject": "honey", "id": [7]},
        {"subject": None, "body": 7},
        {"text": "hoots at night"},
    ]
    texts = ["honey in its den", " 7", "hoots at night"]
    with TestClient(create_app(path, Settings(tokens=TOKENS)), "http://127.0.0.1") as client:
        named = client.get("/v1/model").json()["columns"]
        assert named == {
            "text": ["subject", "body"],
            "label": ["animal"],
            "label_separator": "; ",
        }
        asked = {"new_words": True}
        expected = client.post("/v1/predict", json={"documents": texts, **asked}).json()
        assert client.post("/v1/predict", json={"documents": records, **asked}).json() == expected
        kind = {"content-type": "application/x-ndjson"}
        lines = "\n".join(map(json.dumps, [*records, {"subject": "honey"}]))
        *answers, last = client.post("/v1/predict", content=lines, headers=kind).text.splitlines()
        assert [json.loads(a)["classes"] for a in answers] == [
            result["classes"] for result in expected["results"]
        ]
        assert "an object with subject and body" in json.loads(last)["error"]["detail"]
        explained = [
            client.post("/v1/explain", json={"text": text}).json()
            for text in (records[0], texts[0])
        ]
        assert explained[0] == explained[1]
        for wrong in ({"subject": "honey"}, {"subject": ["honey"], "body": ""}, {}):
            refused = problem(client.post("/v1/predict", json={"documents": ["a", wrong]}), 422)
            assert "document 1 must be a text, or an object with 'subject' and" in refused["detail"]
        long = {"subject": "a" * 60_000, "body": "b" * 60_000}
        refused = problem(client.post("/v1/predict", json={"documents": [long]}), 422)
        assert "longer than 100,000 characters" in refused["detail"]
        joined = problem(teach(client, records[0], "zebra; new"), 422)["detail"]
        assert joined.startswith("document 0: 'zebra; new' is 2 labels, which '; ' separates.")
        assert (
            "no text" in problem(teach(client, {"subject": "", "body": ""}, "zebra"), 422)["detail"]
        )
        answer = teach(client, {"subject": "stripes", "body": "savannah"}, "zebra")
        assert answer.status_code == 200
        forgotten = {"documents": [{"text": "stripes savannah", "label": "zebra"}], "version": "*"}
        assert client.post("/v1/forget", json=forgotten, headers=BEARER).status_code == 200


def test_a_model_that_was_told_no_columns(client: TestClient) -> None:
    assert client.get("/v1/model").json()["columns"] is None
    assert best(client, {"text": "hoots"}) == best(client, "hoots")
    problem(client.post("/v1/predict", json={"documents": [{"body": "hoots"}]}), 422)


def test_a_refusal_says_what_to_send(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    for path in ("/v1/predict", "/v1/explain"):
        detail = problem(client.post(path, content="{", headers=headers), 422)["detail"]
        assert detail.startswith("body: Invalid JSON: ")
    body = {"documents": [{"text": "x", "label": "bear"}]}
    missing = problem(client.post("/v1/teach", json=body, headers=BEARER), 422)
    assert missing["detail"].startswith("body.version: ")
    assert '"*" accepts any' in missing["detail"]


def test_heads_are_answered_as_gets_without_a_body(client: TestClient) -> None:
    for path in ("/", "/page/style.css", "/v1/model", "/health/ready", "/openapi.json"):
        whole, head = client.get(path), client.head(path)
        assert head.status_code == whole.status_code == 200
        assert head.content == b""
        assert head.headers["content-length"] == str(len(whole.content))
    assert client.head("/v1/predict").status_code == 405
    text = client.get("/metrics").text
    assert 'longtail_requests_total{method="HEAD",route="/v1/model",status="200"} 1.0' in text


def test_a_model_says_its_name_and_whether_classes_have_texts(
    client: TestClient, sets_file: Path
) -> None:
    model = client.get("/v1/model").json()
    assert (model["name"], model["class_texts"], model["may_describe"]) == ("animals", False, True)
    with TestClient(create_app(sets_file, Settings()), "http://127.0.0.1") as other:
        assert other.get("/v1/model").json()["class_texts"] is True


def test_refused_requests_are_counted_by_route(model_file: Path) -> None:
    settings = Settings(tokens=TOKENS, limits=Limits(body_bytes=100))
    with TestClient(create_app(model_file, settings), "http://127.0.0.1") as client:
        client.post("/v1/teach", json={})
        client.patch("/v1/classes/sYQ", json={})
        client.post("/v1/predict", content=b"x" * 200, headers={"content-type": "text/plain"})
        client.get("/v1/model", headers={"host": "elsewhere.example"})
        client.request("BREW", "/v1/model", headers=BEARER)
        client.get("/nowhere")
        text = client.get("/metrics").text
    counted = re.findall(r'requests_total\{method="(.*)",route="(.*)",status="(\d+)"\} 1.0', text)
    assert sorted(counted) == [
        ("GET", "/v1/model", "421"),
        ("GET", "other", "404"),
        ("PATCH", "/v1/classes/{class_id}", "401"),
        ("POST", "/v1/predict", "413"),
        ("POST", "/v1/teach", "401"),
        ("other", "/v1/model", "405"),
    ]


def test_three_texts_to_begin_with(client: TestClient) -> None:
    answer = client.get("/v1/examples").json()
    assert len(answer["examples"]) == 3
    for entry in answer["examples"]:
        assert best(client, entry["text"]) == entry["label"]


def test_the_reference_of_the_api_comes_from_here(client: TestClient) -> None:
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(addresses) > 3
    for address in addresses:
        assert address.startswith("/")
        assert client.get(address).status_code == 200, address
    policy = page.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "connect-src 'self'" in policy
    assert problem(client.get("/docs/nothing.js"), 404)["detail"] == "There is no such file."


def test_documents_of_fractional_weight_give_fractional_sizes(tmp_path: Path) -> None:
    texts, labels = make_documents(4)
    path = tmp_path / "weighted.longtail"
    weights = np.where(np.array(labels) == "wolf", 0.375, 1.0)
    TextClassifier(random_state=0).fit(texts, labels, sample_weight=weights).save(path)
    app = create_app(path, Settings(tokens=TOKENS))
    with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client:
        listed = client.get("/v1/classes", params={"limit": 50}).json()["classes"]
        sizes = {entry["label"]: entry["size"] for entry in listed}
        details = client.get(f"/v1/classes/{encode_id('wolf')}").json()
        found = client.get("/v1/classes", params={"query": "wolf"}).json()["classes"]
        model = client.get("/v1/model").json()
    assert sizes == dict.fromkeys(CLASSES, 4) | {"wolf": 1.5}
    assert details["size"] == found[0]["size"] == 1.5
    assert model["n_documents"] == round(4 * 11 + 1.5)
