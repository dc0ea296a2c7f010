"""`/v1/model`, `/v1/quality`, `/health`, `/metrics`, the page, and the reference of the API."""

from __future__ import annotations

import hashlib
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from longtail import __version__
from longtail._columns import TableFormat
from longtail.serve.context import answer, get_caller, get_service
from longtail.serve.counters import CONTENT_TYPE
from longtail.serve.problems import RESPONSES, Problem
from longtail.serve.quality import measure_quality
from longtail.serve.schemas import ModelInfo, QualityResponse

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

router = APIRouter(responses=RESPONSES)
pages = APIRouter(include_in_schema=False)


def _read_folder(folder: Traversable) -> dict[str, tuple[bytes, str, str]]:
    """Return files with their types and tags; all names are known beforehand."""
    files = {}
    for entry in folder.iterdir():
        ending = entry.name.rpartition(".")[2]
        if ending in _TYPES:
            content = entry.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            files[entry.name] = content, _TYPES[ending], tag
    return files


_PAGE = _read_folder(resources.files("longtail.serve").joinpath("page"))
_SWAGGER_UI = _read_folder(resources.files("fastapi_swagger.resources"))


@router.get("/v1/model", response_model=ModelInfo)
async def model(request: Request) -> Response:
    """Say what is served, and whether the caller may teach."""
    service, caller = get_service(request), get_caller(request)
    snapshot = service.snapshot
    return answer(
        {
            "name": service.model.path.stem,
            "version": snapshot.version,
            "multilabel": snapshot.is_multilabel,
            "probabilities": snapshot.has_probabilities,
            "n_classes": len(snapshot.classes),
            "n_documents": snapshot.n_documents,
            "n_labels": snapshot.n_labels,
            "class_texts": bool(snapshot.texts),
            "hierarchy": snapshot.model.hierarchy_ is not None,
            "may_describe": hasattr(snapshot.model, "set_class_text"),
            "columns": _describe_columns(snapshot.model.columns_),
            "fields": snapshot.model.fields_,
            "read_only": service.settings.read_only,
            "may_teach": caller.may_teach and not service.settings.read_only,
            "library": __version__,
        }
    )


def _describe_columns(columns: TableFormat | None) -> dict[str, Any] | None:
    if columns is None:
        return None
    names = {"text": list(columns.text), "label": list(columns.label)}
    return names | {"label_separator": columns.label_separator}


@router.get("/v1/quality", response_model=QualityResponse)
async def quality(request: Request) -> Response:
    """Say what held-out documents showed when the model was fitted, and what was asked since."""
    service = get_service(request)
    snapshot = service.snapshot
    figures: dict[str, Any] = await service.reading.run(measure_quality, snapshot)
    return answer({"version": snapshot.version} | figures | {"hours": service.monitor.describe()})


@router.get("/health/live")
async def live() -> Response:
    """Say that the process answers."""
    return answer({"status": "ok"})


@router.get("/health/ready")
async def ready(request: Request) -> Response:
    """Say that the model is loaded and its kernels are compiled."""
    service = get_service(request)
    return answer({"status": "ok", "version": service.snapshot.version})


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Report counters for Prometheus."""
    return Response(get_service(request).metrics.render(), media_type=CONTENT_TYPE)


@pages.get("/")
async def index(request: Request) -> Response:
    """Serve the page."""
    return _serve_file(request, _PAGE, "index.html")


@pages.get("/favicon.ico")
async def favicon(request: Request) -> Response:
    """Serve the icon of the page."""
    return _serve_file(request, _PAGE, "icon.svg")


@pages.get("/page/{name}")
async def page_file(request: Request, name: str) -> Response:
    """Serve a file of the page; only those that were read at the start."""
    return _serve_file(request, _PAGE, name)


@pages.get("/docs")
async def docs(request: Request) -> Response:
    """Serve the reference of the API: Swagger UI, from its package."""
    return _serve_file(request, _PAGE, "docs.html")


@pages.get("/docs/{name}")
async def docs_file(request: Request, name: str) -> Response:
    """Serve a file of Swagger UI; only those that were read at the start."""
    return _serve_file(request, _SWAGGER_UI, name)


def _serve_file(request: Request, files: dict[str, tuple[bytes, str, str]], name: str) -> Response:
    if name not in files:
        raise Problem(404, "There is no such file.")
    content, kind, tag = files[name]
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)
