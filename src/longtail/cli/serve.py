"""`longtail serve`: a model as a service, with a page to try, teach and check it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longtail.cli.inputs import check_model, find_embedder
from longtail.cli.shared_options import ModelPath, Quiet
from longtail.cli.show import clear_errors, print_note

if TYPE_CHECKING:
    from longtail.serve.settings import Settings, Token


def serve(
    model: ModelPath,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine's need tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 is any.")] = 8080,
    tokens: Annotated[
        Path | None,
        typer.Option(
            help="File with a scope (read or teach), a name and a secret in each line. Without "
            "one a token is made and printed once."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Name under which browsers may reach the service; repeat for several."),
    ] = None,
    require_token: Annotated[
        bool,
        typer.Option(
            "--require-token", help="Reading needs a token on this machine, too, as behind a proxy."
        ),
    ] = False,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="Refuse changes; follow those that others make."),
    ] = False,
    refine: Annotated[
        bool,
        typer.Option("--refine/--no-refine", help="Refine the model when enough was taught."),
    ] = True,
    memory: Annotated[
        bool,
        typer.Option("--memory/--no-memory", help="Keep documents for refine to learn from."),
    ] = True,
    audit: Annotated[
        Path | None, typer.Option(help="File for the audit trail; the log without one.")
    ] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log each request, without texts and tokens.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Serve a model: an API, and a page on which people try, teach and check it.

    SIGHUP takes in a new model file. Needs longtail[serve].
    """
    with clear_errors():
        try:
            from longtail.serve.server import run_server
            from longtail.serve.settings import Settings, is_loopback
        except ImportError as error:
            raise ImportError(
                f"the service needs {error.name}: pip install 'longtail[serve]'"
            ) from error
        check_model(model)
        logging.basicConfig(format="%(asctime)s %(name)s: %(message)s")
        logging.getLogger("longtail.serve").setLevel(logging.INFO)
        needed = require_token or not is_loopback(host)
        known, printed = _choose_tokens(tokens, needed, read_only)
        settings = Settings(
            host=host,
            port=port,
            tokens=known,
            allowed_hosts=tuple(allow_host or ()),
            require_token=require_token,
            read_only=read_only,
            refine="auto" if refine else "never",
            memory="auto" if memory else "never",
            audit=audit,
            embedder=find_embedder(),
        )

        def say_loading() -> None:
            if not quiet:
                print_note(f"loading {model}")

        def say_ready(_: str, bound: int) -> None:
            for line in _describe(settings, bound, printed):
                print_note(line)

        run_server(model, settings, say_ready, say_loading, access_log=access_log)


def _choose_tokens(
    path: Path | None, read_needs_one: bool, read_only: bool
) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """Return all tokens, and those that were made just now and must be printed."""
    from longtail.serve.settings import new_token, read_tokens

    if path is not None:
        return read_tokens(path), ()
    made = () if read_only else (new_token("teach", "owner"),)
    if read_needs_one:
        made = (*made, new_token("read", "reader"))
    return made, made


def _describe(settings: Settings, port: int, printed: tuple[Token, ...]) -> list[str]:
    """Return what to say once the service answers; the only time that a token is shown."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{host}:{port}/"
    lines = [f"{token.scope} token, shown once: {token.secret}" for token in printed]
    # The part after # stays in the browser: no server and no log sees it.
    return [*lines, f"ready: {address}" + (f"#token={printed[0].secret}" if printed else "")]
