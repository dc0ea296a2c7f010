"""Honest predictions of `longtail serve` beside hostile clients, over the loopback interface alone.

In: a running service and texts. Out: latencies of predictions at a steady rate, and the memory of
the service, while clients in a process of their own attack it: half of them with bodies without
end, searches of a thousand characters and slow bodies, half with what is refused or never said.
Number and time of the clients are bounded.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from longtail_bench.serving import PERCENTILES, Connection, Service

MAX_CLIENTS = 500
MAX_SECONDS = 600.0
_CHUNK = 64 << 10
_MAX_SENT = 64 << 20  # bytes of a body without end
_HOST = "Host: 127.0.0.1\r\n"
_STREAM, _JSON = (f"Content-Type: application/{kind}\r\n" for kind in ("x-ndjson", "json"))


class Target(NamedTuple):
    """Whom hostile clients attack, what they search for, and until when."""

    port: int
    tokens: Sequence[str]
    deadline: float  # of time.monotonic
    random: random.Random


Attack = Callable[[Target], Awaitable[str]]


async def _connect(target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", target.port)


async def _status(reader: asyncio.StreamReader) -> str:
    """Return the status of what is answered; "closed" where nothing is."""
    line = await reader.readline()
    return line[9:12].decode("latin-1") if line.startswith(b"HTTP/") else "closed"


async def _send(target: Target, request: str, n_chunks: int = 0, pause: float = 0.0) -> str:
    """Send a head, then chunks of a body until something is answered; return the status."""
    chunk = b"1\r\n \r\n" if pause else b"%x\r\n%s\r\n" % (_CHUNK, b" " * _CHUNK)
    reader, writer = await _connect(target)
    answered = asyncio.ensure_future(_status(reader))
    try:
        writer.write(request.encode())
        for _ in range(n_chunks):
            if answered.done() or time.monotonic() > target.deadline:
                break
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(pause)
        async with asyncio.timeout(max(0.0, target.deadline - time.monotonic())):
            return await answered
    except TimeoutError:
        return "still open"
    except OSError:
        return "closed"
    finally:
        answered.cancel()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _endless_body(target: Target) -> str:
    path = target.random.choice(["/v1/explain", "/predict", "/v1/projects/longtail/suggest"])
    head = f"POST {path} HTTP/1.1\r\n{_HOST}{_STREAM}Transfer-Encoding: chunked\r\n\r\n"
    return await _send(target, head, _MAX_SENT // _CHUNK)


async def _doubled_header(target: Target) -> str:
    head = f"POST /v1/predict HTTP/1.1\r\n{_HOST}{_JSON}{_STREAM}Transfer-Encoding: chunked\r\n\r\n"
    return await _send(target, head, _MAX_SENT // _CHUNK)


async def _long_search(target: Target) -> str:
    query = " ".join(target.random.choices(target.tokens, k=300))[:1000]
    return await _send(
        target, f"GET /v1/classes?limit=500&query={quote(query)} HTTP/1.1\r\n{_HOST}\r\n"
    )


async def _slow_body(target: Target) -> str:
    head = f"POST /v1/predict HTTP/1.1\r\n{_HOST}{_JSON}Transfer-Encoding: chunked\r\n\r\n"
    return await _send(target, head, 1_000, 1.0)


async def _wrong_token(target: Target) -> str:
    body = '{"documents": [{"text": "x", "label": "y"}], "version": "*"}'
    head = f"POST /v1/teach HTTP/1.1\r\n{_HOST}{_JSON}Authorization: Bearer {'x' * 40}\r\n"
    return await _send(target, f"{head}Content-Length: {len(body)}\r\n\r\n{body}")


async def _no_json(target: Target) -> str:
    head = f"POST /v1/predict HTTP/1.1\r\n{_HOST}{_JSON}Content-Length: 100\r\n\r\n"
    return await _send(target, head + "{" * 100)


async def _half_head(target: Target) -> str:
    return await _send(target, "POST /v1/predict HTTP/1.1\r\nHost: 127")


async def _silence(target: Target) -> str:
    return await _send(target, "")


# A client does one of these again and again: the first four are half of all clients.
ATTACKS: dict[str, Attack] = {
    "body without end": _endless_body,
    "doubled header": _doubled_header,
    "search of 1,000 characters": _long_search,
    "slow body": _slow_body,
    "wrong token": _wrong_token,
    "no JSON": _no_json,
    "half a head": _half_head,
    "silence": _silence,
}


def attack(port: int, tokens: Sequence[str], n_clients: int, seconds: float, pause: float) -> Any:
    """Attack a service; return how often each kind of attack ended how.

    Parameters
    ----------
    port : int
        Of the loopback interface.
    tokens : sequence of str
        To search with.
    n_clients : int
        At the same time; at most 500.
    seconds : float
        For how long; at most 600.
    pause : float
        Seconds that a client waits when it was sent away.
    """
    if not 1 <= n_clients <= MAX_CLIENTS or not 0 < seconds <= MAX_SECONDS:
        raise ValueError(
            f"a service is attacked by 1 to {MAX_CLIENTS} clients, for at most {MAX_SECONDS:g} s; "
            f"got {n_clients} and {seconds:g}."
        )
    ended: dict[str, Counter[str]] = {name: Counter() for name in ATTACKS}

    async def work(i: int) -> None:
        name, run = list(ATTACKS.items())[i % len(ATTACKS)]
        target = Target(port, tokens, time.monotonic() + seconds, random.Random(i))
        while time.monotonic() < target.deadline:
            try:
                ended[name][await run(target)] += 1
            except OSError:
                ended[name]["closed"] += 1
            await asyncio.sleep(pause)

    async def run() -> None:
        await asyncio.gather(*(work(i) for i in range(n_clients)))

    asyncio.run(run())
    return {name: dict(counts) for name, counts in ended.items()}


async def _ask_steadily(
    service: Service, texts: Sequence[str], rate: float, seconds: float
) -> tuple[list[float], Counter[str], list[int]]:
    """Predict single documents at a steady rate; return seconds, statuses and bytes of memory.

    The time of a request counts from when it was due.
    """
    latencies: list[float] = []
    statuses: Counter[str] = Counter()
    memory = [service.resident_bytes()]
    spare: list[Connection] = []
    start = time.perf_counter()

    async def ask(i: int) -> None:
        due = start + i / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        body = {"documents": [texts[i % len(texts)]]}
        is_answered = False
        while not is_answered:
            is_kept = bool(spare)
            try:
                connection = spare.pop() if is_kept else await Connection.open(service.port)
                status, _ = await connection.post("/v1/predict", body, service.token)
                spare.append(connection)
                statuses[str(status)] += 1
                is_answered = True
            except (OSError, EOFError) as error:
                # A connection that was idle may be closed: a client then opens another.
                if not is_kept:
                    statuses[type(error).__name__] += 1
                    is_answered = True
        latencies.append(time.perf_counter() - due)

    async def watch() -> None:
        while True:
            await asyncio.sleep(0.5)
            memory.append(service.resident_bytes())

    watching = asyncio.ensure_future(watch())
    await asyncio.gather(*(ask(i) for i in range(round(rate * seconds))))
    watching.cancel()
    for connection in spare:
        connection.close()
    return latencies, statuses, [*memory, service.resident_bytes()]


def measure_hostile(
    service: Service,
    texts: Sequence[str],
    rate: float,
    n_clients: int,
    seconds: float,
    pause: float,
) -> dict[str, Any]:
    """Return what honest clients and the memory of a service see of an attack.

    Parameters
    ----------
    service : Service
        Under attack.
    texts : sequence of str
        To predict, and whose words are searched for.
    rate : float
        Honest predictions per second; they have a token.
    n_clients, seconds, pause
        As for `attack`.
    """
    asyncio.run(_ask_steadily(service, texts, rate, 3.0))  # warm up
    quiet, _, _ = asyncio.run(_ask_steadily(service, texts, rate, min(10.0, seconds)))
    before = service.cpu_seconds()
    given = [service.port, sorted({w for text in texts[:200] for w in text.split()})[:2000]]
    command = [sys.executable, "-m", "longtail_bench.serving_hostile"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as attackers:
        assert attackers.stdin is not None
        attackers.stdin.write(json.dumps([*given, n_clients, seconds, pause]).encode())
        attackers.stdin.close()
        latencies, statuses, memory = asyncio.run(_ask_steadily(service, texts, rate, seconds))
        assert attackers.stdout is not None
        ended = json.loads(attackers.stdout.read())
    return {
        "hostile clients": n_clients,
        "seconds": seconds,
        "attacks": ended,
        "honest predictions": dict(statuses),
        "latency ms without hostile clients": _percentiles(quiet),
        "latency ms beside hostile clients": _percentiles(latencies),
        "CPU s of the service": service.cpu_seconds() - before,
        "resident MB": {
            name: value / 1e6
            for name, value in (
                ("start", memory[0]),
                ("highest", max(memory)),
                ("end", memory[-1]),
            )
        },
    }


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    return {f"p{p:g}": float(np.percentile(seconds, p) * 1e3) for p in PERCENTILES}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(attack(*json.load(sys.stdin))))
