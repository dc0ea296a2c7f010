"""Tokens and scopes: who asks, and whether they may.

In: method, path and the Authorization header of a request. Out: a `Caller`, or 401 or 403. Closed
by default: what is not listed as reading needs the scope to teach.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass

from longtail.serve.problems import Problem
from longtail.serve.settings import Settings

# The page itself holds nothing of the model; orchestrators ask for health without a token.
_FREE = re.compile(r"/|/(page|docs)/[^/]+|/docs|/health/(live|ready)|/favicon\.ico")
_READING_POSTS = re.compile(r"/v1/(predict|explain)|/v1/projects/[^/]+/suggest|/(setup|predict)")
_READING_METHODS = frozenset(["GET", "HEAD", "OPTIONS"])


@dataclass(frozen=True)
class Caller:
    """Who asks: the name of a token, or the address of a client without one."""

    name: str
    address: str
    may_teach: bool

    @property
    def key(self) -> str:
        """Key by which requests are counted."""
        return self.name or self.address


class Gatekeeper:
    """Knows the tokens, by their hashes."""

    def __init__(self, settings: Settings) -> None:
        self._read_is_free = settings.is_open_to_read
        self._read_only = settings.read_only
        self._tokens = [
            (_hash(token.secret.encode()), token.name, token.scope) for token in settings.tokens
        ]

    def admit(self, method: str, path: str, authorization: bytes | None, address: str) -> Caller:
        """Return who asks.

        Raises
        ------
        Problem
            401 without a token that is needed or with an unknown one, 403 where it does not allow
            what is asked.
        """
        scope = required_scope(method, path)
        known = None if authorization is None else self._recognise(authorization)
        if authorization is not None and known is None and scope is not None:
            raise Problem(401, "This token is not known.", headers=_challenge("invalid_token"))
        name, held = known or ("", "")
        caller = Caller(name, address, held == "teach")
        if scope is None or (scope == "read" and (self._read_is_free or held)):
            return caller
        if scope == "teach" and self._read_only:
            raise Problem(403, "This service is read-only; changes go to the one that teaches.")
        if not held:
            raise Problem(
                401,
                f"This needs a token with the scope {scope}: Authorization: Bearer TOKEN.",
                headers=_challenge(),
            )
        if held != "teach" and scope == "teach":
            raise Problem(
                403,
                "This token is for reading; changes need one with the scope teach.",
                headers=_challenge("insufficient_scope"),
            )
        return caller

    def _recognise(self, authorization: bytes) -> tuple[str, str] | None:
        """Return name and scope of a token; every token is compared, in constant time."""
        given, found = _hash(_read_secret(authorization)), None
        for stored, name, scope in self._tokens:
            if hmac.compare_digest(given, stored):
                found = name, scope
        return found


def required_scope(method: str, path: str) -> str | None:
    """Return the scope that a request needs; None where it needs none."""
    if _FREE.fullmatch(path) and method in _READING_METHODS:
        return None
    if method in _READING_METHODS or (method == "POST" and _READING_POSTS.fullmatch(path)):
        return "read"
    return "teach"


def _read_secret(authorization: bytes) -> bytes:
    """Return the secret of an Authorization header; nothing where there is none.

    Clients that know Basic alone (Annif, Label Studio) give the token as the password.
    """
    scheme, _, value = authorization.strip().partition(b" ")
    if scheme.lower() == b"bearer":
        return value.strip()
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""


def _hash(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


def _challenge(error: str | None = None) -> dict[str, str]:
    return {"WWW-Authenticate": "Bearer" + (f' error="{error}"' if error else "")}
