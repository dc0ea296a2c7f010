"""Faults of `longtail serve`: kills while it is taught, a full disk, a damaged journal.

In: a model file and texts. Out: what was lost, and what a service answered. All of it happens on
copies of the model file.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import longtail
from longtail.store.journal import journal_path
from longtail_bench.serving import Connection, Service, running

N_PROBES = 20  # texts whose predictions are compared


@contextmanager
def _copied(model: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "taught.longtail"
        shutil.copy(model, path)
        yield path


def kill_while_teaching(model: Path, texts: Sequence[str], kills: int, seed: int) -> dict[str, int]:
    """Kill services that are being taught, at random moments; return what was lost.

    After each kill the file is opened, every change that was acknowledged is looked for in the
    journal, and the next service must predict what the file does.
    """
    lost = changed = 0
    randomness = random.Random(seed)
    known: dict[int, str] = {}
    probes, expected = list(texts[:N_PROBES]), None
    with _copied(model) as path:
        for kill in range(kills):
            with running(path) as service:
                changed += expected is not None and _predict(service, probes) != expected
                seconds = randomness.uniform(0.05, 3.0)
                known |= asyncio.run(_teach_until(service, texts, seconds, kill))
            with closing(longtail.Teacher(path, verify=False)) as teacher:
                recorded = {
                    change.number: change.content["documents"][0]
                    for change in teacher.changes()
                    if change.action == "teach"
                }
                expected = teacher.model.predict_proba_topk(probes, 5).classes.tolist()
            lost = sum(recorded.get(change_id) != text for change_id, text in known.items())
    return {"kills": kills, "acknowledged": len(known), "lost": lost, "changed answers": changed}


def fill_disk(model: Path, texts: Sequence[str]) -> dict[str, Any]:
    """Let no file of a service grow any further, as on a full disk; then make room again.

    Returns
    -------
    dict
        Status of a change and of a prediction while the disk is full, and of a change afterwards.
    """
    with _copied(model) as path, running(path) as service:
        before = _teach(service, texts[0])
        pid = service.process.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        refused = _teach(service, texts[1])
        predicted = asyncio.run(_ask(service, "/v1/predict", {"documents": [texts[1]]}))[0]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        return {
            "change before": before,
            "change while full": refused,
            "prediction while full": predicted,
            "change afterwards": _teach(service, texts[2]),
        }


def damage_journal(model: Path, texts: Sequence[str]) -> dict[str, str]:
    """Overwrite half of a journal and start a service on it; return what it said."""
    with _copied(model) as path:
        with running(path) as service:
            for text in texts[:20]:
                _teach(service, text)
            asyncio.run(_ask(service, "/v1/predict", {"documents": [texts[0]]}))
        with closing(longtail.Teacher(path)) as teacher:  # closing it merges the killed one's log
            teacher.teach([texts[0]], ["taught"])
        journal = journal_path(path)
        content = journal.read_bytes()
        journal.write_bytes(content[: len(content) // 2].ljust(len(content), b"\xa5"))
        try:
            with running(path) as service:
                status = asyncio.run(_ask(service, "/v1/predict", {"documents": [texts[0]]}))[0]
            return {"start": f"started, prediction {status}"}
        except RuntimeError as error:
            return {"start": "refused: " + str(error).strip().splitlines()[-1]}


def _predict(service: Service, texts: list[str]) -> list[list[str]]:
    _, answer = asyncio.run(_ask(service, "/v1/predict", {"documents": texts, "k": 5}))
    results = json.loads(answer)["results"]
    return [[entry["label"] for entry in result["classes"]] for result in results]


def _teach(service: Service, text: str) -> int:
    """Teach one text; return the status."""
    body = {"documents": [{"text": text, "label": "taught"}], "version": "*"}
    return asyncio.run(_ask(service, "/v1/teach", body))[0]


async def _ask(service: Service, path: str, body: Any) -> tuple[int, bytes]:
    connection = await Connection.open(service.port)
    answer = await connection.post(path, body, service.token)
    connection.close()
    return answer


async def _teach_until(
    service: Service, texts: Sequence[str], seconds: float, kill: int
) -> dict[int, str]:
    """Teach until the service is killed; return what it acknowledged."""
    acknowledged: dict[int, str] = {}
    asyncio.get_running_loop().call_later(seconds, service.process.kill)
    connection = await Connection.open(service.port)
    try:
        for i in range(1_000_000):
            text = f"{texts[i % len(texts)]} {kill} {i}"
            document = {"text": text, "label": f"taught {i % 100}"}
            body = {"documents": [document], "version": "*"}
            status, answer = await connection.post("/v1/teach", body, service.token)
            if status == 200:
                acknowledged[json.loads(answer)["change"]] = text
    except (OSError, EOFError):
        pass
    finally:
        connection.close()
    return acknowledged
