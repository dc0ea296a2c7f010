"""An encoder named on the command line: fit, predict, teach, and the service."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from longtail import TextClassifier, load
from longtail.cli.app import app
from longtail.serve.application import create_app
from longtail.serve.settings import Settings, Token
from tests.unit.test_embedder import LABELS, NAMES, NEW, TEXTS, encode

NAMED = ("--embedder", "tests.unit.test_embedder:encode")
SECRET = "a secret of many characters"


def run(*arguments: Any, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    rows = [json.dumps({"text": t, "label": c}) for t, c in zip(TEXTS, LABELS, strict=True)]
    (folder / "train.jsonl").write_text("\n".join(rows))
    names = "".join(f"{label}\t{text}\n" for label, text in NAMES.items())
    (folder / "names.tsv").write_text(f"label\ttext\n{names}")
    options = ("--text", "text", "--label", "label", "--class-texts", folder / "names.tsv")
    run(*NAMED, "fit", folder / "train.jsonl", *options, "-o", folder / "model", "-q")
    return folder / "model"


def test_commands_take_an_encoder(path: Path, tmp_path: Path) -> None:
    fitted = TextClassifier(random_state=0, embedder=encode).fit(TEXTS, LABELS, class_texts=NAMES)
    (tmp_path / "new.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in NEW))
    wanted = ("predict", path, tmp_path / "new.jsonl", "-o", tmp_path / "out.jsonl", "-q")
    run(*NAMED, *wanted)
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["class"] for row in found] == fitted.predict(NEW).tolist()
    assert "--embedder" in run(*wanted, code=1)
    assert "(meaning)" in run(*NAMED, "explain", path, NEW[0])
    assert "meaning" in json.loads(run(*NAMED, "explain", path, NEW[0], "--json"))
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    run(*NAMED, "teach", copy, "c1 c2", "--class", "an owl", "-q")
    assert "an owl" in load(copy).classes_
    assert "open it with that encoder" in run("teach", copy, "c1", "--class", "owl", code=1)


@pytest.mark.slow
def test_processes_take_an_encoder(path: Path, tmp_path: Path) -> None:
    """They are told where the module is, also where that is the current directory."""
    (tmp_path / "encoders.py").write_text("from tests.unit.test_embedder import encode\n")
    (tmp_path / "new.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in NEW))
    shutil.copy(path.parent / "train.jsonl", tmp_path)
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    longtail = [sys.executable, "-P", "-m", "longtail", "--embedder", "encoders:encode"]

    def run(*words: str) -> None:
        done = subprocess.run([*longtail, *words], cwd=tmp_path, env=environment, check=False)
        assert done.returncode == 0

    columns = ("--text", "text", "--label", "label")
    run("fit", "train.jsonl", *columns, "-o", "one", "--quiet")
    run("fit", "train.jsonl", *columns, "-o", "two", "--quiet", "--workers", "2")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    run("predict", "two", "new.jsonl", "--workers", "2", "-o", "out", "--quiet")
    [file] = (tmp_path / "out").iterdir()
    found = [json.loads(line)["classes"][0] for line in file.read_text().splitlines()]
    assert found == load(tmp_path / "one", embedder=encode).predict(NEW).tolist()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("encode", "--embedder must be MODULE:NAME"),
        ("no_such_module:encode", "No module named 'no_such_module'"),
        ("json:encode", "module 'json' has no attribute 'encode'"),
        ("json:dumps", "embedder 'json.dumps': embeddings must be"),
    ],
)
def test_encoders_that_cannot_be_used_are_refused(path: Path, given: str, reason: str) -> None:
    assert reason in " ".join(run("--embedder", given, "explain", path, "c1", code=1).split())


def test_a_service_takes_an_encoder(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    settings = Settings(embedder=encode, tokens=(Token("teach", "ann", SECRET),))
    with TestClient(create_app(copy, settings), "http://127.0.0.1") as client:
        answer = client.post("/v1/predict", json={"documents": NEW[:3]}).json()
        model: Any = load(copy, embedder=encode)
        expected = model.predict(NEW[:3]).tolist()
        assert [row["classes"][0]["label"] for row in answer["results"]] == expected
        explained = client.post("/v1/explain", json={"text": NEW[0]}).json()["explanation"]
        lines = dict(explained["term_lines"])
        assert explained["meaning"] == lines["(meaning)"] == explained["features"]["meaning"]
        assert sum(lines.values()) == pytest.approx(explained["score"])
        taught = client.post(
            "/v1/teach",
            json={"documents": [{"text": "c1 c2", "label": "an owl"}], "version": "*"},
            headers={"Authorization": f"Bearer {SECRET}"},
        )
        assert taught.status_code == 200, taught.text
    service = TestClient(create_app(copy, Settings()))
    with pytest.raises(ValueError, match="open it with that encoder"), service:
        pass
