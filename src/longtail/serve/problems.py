"""Errors in the one JSON form of RFC 9457, never with a traceback.

In: an exception. Out: ``application/problem+json`` with `type`, `title`, `status` and `detail`.
"""

from __future__ import annotations

import http
import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticSerializationError, to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from longtail.answers import plain

MEDIA_TYPE = "application/problem+json"
_MAX_ERRORS = 20  # of one request that are listed

# The fragment of `type`, about:blank#NAME, for errors that clients act upon.
VERSION_MOVED = "version-moved"
MODEL_REFUSED = "model-refused"


class Problem(HTTPException):
    """An error that goes to the client as it is."""

    def __init__(
        self,
        status: int,
        detail: str,
        kind: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.kind, self.more = kind, more


def busy(detail: str, **headers: str) -> Problem:
    """Return the refusal of a request for which there is no room now."""
    return Problem(503, detail, headers={"Retry-After": "1", **headers})


class ProblemBody(BaseModel):
    """What every error looks like (RFC 9457)."""

    model_config = ConfigDict(extra="allow", title="Problem")

    type: str
    title: str
    status: int
    detail: str


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": description, "content": {MEDIA_TYPE: {"schema": {
        "$ref": "#/components/schemas/Problem"}}}}
    for status, description in {
        400: "The request cannot be read.",
        401: "A token is needed.",
        403: "The token does not allow this.",
        404: "There is no such thing.",
        405: "There is no such method.",
        408: "The request did not arrive in time.",
        413: "The request is too large.",
        415: "The request has another type than JSON.",
        421: "The service is not meant to be reached under this name.",
        422: "The request cannot be used.",
        429: "This client has too many requests under way.",
        500: "A fault of the service.",
        503: "The service is too busy, or not ready.",
    }.items()
}  # fmt: skip
CHANGE_RESPONSES = RESPONSES | {
    409: {
        "description": "The model has moved on since the version that the change names.",
        "content": RESPONSES[404]["content"],
    }
}


def respond(problem: Problem) -> Response:
    """Return a problem as a response."""
    status = problem.status_code
    body = {
        "type": "about:blank" if problem.kind is None else f"about:blank#{problem.kind}",
        "title": http.HTTPStatus(status).phrase,
        "status": status,
        "detail": problem.detail,
        **problem.more,
    }
    headers = dict(problem.headers or {})
    return Response(encode_json(body), status, headers, MEDIA_TYPE)


def encode_json(body: Any) -> bytes:
    """Return plain data as JSON; what is not finite becomes null.

    A label or text of a model may hold a lone surrogate, which UTF-8 cannot hold: then everything
    beyond ASCII is escaped.
    """
    try:
        return to_json(body, inf_nan_mode="null")
    except PydanticSerializationError:
        return json.dumps(plain(body), allow_nan=False).encode("ascii")


def install(app: FastAPI) -> None:
    """Turn every error of an app into a problem."""

    async def on_http_error(_: Request, error: Exception) -> Response:
        if isinstance(error, Problem):
            return respond(error)
        assert isinstance(error, HTTPException)
        return respond(Problem(error.status_code, str(error.detail), headers=error.headers))

    async def on_invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return respond(describe_invalid(error.errors()))

    async def on_fault(_: Request, error: Exception) -> Response:
        return respond(Problem(500, "The service failed; its log says why."))

    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(Exception, on_fault)


def describe_invalid(errors: Any) -> Problem:
    """Return what is wrong with a request; the values themselves are not sent back."""
    listed = [_describe_error(error) for error in errors[:_MAX_ERRORS]]
    first = listed[0] if listed else {"where": "body", "what": "invalid"}
    return Problem(422, _printable(f"{first['where']}: {first['what']}."), errors=listed)


def _describe_error(error: Any) -> dict[str, str]:
    where, what = ".".join(map(str, error["loc"])), str(error["msg"])
    if error["type"] == "json_invalid" and where:  # FastAPI's own: body and a number of characters
        what = f"Invalid JSON: {error['ctx']['error']} after {error['loc'][-1]} characters"
    if error["type"] == "missing" and error["loc"][-1] == "version":
        what += ', the version that the change was made against; "*" accepts any'
    return {"where": "body" if error["type"] == "json_invalid" else where, "what": what}


def _printable(text: str) -> str:
    """Return a text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
