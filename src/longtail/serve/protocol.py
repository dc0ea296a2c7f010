"""HTTP connections that end when their client is slow, silent or one too many.

uvicorn bounds the time between requests; here the head of a request is bounded as well, in time and
in bytes, and so are the time in which a client reads its answer and the number of connections. The
body is the business of `guard`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from longtail.serve.settings import Limits

MAX_HEAD_BYTES = 64 << 10
_BUSY = (
    b'{"type":"about:blank","title":"Service Unavailable","status":503,'
    b'"detail":"Too many connections are open; try again in a second."}'
)
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n"
    b"retry-after: 1\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(_BUSY)
) + _BUSY


def make_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """Return the protocol class for uvicorn."""

    class _PatientProtocol(HttpToolsProtocol):
        _head_timer: asyncio.TimerHandle | None = None
        _read_timer: asyncio.TimerHandle | None = None
        _n_head_bytes = 0  # that came in
        _n_parsed = 0  # of them, in address and headers; all may come with the first read
        _in_head = True

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.write(_REFUSAL)
                transport.close()
            else:
                self._await_head()

        def data_received(self, data: bytes) -> None:
            if self._head_timer is None and (self.cycle is None or self.cycle.response_complete):
                self._await_head()
            self._n_head_bytes += len(data)
            super().data_received(data)
            if self._head_timer is not None and self._n_head_bytes > MAX_HEAD_BYTES:
                self._end()

        def on_message_begin(self) -> None:
            self._n_parsed, self._in_head = 0, True
            super().on_message_begin()

        def on_url(self, url: bytes) -> None:
            self._count_head(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self._count_head(len(name) + len(value) + 4)
            if self._in_head:  # what follows a chunked body is no header of the request
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._in_head = False
            self._have_head()
            super().on_headers_complete()

        def on_response_complete(self) -> None:
            self._have_head()
            super().on_response_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._read_timer = self.loop.call_later(limits.answer_seconds, self._end)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._is_read()

        def connection_lost(self, exc: Exception | None) -> None:
            self._have_head()
            self._is_read()
            super().connection_lost(exc)

        def _await_head(self) -> None:
            self._n_head_bytes = 0
            self._head_timer = self.loop.call_later(limits.head_seconds, self._end)

        def _count_head(self, n_bytes: int) -> None:
            self._n_parsed += n_bytes
            if self._n_parsed > MAX_HEAD_BYTES:
                raise ValueError("the head is too large")  # which the parser answers with 400

        def _have_head(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

        def _is_read(self) -> None:
            if self._read_timer is not None:
                self._read_timer.cancel()
                self._read_timer = None

        def _end(self) -> None:
            self.transport.abort()  # close() would wait for a client that does not read

    return _PatientProtocol
