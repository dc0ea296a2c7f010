"""Checks of every request (host, token, size, time and number) and headers of every answer.

An ASGI middleware around the whole application. A refusal costs no parsing: it is answered before
the body is read.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from ipaddress import ip_address
from typing import Any, Protocol

from longtail.serve.access import Caller, Gatekeeper, required_scope
from longtail.serve.audit import AuditTrail
from longtail.serve.counters import Metrics
from longtail.serve.problems import Problem, busy, respond
from longtail.serve.settings import Limits, Settings, is_loopback

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

STREAMED = "application/x-ndjson"
_STREAMING_ROUTE = "POST", "/v1/predict"
SMALL_BODY = 64 << 10  # bytes of a body that are taken at once, whatever others have sent
# Headers that the service acts upon: of two, one reader takes the first and another the last.
_GIVEN_ONCE = (b"host", b"authorization", b"content-type", b"content-length", b"transfer-encoding")
_METHODS = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    b"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
# Swagger UI makes markup of descriptions, which come from here, and draws with data addresses.
_DOCS_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    b"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]


class Route(Protocol):
    """A pattern of paths, as requests are counted by it."""

    path: str
    path_regex: re.Pattern[str]


class Guard:
    """Admits requests, bounds them, and counts them.

    Requests are counted by `routes`, also those that are refused before they reach one.
    """

    def __init__(
        self,
        app: App,
        settings: Settings,
        metrics: Metrics,
        audit: AuditTrail,
        routes: Sequence[Route] = (),
    ) -> None:
        self._app, self._settings, self._metrics, self._audit = app, settings, metrics, audit
        self._routes = routes
        self._gatekeeper = Gatekeeper(settings)
        self._hosts = _host_names(settings)
        self._under_way: Counter[str] = Counter()
        self._n_streams = 0
        self._bodies = _Budget(settings.limits.bodies_bytes)
        self._pace = Pace(settings.limits.bytes_per_second)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer, method = _Answer(scope, send), scope["method"]
        if method == "HEAD":
            scope = {**scope, "method": "GET"}
        start = time.perf_counter()
        self._metrics.under_way.inc()
        try:
            await self._admit(scope, receive, answer)
        except Problem as problem:
            if not answer.started:
                await respond(problem)(scope, receive, answer)
        finally:
            self._metrics.under_way.dec()
            route = self._name_route(scope["path"])
            self._metrics.seconds.labels(route).observe(time.perf_counter() - start)
            known = method if method in _METHODS else "other"
            self._metrics.requests.labels(known, route, answer.status).inc()

    def _name_route(self, path: str) -> str:
        """Return the pattern of a path, so that there are few of them."""
        return next((r.path for r in self._routes if r.path_regex.match(path)), "other")

    async def _admit(self, scope: Message, receive: Receive, answer: _Answer) -> None:
        headers = _read_headers(scope)
        self._check_host(headers)
        caller = self._identify(scope, headers)
        scope["longtail.caller"] = caller
        kind = headers.get(b"content-type", b"").decode("latin-1").split(";")[0].strip().lower()
        is_streamed = kind == STREAMED and (scope["method"], scope["path"]) == _STREAMING_ROUTE
        scope["longtail.body_type"] = kind
        limits = self._settings.limits
        if kind == STREAMED and not is_streamed:
            raise Problem(
                415,
                f"{STREAMED} is for POST /v1/predict alone; send application/json.",
                headers={"Connection": "close"},
            )
        if not is_streamed and _content_length(headers) > limits.body_bytes:
            raise _too_large(limits.body_bytes)
        if self._under_way[caller.key] >= limits.requests_per_client:
            raise Problem(
                429,
                f"{limits.requests_per_client} requests of yours are under way; wait for them.",
                headers={"Retry-After": "1"},
            )
        if is_streamed and self._n_streams >= limits.streams:
            raise busy(
                f"{self._n_streams} streams are under way; send documents in batches, or wait."
            )
        body = _Body(receive, limits, self._pace, None if is_streamed else self._bodies)
        self._under_way[caller.key] += 1
        self._n_streams += is_streamed
        try:
            await self._app(scope, body, answer)
        finally:
            body.release()
            self._n_streams -= is_streamed
            self._under_way[caller.key] -= 1
            if not self._under_way[caller.key]:
                del self._under_way[caller.key]

    def _check_host(self, headers: dict[bytes, bytes]) -> None:
        """Refuse a name that is not ours: a page elsewhere may have led a browser here."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        is_known = name in self._hosts if self._hosts is not None else _is_address(name)
        if not is_known:
            raise Problem(
                421,
                "This service is not meant to be reached under this name; --allow-host adds one.",
            )

    def _identify(self, scope: Message, headers: dict[bytes, bytes]) -> Caller:
        address = scope["client"][0] if scope.get("client") else "unknown"
        method, path = scope["method"], scope["path"]
        try:
            return self._gatekeeper.admit(method, path, headers.get(b"authorization"), address)
        except Problem as problem:
            if required_scope(method, path) == "teach":
                anonymous = Caller("", address, False)
                self._audit.record_refusal(anonymous, f"{method} {path[:100]}", problem.detail)
            raise


class _Budget:
    """Bytes of bodies that may be in memory together."""

    def __init__(self, n_bytes: int) -> None:
        self.n_left = n_bytes

    def reserve(self, n_bytes: int) -> None:
        if n_bytes > self.n_left:
            raise _busy()
        self.n_left -= n_bytes


class Pace:
    """Lets bytes of bodies in at a steady rate: reading them leaves time for everything else."""

    def __init__(self, bytes_per_second: int) -> None:
        self._bytes_per_second, self._free_at = bytes_per_second, 0.0

    def delay(self, n_bytes: int, now: float) -> float:
        """Return for how many seconds some bytes must wait for those before them."""
        start = max(now, self._free_at)
        self._free_at = start + n_bytes / self._bytes_per_second
        return start - now


class _Body:
    """A request's body, bounded in bytes and time.

    `budget` is what large bodies share. Without one the body is a stream: of any length, each piece
    of it in time, and nothing of it is kept.
    """

    def __init__(
        self, receive: Receive, limits: Limits, pace: Pace, budget: _Budget | None
    ) -> None:
        self._receive, self._limits, self._pace, self._budget = receive, limits, pace, budget
        self._deadline = time.monotonic() + limits.body_seconds
        self._n_bytes, self._n_taken, self._is_complete = 0, 0, False

    async def __call__(self) -> Message:
        if self._is_complete:  # what comes now is the end of the connection, at any time
            return await self._receive()
        seconds = self._limits.body_seconds
        if self._budget is not None:
            seconds = max(0.0, self._deadline - time.monotonic())
        try:
            async with asyncio.timeout(seconds):
                message = await self._receive()
        except TimeoutError:
            raise Problem(
                408, "The request did not arrive in time.", headers={"Connection": "close"}
            ) from None
        self._is_complete = not message.get("more_body", False)
        n_large = self._count(len(message.get("body", b"")))
        if n_large:
            await self._wait(n_large)
        return message

    def _count(self, n_bytes: int) -> int:
        """Count bytes that came in; return how many of them are beyond a small body."""
        n_before = max(0, self._n_bytes - SMALL_BODY)
        self._n_bytes += n_bytes
        n_large = max(0, self._n_bytes - SMALL_BODY) - n_before
        if self._budget is not None:
            if self._n_bytes > self._limits.body_bytes:
                raise _too_large(self._limits.body_bytes)
            self._budget.reserve(n_large)
            self._n_taken += n_large
        return n_large

    async def _wait(self, n_bytes: int) -> None:
        """Let other bodies have their turn; nothing more is read from this one meanwhile."""
        now = time.monotonic()
        seconds = self._pace.delay(n_bytes, now)
        if self._budget is not None and now + seconds > self._deadline:
            raise _busy()
        if seconds > 0.0:
            await asyncio.sleep(seconds)

    def release(self) -> None:
        """Give back what was taken; the request is answered."""
        if self._budget is not None:
            self._budget.n_left += self._n_taken


class _Answer:
    """Sends an answer back with security headers."""

    def __init__(self, scope: Message, send: Send) -> None:
        self._send = send
        self._is_page = required_scope(scope["method"], scope["path"]) is None
        self._is_head = scope["method"] == "HEAD"
        self._policy = _DOCS_POLICY if scope["path"] == "/docs" else _POLICY
        self.started, self.status = False, 500

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started, self.status = True, message["status"]
            headers = [*message.get("headers", ()), *_SECURITY_HEADERS]
            headers.append((b"content-security-policy", self._policy))
            if not any(name.lower() == b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-cache" if self._is_page else b"no-store"))
            message = {**message, "headers": headers}
        elif self._is_head:
            message = {**message, "body": b""}
        await self._send(message)


def _read_headers(scope: Message) -> dict[bytes, bytes]:
    """Return the headers of a request; one that must be there once is not there twice."""
    names = [name for name, _ in scope["headers"]]
    for name in _GIVEN_ONCE:
        if names.count(name) > 1:
            raise Problem(
                400,
                f"The header {name.decode()} is there {names.count(name)} times; send it once.",
                headers={"Connection": "close"},
            )
    return dict(scope["headers"])


def _host_names(settings: Settings) -> frozenset[str] | None:
    """Return the names under which the service may be reached; None is any address, no name."""
    given = {name.lower() for name in settings.allowed_hosts}
    if is_loopback(settings.host):
        return frozenset(given | {"localhost", "127.0.0.1", "[::1]", settings.host})
    return frozenset(given | {settings.host}) if given else None


def _is_address(host: str) -> bool:
    """Return whether a host is an address, which no page elsewhere can have led a browser to."""
    try:
        ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return host == "localhost"
    return True


def _content_length(headers: dict[bytes, bytes]) -> int:
    try:
        return int(headers.get(b"content-length", b"0"))
    except ValueError:
        return 0


def _busy() -> Problem:
    return busy("Too many large requests are under way; try again in a second.", Connection="close")


def _too_large(most: int) -> Problem:
    return Problem(
        413,
        f"The request is larger than {most:,} bytes. Send fewer documents, or stream them as "
        "application/x-ndjson.",
        headers={"Connection": "close"},
    )
