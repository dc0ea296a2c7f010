"""`longtail bench serve` on a small model: what it measures is there, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longtail import TextClassifier
from longtail.cli.app import app

pytest.importorskip("fastapi")


def test_load_and_faults_of_a_service(tmp_path: Path) -> None:
    diets = {"bear": "honey", "fox": "hares", "owl": "mice"}
    texts = [f"{animal} {i} eats {food}" for i in range(12) for animal, food in diets.items()]
    model = tmp_path / "animals.longtail"
    TextClassifier(random_state=0).fit(texts, [text.split()[0] for text in texts]).save(model)
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    arguments = ["bench", "serve", str(model), str(tmp_path / "texts.txt"), "--json"]
    options = ["--requests=100", "--windows=1", "--rate=200", "--connections=20", "--kills=1"]
    run = CliRunner().invoke(app, [*arguments, *options, "--memory-requests=80"])
    assert run.exit_code == 0, run.output
    report = json.loads(run.stdout)
    assert report["latency ms, best window"]["p50"] > 0
    assert report["class search ms"]["p50"] > 0
    assert report["CPU ms a request"] > 0
    assert report["documents/s in batches of 32, best window"] > 0
    assert report["statuses of 20 connections"] == {"200": 100}
    assert len(report["resident MB"]) == 6
    kills = report["kills"]
    assert (kills["kills"], kills["lost"], kills["changed answers"]) == (1, 0, 0)
    assert report["full disk"] == {
        "change before": 200,
        "change while full": 503,
        "prediction while full": 200,
        "change afterwards": 200,
    }
    assert report["damaged journal"]["start"].startswith("refused: ")
