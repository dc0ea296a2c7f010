"""Settings of a service: where it listens, who may do what, and how much of it."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

SCOPES = ("read", "teach")  # teach includes read
SHORTEST_TOKEN = 16  # characters; a generated one has 43
_NAME = re.compile(r"[\w.@-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class Token:
    """A secret, who has it, and what it allows."""

    scope: str  # "read" or "teach"
    name: str  # who it was given to; goes into journal and audit trail
    secret: str = field(repr=False)  # never shown, logged or compared in variable time


@dataclass(frozen=True)
class Limits:
    """How much a service accepts; what is beyond is refused, not delayed."""

    body_bytes: int = 8 << 20  # of a request that is not a stream of predictions (413)
    # Of all such bodies together, beyond the first 64 KiB of each (503).
    bodies_bytes: int = 32 << 20
    # Of all bodies and streams together, beyond the first 64 KiB of each; what is more waits.
    bytes_per_second: int = 32 << 20  # twenty times what is predicted in a second
    streams: int = 32  # under way at the same time (503)
    queued_documents: int = 8_192  # that wait for prediction (503)
    # Explanations, lists and figures that wait or are made; searches as many (503).
    queued_reads: int = 64
    queued_changes: int = 64  # that wait for their turn (503)
    requests_per_client: int = 256  # under way at the same time, for one token or address (429)
    connections: int = 1_000  # open at the same time (503)
    # In which the head of a request, and its body or the next piece of a streamed one, must arrive
    # (408).
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    # In which an answer must be made (503), and a client must read what it asked for.
    answer_seconds: float = 30.0


@dataclass(frozen=True)
class Settings:
    """Settings of a service."""

    # Address to listen on. Reading is free on a loopback address and needs a token elsewhere.
    host: str = "127.0.0.1"
    port: int = 8080  # port; 0 lets the system choose
    tokens: tuple[Token, ...] = ()  # who may do what
    # Names under which browsers may reach the service, beside the address itself. Without any, a
    # service that listens to others is reached by addresses alone.
    allowed_hosts: tuple[str, ...] = ()
    # Whether reading needs a token on a loopback address, too: behind a proxy on the same machine
    # every request comes from it.
    require_token: bool = False
    # Whether changes are refused; several such processes may follow one journal.
    read_only: bool = False
    # Whether the model is refined by itself when enough was taught.
    refine: Literal["auto", "never"] = "auto"
    # Whether documents that are taught are kept for that.
    memory: Literal["auto", "never"] = "auto"
    audit: Path | None = None  # where the audit trail goes; None is the log
    limits: Limits = field(default_factory=Limits)  # how much is accepted
    embedder: Any = None  # the encoder of texts, of a model that was fitted with one

    @property
    def is_open_to_read(self) -> bool:
        """Whether reading needs no token: only this machine can ask."""
        return is_loopback(self.host) and not self.require_token


def is_loopback(host: str) -> bool:
    """Return whether an address is reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def new_token(scope: str, name: str) -> Token:
    """Return a token with a secret of 256 random bits."""
    return Token(scope, name, secrets.token_urlsafe(32))


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read tokens from a file: scope, name and secret in each line; # begins a comment.

    Raises
    ------
    ValueError
        Which line is wrong, and why; the secret is not quoted.
    OSError
        If the file cannot be read.
    """
    tokens: list[Token] = []
    for line_number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        fields = line.split("#", 1)[0].split()
        if fields:
            tokens.append(_parse_token(f"{path}, line {line_number}", fields))
    if len({token.secret for token in tokens}) < len(tokens):
        raise ValueError(f"{path}: two lines have the same secret; give each its own.")
    if not tokens:
        raise ValueError(f"{path}: has no token. Write lines such as: teach ann SECRET")
    if path.stat().st_mode & 0o077:
        raise ValueError(f"{path}: others can read it. Protect it: chmod 600 {path}")
    return tuple(tokens)


def _parse_token(where: str, fields: list[str]) -> Token:
    if len(fields) != 3 or fields[0] not in SCOPES:
        raise ValueError(f"{where}: write a scope (read or teach), a name and a secret.")
    scope, name, secret = fields
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{where}: a name has letters, digits and . @ - _, at most 64.")
    if len(secret) < SHORTEST_TOKEN or not secret.isascii():
        raise ValueError(
            f"{where}: a secret has at least {SHORTEST_TOKEN} ASCII characters; "
            "make one with: openssl rand -base64 32"
        )
    return Token(scope, name, secret)
