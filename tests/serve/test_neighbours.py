"""The service as other programs see it: Annif, Label Studio, MLflow."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import longtail
from longtail.serve.application import create_app
from longtail.serve.settings import Settings
from tests.serve.conftest import BEARER, Running

ANNIF_PROJECT = """
[here]
name=longtail
language=en
backend=http
endpoint={endpoint}
vocab=classes
limit=3
"""
CONFIGURATION = """
<View><Text name="body" value="$text"/>
<Taxonomy name="topic" toName="body"><Choice value="bear"/></Taxonomy></View>
"""


def test_annif_suggest(client: TestClient, model_file: Path) -> None:
    project = client.get("/v1/projects/longtail").json()
    assert project["is_trained"] is True
    address = "/v1/projects/longtail/suggest"
    answer = client.post(address, data={"text": "honey den", "limit": 3, "threshold": 0.01})
    top = longtail.load(model_file).predict_proba_topk(["honey den"], 3)
    found = [(entry["label"], entry["score"]) for entry in answer.json()["results"]]
    expected = list(zip(top.classes[0].tolist(), top.scores[0].tolist(), strict=True))
    assert found == [pair for pair in expected if pair[1] >= 0.01]
    assert answer.json()["results"][0]["uri"] == "urn:longtail:class:bear"
    assert client.post(address, data={"limit": 3}).status_code == 422
    assert client.post("/v1/projects/other/suggest", data={"text": "x"}).status_code == 404


@pytest.mark.skipif(not os.environ.get("LONGTAIL_ANNIF"), reason="make neighbours runs it")
def test_annif_backend(model_file: Path, start: Callable[..., Running], tmp_path: Path) -> None:
    """Annif itself, in the environment that its pinned versions need."""
    endpoint = f"{start(model_file).address}v1/projects/longtail/suggest"
    (tmp_path / "projects.cfg").write_text(ANNIF_PROJECT.format(endpoint=endpoint))
    model = longtail.load(model_file)
    subjects = [f"<urn:longtail:class:{label}>\t{label}\n" for label in model.classes_]
    (tmp_path / "subjects.tsv").write_text("".join(subjects))
    _run_annif(tmp_path, "load-vocab", "classes", "subjects.tsv", "--language", "en")
    lines = _run_annif(tmp_path, "suggest", "here", text="honey den").splitlines()
    found = [(label, float(score)) for _, label, score in (line.split("\t") for line in lines)]
    top = model.predict_proba_topk(["honey den"], 3)
    assert [label for label, _ in found] == top.classes[0].tolist()
    assert [score for _, score in found] == pytest.approx(top.scores[0].tolist(), abs=1e-3)


def _run_annif(folder: Path, *arguments: str, text: str = "") -> str:
    program = Path(os.environ["LONGTAIL_ANNIF"]).absolute()
    run = subprocess.run(
        [program, *arguments],
        input=text,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        cwd=folder,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_label_studio(client: TestClient) -> None:
    assert client.get("/health").json()["status"] == "UP"
    setup = client.post("/setup", json={"project": "1.17", "schema": CONFIGURATION})
    assert setup.status_code == 200
    tasks = [{"id": 1, "data": {"text": "honey den"}}, {"id": 2, "data": {"text": "hoots"}}]
    body = {"tasks": tasks, "label_config": CONFIGURATION, "project": "1.17"}
    results = client.post("/predict", json=body).json()["results"]
    assert [entry["result"][0]["value"]["taxonomy"] for entry in results] == [[["bear"]], [["owl"]]]
    assert {entry["result"][0]["from_name"] for entry in results} == {"topic"}
    annotation = {"result": [{"type": "taxonomy", "value": {"taxonomy": [["cats", "tiger"]]}}]}
    event = {
        "action": "ANNOTATION_CREATED",
        "project": {"label_config": CONFIGURATION},
        "task": {"data": {"text": "stripes and whiskers"}},
        "annotation": annotation,
    }
    assert client.post("/webhook", json=event, headers=BEARER).json()["change"] == 1
    again = {"tasks": [{"data": {"text": "whiskers"}}], "label_config": CONFIGURATION}
    (result,) = client.post("/predict", json=again).json()["results"]
    assert result["result"][0]["value"]["taxonomy"] == [["tiger"]]
    ignored = client.post("/webhook", json={"action": "TASKS_CREATED"}, headers=BEARER)
    assert ignored.json() == {"status": "ignored"}
    for configuration in ("<View/>", "<", "<!DOCTYPE x [<!ENTITY a 'b'>]><View>&a;</View>"):
        refused = client.post("/predict", json={"tasks": [], "label_config": configuration})
        assert refused.status_code == 422


def test_tasks_of_label_studio_have_the_columns_of_the_fit(columns_file: Path) -> None:
    configuration = CONFIGURATION.replace("$text", "$body")
    tasks = [{"data": {"subject": "honey", "body": "den"}}, {"data": {"body": "honey den"}}]
    with TestClient(create_app(columns_file, Settings()), "http://127.0.0.1") as client:
        body = {"tasks": tasks, "label_config": configuration}
        joined, shown = client.post("/predict", json=body).json()["results"]
        assert joined == shown  # a task that lacks a column is what it shows
        # A field that is no column is the text itself.
        task = {"data": {"text": "hoots", "subject": "honey", "body": "den"}}
        body = {"tasks": [task], "label_config": CONFIGURATION}
        [result] = client.post("/predict", json=body).json()["results"]
        assert result["result"][0]["value"]["taxonomy"] == [["owl"]]


def test_tables_of_mlflow_have_the_columns_of_the_fit(columns_file: Path) -> None:
    pd = pytest.importorskip("pandas")
    from longtail.integrations.mlflow import LongtailModel

    model = LongtailModel(longtail.load(columns_file))
    expected = model.predict(["honey den"])
    for table in (
        pd.DataFrame({"body": ["den"], "subject": ["honey"]}),
        {"text": ["honey den"]},
    ):
        assert model.predict(table).equals(expected)


def test_mlflow_takes_an_encoder(tmp_path: Path) -> None:
    from longtail.integrations.mlflow import MODEL_FILE, load_model
    from tests.unit.test_embedder import LABELS, NEW, TEXTS, encode

    pytest.importorskip("pandas")
    model = longtail.TextClassifier(random_state=0, embedder=encode).fit(TEXTS, LABELS)
    model.save(tmp_path / MODEL_FILE)
    found = load_model(tmp_path, embedder=encode).predict(NEW)["label"].tolist()
    assert found == model.predict(NEW).tolist()
    with pytest.raises(ValueError, match="open it with that encoder"):
        load_model(tmp_path).predict(NEW)


# MLflow's own modules warn of a type hint when they are imported.
@pytest.mark.filterwarnings("ignore:.*type hint is inferred as AnyType:UserWarning")
def test_mlflow(model_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="pip install mlflow-skinny")
    from longtail.integrations.mlflow import load_model, save_model

    folder = tmp_path / "saved"
    save_model(model_file, folder)
    assert not list(folder.rglob("*.pkl"))
    frame = load_model(folder).predict(["honey den", "hoots"])
    model = longtail.load(model_file)
    assert frame["label"].tolist() == model.predict(["honey den", "hoots"]).tolist()
    import mlflow.pyfunc

    same = mlflow.pyfunc.load_model(str(folder)).predict({"text": ["honey den"]})
    assert same["label"].tolist() == ["bear"]
