"""`/v1/projects`: as Annif's own API has it, so that its `http` backend can use this service.

In Annif's ``projects.cfg``: ``backend=http`` and
``endpoint=http://127.0.0.1:8080/v1/projects/longtail/suggest``.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel
from starlette.responses import Response

from longtail.serve.context import Service, answer, get_service
from longtail.serve.document_texts import as_texts
from longtail.serve.predictions import MAX_CANDIDATES
from longtail.serve.problems import RESPONSES, Problem
from longtail.serve.schemas import MAX_CHARACTERS
from longtail.serve.served_model import Snapshot

PROJECT = "longtail"
_DEFAULT_LIMIT = 10
_NAMESPACE = "urn:longtail:class:"

router = APIRouter(responses=RESPONSES, tags=["Annif"])
_Project = Annotated[str, Path(description="longtail; there is one project.")]


class Project(BaseModel):
    """A project as Annif describes it."""

    project_id: str
    name: str
    language: str
    backend: dict[str, str]
    vocab: dict[str, str]
    vocab_language: str
    is_trained: bool
    modification_time: str


class Projects(BaseModel):
    """All projects."""

    projects: list[Project]


class Suggestion(BaseModel):
    """A subject as Annif suggests it."""

    uri: str
    label: str
    notation: str | None
    score: float


class Suggestions(BaseModel):
    """Subjects, best first."""

    results: list[Suggestion]


@router.get("/v1/projects", response_model=Projects)
async def list_projects(request: Request) -> Response:
    """List the one project that there is."""
    return answer({"projects": [_describe(get_service(request))]})


@router.get("/v1/projects/{project_id}", response_model=Project)
async def show_project(request: Request, project_id: _Project) -> Response:
    """Describe the project."""
    _check_project(project_id)
    return answer(_describe(get_service(request)))


@router.post(
    "/v1/projects/{project_id}/suggest",
    response_model=Suggestions,
    openapi_extra={
        "requestBody": {
            "content": {
                "application/x-www-form-urlencoded": {
                    "schema": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string"},
                            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
                            "threshold": {"type": "number"},
                        },
                        "description": "Fields of a record may stand in place of text.",
                    }
                }
            }
        }
    },
)
async def suggest(request: Request, project_id: _Project) -> Response:
    """Suggest classes for a text, in a form as Annif sends it."""
    _check_project(project_id)
    service = get_service(request)
    text, limit, threshold = _read_form(await request.body(), service.snapshot)
    (prediction,) = await service.batcher.submit([text])
    texts = prediction.snapshot.texts
    results = [
        {
            "uri": class_uri(label),
            "label": texts.get(label) or str(label),
            "notation": None,
            "score": score,
        }
        for label, score in zip(prediction.labels, prediction.values, strict=True)
        if score >= threshold
    ]
    return answer({"results": results[:limit]})


def class_uri(label: Any) -> str:
    """Return the URI of a class: the label itself where it is one, else a URN."""
    text = str(label)
    is_uri = text.startswith(("http://", "https://", "urn:")) and not any(map(str.isspace, text))
    return text if is_uri else _NAMESPACE + quote(text, safe="")


def _read_form(body: bytes, snapshot: Snapshot) -> tuple[str, int, float]:
    """Return text, limit and threshold of a form; fields of a record stand for its text."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20
        )
        form = dict(pairs)
        is_record = snapshot.fields is not None and any(n in form for n in snapshot.text_columns)
        [text] = as_texts(snapshot, [form]) if is_record else [form["text"]]
        limit = int(form.get("limit") or _DEFAULT_LIMIT)
        threshold = float(form.get("threshold") or 0.0)
    except (ValueError, KeyError):
        raise Problem(422, "Send a form with text, and perhaps limit and threshold.") from None
    if len(text) > MAX_CHARACTERS or not 1 <= limit <= MAX_CANDIDATES:
        raise Problem(
            422,
            f"text may have {MAX_CHARACTERS:,} characters, limit be from 1 to {MAX_CANDIDATES}.",
        )
    return text, limit, threshold


def _check_project(project_id: str) -> None:
    if project_id != PROJECT:
        raise Problem(404, f"There is one project here: {PROJECT}.")


def _describe(service: Service) -> dict[str, Any]:
    changed = os.stat(service.model.path).st_mtime
    return {
        "project_id": PROJECT,
        "name": "longtail",
        "language": "und",
        "backend": {"backend_id": "longtail"},
        "vocab": {"vocab_id": "longtail"},
        "vocab_language": "und",
        "is_trained": True,
        "modification_time": datetime.fromtimestamp(changed, UTC).isoformat(),
    }
