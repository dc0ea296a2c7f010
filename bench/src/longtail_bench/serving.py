"""Load on `longtail serve`, over the loopback interface alone; faults are in `serving_faults`.

In: a model file and texts. Out: latency at a steady rate, of class search, throughput in batches,
many connections, slow clients beside quick ones, memory over many requests. The client is a few
lines of asyncio, so that it costs the machine little beside the service.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

PERCENTILES = (50, 90, 99)


@dataclass(frozen=True)
class Service:
    """A running service."""

    process: subprocess.Popen[str]
    port: int
    token: str

    def resident_bytes(self) -> int:
        """Return the memory that the process holds."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """Return the CPU time that the process has used."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(model: Path) -> Iterator[Service]:
    """Run a service of a model file on a free port."""
    token = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens"
        tokens.touch(0o600)
        tokens.write_text(f"teach bench {token}\n")
        command = [sys.executable, "-m", "longtail", "serve", str(model), "--port", "0"]
        log = Path(folder) / "log"
        with (
            open(log, "w") as errors,
            subprocess.Popen(
                [*command, "--tokens", str(tokens), "--audit", os.devnull],
                stderr=errors,
                text=True,
            ) as process,
        ):
            try:
                yield Service(process, _wait_for_port(process, log), token)
            finally:
                process.kill()


def _wait_for_port(process: subprocess.Popen[str], log: Path) -> int:
    while process.poll() is None:
        told = log.read_text()
        if "ready: " in told:
            return int(told.split("ready: ")[1].split("/")[2].rsplit(":", 1)[1])
        time.sleep(0.05)
    raise RuntimeError(f"the service did not start: {log.read_text()}")


class Connection:
    """One kept-alive connection; requests follow each other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Connection:
        """Connect to the loopback interface."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def get(self, path: str) -> tuple[int, bytes]:
        """Ask for something; return status and body."""
        return await self._exchange(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"")

    async def post(self, path: str, body: Any, token: str = "") -> tuple[int, bytes]:
        """Send JSON; return status and body."""
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        if token:
            head += f"Authorization: Bearer {token}\r\n"
        return await self._exchange(head, json.dumps(body).encode())

    async def _exchange(self, head: str, content: bytes) -> tuple[int, bytes]:
        self._writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        await self._writer.drain()
        answer = await self._reader.readuntil(b"\r\n\r\n")
        status, length = int(answer[9:12]), 0
        for line in answer.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return status, await self._reader.readexactly(length)

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


def measure_latency(port: int, texts: Sequence[str], rate: float, n: int) -> dict[str, float]:
    """Send single documents at a steady rate, whatever the service does; return percentiles in ms.

    The time of a request counts from when it was due, so a service that stalls pays for all who
    wait.
    """

    async def run() -> dict[str, float]:
        spare: list[Connection] = []
        seconds = np.zeros(n)
        start = time.perf_counter() + 0.2

        async def ask(i: int) -> None:
            due = start + i / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            connection = spare.pop() if spare else await Connection.open(port)
            body = {"documents": [texts[i % len(texts)]]}
            status, _ = await connection.post("/v1/predict", body)
            seconds[i] = time.perf_counter() - due
            spare.append(connection)
            if status != 200:
                raise RuntimeError(f"status {status}")

        await asyncio.gather(*(ask(i) for i in range(n)))
        for connection in spare:
            connection.close()
        return {f"p{p:g}": float(np.percentile(seconds, p) * 1e3) for p in PERCENTILES}

    return asyncio.run(run())


def measure_search(port: int, n: int) -> dict[str, float]:
    """Search classes by parts of their names, one query after the other; return percentiles in ms.

    A third are beginnings of names, a third names with two letters swapped, a third whole names.
    """

    async def run() -> dict[str, float]:
        connection = await Connection.open(port)
        _, answer = await connection.get("/v1/classes?limit=500&sort=size")
        names = [str(entry["label"]) for entry in json.loads(answer)["classes"]]
        seconds = np.zeros(n)
        for i in range(n):
            name = names[i % len(names)]
            query = (name[:3], name[:2] + name[3:4] + name[2:3] + name[4:8], name)[i % 3]
            start = time.perf_counter()
            status, _ = await connection.get(f"/v1/classes?limit=12&query={quote(query)}")
            seconds[i] = time.perf_counter() - start
            if status != 200:
                raise RuntimeError(f"status {status}")
        connection.close()
        return {f"p{p:g}": float(np.percentile(seconds, p) * 1e3) for p in PERCENTILES}

    return asyncio.run(run())


def measure_throughput(port: int, texts: Sequence[str], batch: int, n: int, workers: int) -> float:
    """Return documents per second, in requests of so many documents over a few connections."""

    async def work(i: int) -> None:
        connection = await Connection.open(port)
        for j in range(i, n, workers):
            documents = [texts[(j * batch + k) % len(texts)] for k in range(batch)]
            status, _ = await connection.post("/v1/predict", {"documents": documents})
            if status != 200:
                raise RuntimeError(f"status {status}")
        connection.close()

    start = time.perf_counter()
    asyncio.run(_together(work, workers))
    return n * batch / (time.perf_counter() - start)


def count_statuses(port: int, texts: Sequence[str], connections: int, each: int) -> dict[str, int]:
    """Let many connections ask at the same time; return how often each status came."""
    counts: Counter[str] = Counter()

    async def work(i: int) -> None:
        try:
            connection = await Connection.open(port)
            for j in range(each):
                body = {"documents": [texts[(i * each + j) % len(texts)]]}
                status, _ = await connection.post("/v1/predict", body)
                counts[str(status)] += 1
            connection.close()
        except (OSError, EOFError) as error:
            counts[type(error).__name__] += 1

    asyncio.run(_together(work, connections))
    return dict(counts)


@dataclass(frozen=True)
class Load:
    """Requests to a service in one window."""

    service: Service
    texts: Sequence[str]
    rate: float
    n_requests: int

    def measure(self, n_windows: int, n_connections: int) -> dict[str, Any]:
        """Return latencies, throughput and CPU time, and the statuses of many connections."""
        port, texts, n = self.service.port, self.texts, self.n_requests
        measure_latency(port, texts, self.rate, min(n, 100))  # warm up
        start = self.service.cpu_seconds()
        latencies = [measure_latency(port, texts, self.rate, n) for _ in range(n_windows)]
        middle = self.service.cpu_seconds()
        n_batches = max(1, n // 10)
        speeds = [measure_throughput(port, texts, 32, n_batches, 4) for _ in range(n_windows)]
        used = self.service.cpu_seconds() - middle
        report: dict[str, Any] = {
            "latency ms, best window": min(latencies, key=lambda found: found["p99"]),
            "p99 of each window": [found["p99"] for found in latencies],
            "CPU ms a request": (middle - start) / (n * n_windows) * 1e3,
            "documents/s in batches of 32, best window": max(speeds),
            "of each window": speeds,
            "CPU ms a document in batches": used / (32 * n_batches * n_windows) * 1e3,
            "class search ms": measure_search(port, n),
        }
        each = max(1, n * n_windows // n_connections)
        report[f"statuses of {n_connections} connections"] = count_statuses(
            port, texts, n_connections, each
        )
        with slow_clients(port, 50):
            report["latency ms beside 50 slow clients"] = measure_latency(port, texts, self.rate, n)
        return report


@contextmanager
def slow_clients(port: int, n: int) -> Iterator[None]:
    """Hold connections open that have sent half a request."""
    import socket

    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(n)]
    for connection in held:
        connection.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: 127")
    try:
        yield
    finally:
        for connection in held:
            connection.close()


def measure_memory(
    service: Service, texts: Sequence[str], n: int, n_rounds: int = 5
) -> list[float]:
    """Return the resident memory in MB before and after each part of many requests."""
    megabytes = [service.resident_bytes() / 1e6]
    for _ in range(n_rounds):
        count_statuses(service.port, texts, 8, n // (8 * n_rounds))
        megabytes.append(service.resident_bytes() / 1e6)
    return megabytes


async def _together(work: Callable[[int], Awaitable[None]], n: int) -> None:
    await asyncio.gather(*(work(i) for i in range(n)))
