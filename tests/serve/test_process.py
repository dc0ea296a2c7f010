"""A service as a process: killed, told to reload, asked slowly; and what it must not import."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn

import longtail
import longtail.serve.server as serve_module
from longtail.serve.application import create_app
from longtail.serve.guard import Pace
from longtail.serve.protocol import make_protocol
from longtail.serve.server import bind
from longtail.serve.settings import Limits, Settings
from tests.serve.conftest import BEARER, TOKENS, Running

KILLS = int(os.environ.get("LONGTAIL_SERVE_KILLS", "2"))
PROBE = {"documents": ["honey den", "taught 3 words", "hoots"], "k": 12}


def teach_until_killed(address: str, acknowledged: dict[int, str], begun: threading.Event) -> None:
    """Teach one text after the other, and keep which were acknowledged."""
    with httpx.Client(base_url=address, headers=BEARER, timeout=60) as client:
        for i in range(1_000):
            label = f"class {i % 40}"
            document = {"text": f"taught {i} words {label}", "label": label}
            try:
                body = {"documents": [document], "version": "*"}
                answer = client.post("/v1/teach", json=body)
            except httpx.HTTPError:
                return
            assert answer.status_code == 200, answer.text
            acknowledged[answer.json()["change"]] = document["text"]
            begun.set()


@pytest.mark.slow
def test_a_kill_loses_nothing_that_was_acknowledged(
    model_file: Path, start: Callable[..., Running]
) -> None:
    randomness = random.Random(0)
    service = start(model_file)
    known: dict[int, str] = {}
    for _ in range(KILLS):
        begun, fresh = threading.Event(), {}
        teaching = threading.Thread(
            target=teach_until_killed, args=(service.address, fresh, begun), daemon=True
        )
        teaching.start()
        assert begun.wait(60)
        time.sleep(randomness.uniform(0.0, 0.5))
        service.kill()
        teaching.join(60)
        known |= fresh
        expected = longtail.load(model_file).predict_proba_topk(PROBE["documents"], 12)
        service = start(model_file)
        with httpx.Client(base_url=service.address, timeout=60) as client:
            recorded: dict[int, str] = {}
            total = client.get("/v1/changes").json()["total"]
            for offset in range(0, total, 500):
                some = client.get(f"/v1/changes?limit=500&offset={offset}").json()["changes"]
                taught = [entry for entry in some if entry["action"] == "teach"]  # else: refined
                recorded |= {entry["number"]: entry["content"]["documents"][0] for entry in taught}
            assert known.items() <= recorded.items()
            answer = client.post("/v1/predict", json=PROBE).json()
        found = [[entry["label"] for entry in row["classes"]] for row in answer["results"]]
        assert found == expected.classes.tolist()
    assert known
    # SIGHUP takes in another file, while requests go on.
    other = longtail.load(model_file).partial_fit(["purrs"], ["tiger"])
    other.save(model_file, discard_changes=True)
    service.hang_up()
    with httpx.Client(base_url=service.address, timeout=60) as client:
        for _ in range(300):
            answer = client.post("/v1/predict", json={"documents": ["purrs"]}).json()
            if answer["results"][0]["labels"] == ["tiger"]:
                return
            time.sleep(0.1)
    pytest.fail("the new file was not taken in")


@contextmanager
def serving(path: Path, limits: Limits) -> Iterator[int]:
    """Run a service in a thread; yields its port."""
    app = create_app(path, Settings(tokens=TOKENS, limits=limits))
    config = uvicorn.Config(app, port=0, http=make_protocol(limits), ws="none", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(30)


@pytest.fixture
def impatient(model_file: Path) -> Iterator[int]:
    """A service whose clients must be quick; yields its port."""
    with serving(model_file, Limits(head_seconds=0.3, body_seconds=0.3, connections=3)) as port:
        yield port


def exchange(port: int, sent: bytes) -> bytes:
    """Send some bytes, wait for the other end to close, and return what came."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        received = b""
        try:
            connection.sendall(sent)
            while piece := connection.recv(65_536):
                received += piece
        except ConnectionError:
            pass
        return received


def test_slow_and_too_many_clients_are_sent_away(impatient: int) -> None:
    assert exchange(impatient, b"") == b""  # says nothing
    assert exchange(impatient, b"POST /v1/predict HTTP/1.1\r\nHost: loc") == b""  # half a head
    flood = b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000
    assert exchange(impatient, flood) == b""
    head = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    half = exchange(impatient, head + b'Content-Length: 100\r\n\r\n{"docu')
    assert half.startswith(b"HTTP/1.1 408")
    open_ones = [socket.create_connection(("127.0.0.1", impatient)) for _ in range(3)]
    refused = exchange(impatient, b"")
    for connection in open_ones:
        connection.close()
    assert refused.startswith(b"HTTP/1.1 503")
    assert b"application/problem+json" in refused


def send_without_end(port: int, head: bytes, piece: bytes, pause: float, most: int) -> bytes:
    """Send a chunked body until something is answered; return what came."""
    chunk = b"%x\r\n%s\r\n" % (len(piece), piece)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(head + b"Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        n_sent = 0
        try:
            while n_sent < most and not select.select([connection], [], [], pause)[0]:
                connection.sendall(chunk)
                n_sent += len(piece)
            assert n_sent < most, "a body without end was read to its end"
            return connection.recv(65_536)
        except ConnectionError:
            return b""


STREAM, JSON, FORM = (
    b"Content-Type: application/%s\r\n" % kind
    for kind in (b"x-ndjson", b"json", b"x-www-form-urlencoded")
)


@pytest.mark.parametrize(
    "line", [b"POST /v1/explain", b"POST /predict", b"POST /v1/projects/longtail/suggest"]
)
def test_a_stream_to_elsewhere_is_refused_before_it_is_read(impatient: int, line: bytes) -> None:
    answer = send_without_end(impatient, line + b" HTTP/1.1\r\n" + STREAM, b" ", 0.02, 100)
    assert answer.startswith(b"HTTP/1.1 415")
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(
    ("line", "headers"),
    [
        (b"POST /v1/explain", JSON),
        (b"POST /predict", JSON),
        (b"POST /v1/projects/longtail/suggest", FORM),
        (
            b"POST /v1/teach",
            JSON + b"Authorization: " + BEARER["Authorization"].encode() + b"\r\n",
        ),
        (b"POST /v1/predict", JSON),
    ],
)
def test_every_body_but_the_stream_of_predictions_is_bounded(
    impatient: int, line: bytes, headers: bytes
) -> None:
    head = line + b" HTTP/1.1\r\n" + headers
    large = send_without_end(impatient, head, b" " * 65_536, 0.0, 64 << 20)
    # Closed, which may overtake the answer; on a busy machine its time may be up first, or would be
    # before its turn comes.
    assert large[:12] in (b"", *(b"HTTP/1.1 %d" % status for status in (413, 408, 503)))
    slow = send_without_end(impatient, head, b" ", 0.05, 100)
    assert slow.startswith(b"HTTP/1.1 408")


def test_bytes_wait_for_those_before_them() -> None:
    pace = Pace(1_000)
    assert [pace.delay(500, now) for now in (10.0, 10.0, 10.25)] == [0.0, 0.5, 0.75]
    assert pace.delay(1, 20.0) == 0.0  # what was not used is not saved up


def test_large_bodies_come_in_at_a_pace(model_file: Path) -> None:
    limits = Limits(body_seconds=1.0, bytes_per_second=1 << 20)
    head = (
        b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: %d\r\n\r\n"
    )
    asked = b'{"documents": ["honey"]}'
    with serving(model_file, limits) as port:
        for size, accepted in ((60_000, (b"200",)), (6 << 20, (b"503", b""))):
            answer = exchange(port, head % size + asked.ljust(size))
            assert answer[9:12] in accepted  # closed, which may overtake the answer


@pytest.mark.parametrize(
    "doubled",
    [
        b"Content-Type: application/json\r\n" + STREAM,
        STREAM + STREAM,
        b"Host: elsewhere\r\n",
        b"Authorization: Bearer x\r\nauthorization: Bearer y\r\n",
    ],
)
def test_headers_that_are_there_twice_are_refused(impatient: int, doubled: bytes) -> None:
    head = b"POST /v1/predict HTTP/1.1\r\n" + doubled
    answer = send_without_end(impatient, head, b" ", 0.05, 100)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in answer


def test_a_head_is_bounded_however_it_comes(impatient: int) -> None:
    lines = b"".join(b"X-%d: %s\r\n" % (i, b"x" * 1_000) for i in range(100))
    head = b"GET /v1/model HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    for large in (head + lines, b"GET /v1/model?" + b"x" * 100_000 + head[13:]):
        assert exchange(impatient, large + b"\r\n")[:12] in (b"", b"HTTP/1.1 400")
    assert exchange(impatient, head + lines[:20_000] + b"\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_what_follows_a_body_is_no_header(impatient: int) -> None:
    body = b'{"documents": [{"text": "x", "label": "y"}], "version": "*"}'
    token = b"Authorization: " + BEARER["Authorization"].encode() + b"\r\n"
    head = (
        b"POST /v1/teach HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\nConnection: close\r\n"
    )
    chunked = b"%x\r\n%s\r\n0\r\n" % (len(body), body)
    assert exchange(impatient, head + b"\r\n" + chunked + token + b"\r\n").startswith(
        b"HTTP/1.1 401"
    )
    assert exchange(impatient, head + token + b"\r\n" + chunked + b"\r\n").startswith(
        b"HTTP/1.1 200"
    )


def test_the_library_imports_no_web_package() -> None:
    code = (
        "import sys, longtail; longtail.TextClassifier, longtail.Teacher; import longtail.cli.app;"
        "print(sorted({'fastapi', 'starlette', 'uvicorn', 'pydantic', 'prometheus_client'}"
        " & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_other_failures_of_the_disk_are_answered(model_file: Path, monkeypatch: Any) -> None:
    """A full disk refuses the change with 503, and predictions go on."""
    import errno

    from starlette.testclient import TestClient

    from longtail.store.journal import Journal

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "journal")

    with TestClient(create_app(model_file, Settings(tokens=TOKENS)), "http://127.0.0.1") as client:
        monkeypatch.setattr(Journal, "append", fail)
        body = {"documents": [{"text": "x", "label": "bear"}], "version": "*"}
        answer = client.post("/v1/teach", json=body, headers=BEARER)
        assert answer.status_code == 503
        assert "No space left" in answer.json()["detail"]
        assert client.post("/v1/predict", json={"documents": ["honey"]}).status_code == 200
        monkeypatch.undo()
        assert client.post("/v1/teach", json=body, headers=BEARER).status_code == 200
        journal = model_file.with_name(model_file.name + ".journal")
        damaged = journal.with_suffix(".damaged")
        damaged.write_bytes(b"not a database at all" * 300)
        damaged.replace(journal)
        for ending in ("-wal", "-shm"):  # SQLite would restore the journal from them
            journal.with_name(journal.name + ending).unlink()
        answer = client.post("/v1/teach", json=body, headers=BEARER)
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"
        assert client.post("/v1/predict", json={"documents": ["honey"]}).status_code == 200


def test_a_damaged_journal_is_one_sentence_at_the_start(model_file: Path) -> None:
    model_file.with_name(model_file.name + ".journal").write_bytes(b"no database" * 300)
    command = [sys.executable, "-m", "longtail", "serve", str(model_file), "--port", "0"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    assert "animals.longtail.journal" in run.stderr.replace("\n", "")


def test_a_taken_port_is_said_before_the_model_is_loaded(tmp_path: Path) -> None:
    not_a_model = tmp_path / "model"
    not_a_model.write_text("nobody looks into it")
    command = [sys.executable, "-m", "longtail", "serve", str(not_a_model), "--port"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        run = subprocess.run([*command, port], capture_output=True, text=True, timeout=120)
    assert run.returncode == 1
    [message] = run.stderr.splitlines()
    assert message.startswith(f"longtail: port {port} of 127.0.0.1 is taken by another program.")
    nowhere = [*command, "0", "--host", "192.0.2.1"]  # of no machine
    run = subprocess.run(nowhere, capture_output=True, text=True, timeout=120)
    assert run.returncode == 1
    assert "longtail: cannot listen on port 0 of 192.0.2.1: Cannot assign" in run.stderr


def test_a_host_of_several_addresses_has_one_port() -> None:
    bound = bind("localhost", 0)
    try:
        assert len({listener.getsockname()[1] for listener in bound}) == 1
    finally:
        for listener in bound:
            listener.close()


def test_a_crowd_of_new_connections_is_let_in_a_few_at_a_time() -> None:
    turns = [0]  # of the event loop, with how many connections were accepted in each

    class App:
        async def load(self) -> None:
            pass

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            assert (await receive())["type"] == "lifespan.startup"
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})

    class Protocol(asyncio.Protocol):
        def __init__(self, **_: Any) -> None:
            turns[-1] += 1

    config = serve_module._configure(App(), Settings(), False)
    config.http = Protocol  # type: ignore[assignment]
    server = uvicorn.Server(config)

    async def crowd(port: int) -> None:
        address = "127.0.0.1", port
        # Connected by the system, before the event loop has a turn.
        clients = [socket.create_connection(address, timeout=10) for _ in range(50)]
        while sum(turns) < len(clients):
            turns.append(0)
            await asyncio.sleep(0)
        server.should_exit = True
        for client in clients:
            client.close()

    async def run() -> None:
        tasks = []
        ready = lambda host, port: tasks.append(asyncio.create_task(crowd(port)))  # noqa: E731
        await serve_module._serve(server, App(), Settings(), ready, bind("127.0.0.1", 0))
        await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(run(), 60))
    assert sum(turns) == 50
    assert max(turns) <= 4


def test_it_starts_on_systems_without_sighup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "SIGHUP")  # as on Windows
    ready: list[int] = []

    class App:
        async def load(self) -> None:
            pass

    class Server(uvicorn.Server):
        async def serve(self, sockets: Any = None) -> None:
            self.servers = [SimpleNamespace(sockets=sockets)]  # type: ignore[list-item]
            self.started = True
            while not ready:
                await asyncio.sleep(0.01)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = serve_module._serve(
            Server(uvicorn.Config(App)),
            App(),
            Settings(),
            lambda host, port: ready.append(port),
            [listener],
        )
        asyncio.run(serving)
        assert ready == [listener.getsockname()[1]]
