"""A running service: uvicorn, signals, and messages at the start."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import warnings
from collections.abc import Callable
from typing import Any

import uvicorn

from longtail.exceptions import ModelFileError, UncalibratedWarning
from longtail.serve.application import create_app
from longtail.serve.protocol import make_protocol
from longtail.serve.settings import Settings

_LOGGER = logging.getLogger("longtail.serve")
_KEEP_ALIVE_SECONDS = 15
_GRACE_SECONDS = 10  # for requests under way when the service is told to stop
# Connections accepted before open ones have their turn again: a crowd at the door would keep every
# request waiting until all of it is in, for each of the six turns that a prediction takes.
_ACCEPTED_TOGETHER = 4
_WAITING_CONNECTIONS = 2_048  # in the system's queue


def run_server(
    path: str | os.PathLike[str],
    settings: Settings,
    on_ready: Callable[[str, int], None] = lambda host, port: None,
    on_bound: Callable[[], None] = lambda: None,
    *,
    access_log: bool = False,
) -> None:
    """Serve a model until a signal ends it; SIGHUP takes in a new model file.

    `on_bound` is called once the port is bound, before the model is loaded; `on_ready` with host
    and port once the service answers. Logged requests never have texts and tokens.

    Raises
    ------
    OSError
        If the address cannot be listened on; the model is not opened then.
    """
    sockets = bind(settings.host, settings.port)
    on_bound()
    # `/v1/quality` says what was held out; a warning at every prediction would fill the log.
    warnings.simplefilter("ignore", UncalibratedWarning)
    app = create_app(path, settings)
    config = _configure(app, settings, access_log)
    try:
        asyncio.run(_serve(uvicorn.Server(config), app, settings, on_ready, sockets))
    finally:
        for bound in sockets:
            bound.close()


def _configure(app: Any, settings: Settings, access_log: bool) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=make_protocol(settings.limits),
        ws="none",
        lifespan="on",
        access_log=access_log,
        log_level="info" if access_log else "warning",
        server_header=False,
        proxy_headers=False,
        backlog=_ACCEPTED_TOGETHER,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


def bind(host: str, port: int) -> list[socket.socket]:
    """Return a socket for each address of a host, bound to a port; 0 is any.

    Raises
    ------
    OSError
        If the host has no address here, or the port is taken.
    """
    bound: list[socket.socket] = []
    failed: OSError | None = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise OSError(f"cannot listen on {host!r}: {error.strerror}.") from None
    for family, kind, protocol, _, (address, _, *more) in dict.fromkeys(found):
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # A port that was chosen for the first address is that of all.
            listener.bind((address, bound[0].getsockname()[1] if bound else port, *more))
            bound.append(listener)
        except OSError as error:
            listener.close()
            # A name may have an address that this machine does not have, such as ::1.
            if failed is None or error.errno == errno.EADDRINUSE:
                failed = error
    if failed is None or (bound and failed.errno != errno.EADDRINUSE):
        return bound
    for listener in bound:
        listener.close()
    if failed.errno == errno.EADDRINUSE:
        raise OSError(
            f"port {port} of {host} is taken by another program. End that one, or give another "
            "port; 0 takes any that is free."
        )
    raise OSError(f"cannot listen on port {port} of {host}: {failed.strerror}.")


async def _serve(
    server: uvicorn.Server,
    app: Any,
    settings: Settings,
    on_ready: Callable[[str, int], None],
    sockets: list[socket.socket],
) -> None:
    await app.load()  # before uvicorn, which would make a traceback of what cannot be opened
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def reload() -> None:
        task = loop.create_task(_reload(app))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    if hasattr(signal, "SIGHUP"):  # Windows has none; POST /v1/reload does the same
        loop.add_signal_handler(signal.SIGHUP, reload)
    serving = loop.create_task(server.serve(sockets=sockets))
    while not server.started and not serving.done():
        await asyncio.sleep(0.02)
    if server.started:
        for listener in sockets:  # asyncio has one number for this and for `_ACCEPTED_TOGETHER`
            listener.listen(_WAITING_CONNECTIONS)
        port = server.servers[0].sockets[0].getsockname()[1]
        on_ready(settings.host, port)
    await serving
    if not server.started:
        raise OSError(f"the service could not start on {settings.host}:{settings.port}.")


async def _reload(app: Any) -> None:
    """Take in a new model file; the old model stays where that fails."""
    service = getattr(app.fastapi.state, "service", None)
    if service is None:
        return
    try:
        changed = await service.model.refresh()
        version = service.snapshot.version
        _LOGGER.warning("SIGHUP: version %s, %s", version, "new" if changed else "as before")
    except (ModelFileError, OSError, ValueError) as error:
        _LOGGER.error("SIGHUP: the model stays as it is: %s", error)
