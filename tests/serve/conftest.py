"""A small model that is fitted once, and services of it: inside this process, and as a program."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

from longtail import TextClassifier, load
from longtail.serve.application import create_app
from longtail.serve.settings import Settings, Token

TEACH, READ = "teach-secret-0123456789", "read-secret-0123456789"
TOKENS = (Token("teach", "ann", TEACH), Token("read", "bob", READ))
BEARER = {"Authorization": f"Bearer {TEACH}"}
CLASSES = {
    "bear": ["honey", "den", "claws"],
    "fox": ["red", "tail", "cunning"],
    "owl": ["night", "hoots", "feathers"],
    "wolf": ["pack", "howls", "grey"],
    "hare": ["ears", "hops", "burrow"],
    "lynx": ["tufted", "cat", "stalks"],
    "crow": ["black", "caws", "wings"],
    "toad": ["warts", "croaks", "pond"],
    "newt": ["gills", "tadpole", "slender"],
    "seal": ["flippers", "fish", "sea"],
    "swan": ["white", "neck", "lake"],
    "mole": ["tunnels", "velvet", "blind"],
}
FURRY = ("bear", "fox", "wolf", "hare", "lynx", "mole")
COMMON = ["a", "the", "animal", "lives", "near", "forest", "water", "and", "eats", "runs", "large"]


def make_documents(n_each: int = 40, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts of twelve classes: words of the class among those of all."""
    random = np.random.default_rng(seed)
    texts, labels = [], []
    for animal, traits in CLASSES.items():
        for _ in range(n_each):
            is_odd = random.random() < 0.15  # so that there is something to be uncertain about
            shown = CLASSES[str(random.choice(list(CLASSES)))] if is_odd else [animal, *traits]
            words = [*random.choice(COMMON, 5), *random.choice(shown, 3)]
            texts.append(" ".join(random.permutation(words)))
            labels.append(animal)
    return texts, labels


@pytest.fixture(scope="session")
def fitted_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serve") / "animals.longtail"
    TextClassifier(random_state=0).fit(*make_documents()).save(path)
    return path


@pytest.fixture(scope="session")
def sets_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of label sets whose classes have ids for labels, and names."""
    texts, labels = make_documents()
    ids = {animal: f"id-{i:02d}" for i, animal in enumerate(CLASSES)}
    sets = [[ids[label], *(["id-fur"] if label in FURRY else [])] for label in labels]
    names = {class_id: f"the {animal}" for animal, class_id in ids.items()}
    path = tmp_path_factory.mktemp("serve") / "sets.longtail"
    classifier = TextClassifier(random_state=0)
    classifier.fit(texts, sets, class_texts=names | {"id-fur": "furry animals"}).save(path)
    return path


@pytest.fixture
def model_file(fitted_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "animals.longtail"
    shutil.copy(fitted_file, path)
    return path


@pytest.fixture(scope="session")
def columns_file(fitted_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model, with what it was told about its tables: texts stand in two columns."""
    path = tmp_path_factory.mktemp("serve") / "columns.longtail"
    load(fitted_file).set_columns(["subject", "body"], "animal", "; ").save(path)
    return path


@pytest.fixture
def client(model_file: Path) -> Iterator[TestClient]:
    settings = Settings(tokens=TOKENS, audit=model_file.with_suffix(".audit"))
    app = create_app(model_file, settings)
    with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


@dataclass
class Running:
    """A service as a program of its own."""

    process: subprocess.Popen[str]
    address: str
    token: str

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def hang_up(self) -> None:
        self.process.send_signal(signal.SIGHUP)


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., Running]]:
    """Return a function that starts `longtail serve`; all are ended afterwards."""
    running: list[Running] = []

    def run(path: Path, *options: str, token: str = TEACH) -> Running:
        tokens = path.with_suffix(".tokens")
        tokens.touch(0o600)
        tokens.write_text(f"teach ann {token}\nread bob {READ}\n")
        command = [sys.executable, "-m", "longtail", "serve", str(path), "--port", "0"]
        process = subprocess.Popen(
            [*command, "--tokens", str(tokens), *options],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        assert process.stderr is not None
        told = []
        for line in process.stderr:
            told.append(line)
            if "ready: " in line:
                address = line.split("ready: ")[1].strip()
                running.append(Running(process, address, token))
                return running[-1]
        raise AssertionError("".join(told))

    yield run
    for service in running:
        service.process.terminate()
    for service in running:
        service.process.wait(30)
        assert service.process.stderr is not None
        service.process.stderr.close()


def version_of(client: httpx.Client) -> str:
    return str(client.get("/v1/model").json()["version"])
