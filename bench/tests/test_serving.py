"""`longtail bench serve` on a small model: what it measures is there, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from longtail_bench.serving_hostile import attack
from typer.testing import CliRunner

from longtail import TextClassifier
from longtail.cli.app import app

pytest.importorskip("fastapi")


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    diets = {"bear": "honey", "fox": "hares", "owl": "mice"}
    texts = [f"{animal} {i} eats {food}" for i in range(12) for animal, food in diets.items()]
    model = tmp_path / "animals.longtail"
    TextClassifier(random_state=0).fit(texts, [text.split()[0] for text in texts]).save(model)
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    return ["bench", "serve", str(model), str(tmp_path / "texts.txt"), "--json"]


def test_load_and_faults_of_a_service(arguments: list[str]) -> None:
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


def test_honest_predictions_beside_hostile_clients(arguments: list[str]) -> None:
    options = ["--hostile", "--clients=16", "--seconds=3", "--rate=20", "--pause=0.2"]
    run = CliRunner().invoke(app, [*arguments, *options])
    assert run.exit_code == 0, run.output
    report = json.loads(run.stdout)
    assert report["honest predictions"] == {"200": 60}
    assert report["latency ms beside hostile clients"]["p99"] > 0
    memory = report["resident MB"]
    assert 0 < memory["start"] <= memory["highest"] < memory["start"] + 200
    attacks = report["attacks"]
    # Closing may overtake an answer, and the end of the attack any of them.
    cut = {"closed", "still open"}
    assert attacks["body without end"].keys() <= cut | {"413"}
    assert attacks["doubled header"].keys() <= cut | {"400"}
    assert attacks["search of 1,000 characters"].keys() <= cut | {"200", "503"}
    assert attacks["wrong token"].keys() - cut == {"401"}
    assert attacks["no JSON"].keys() - cut == {"422"}
    for patient in ("slow body", "half a head", "silence"):
        assert set(attacks[patient]) == {"still open"}  # the service waits longer than this attack


def test_attacks_are_bounded() -> None:
    for clients, seconds in ((501, 1.0), (1, 601.0), (0, 1.0)):
        with pytest.raises(ValueError, match="by 1 to 500 clients, for at most 600 s"):
            attack(1, [], clients, seconds, 0.1)
