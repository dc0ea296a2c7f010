"""The application: guard, routes, model, put together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.security import HTTPBearer

from longtail import __version__
from longtail.serve import problems
from longtail.serve.audit import AuditTrail
from longtail.serve.batching import Batcher
from longtail.serve.context import Service
from longtail.serve.counters import OUTCOMES, Metrics
from longtail.serve.guard import Guard
from longtail.serve.monitoring import Monitor
from longtail.serve.predictions import Prediction, predict
from longtail.serve.routes import annif, classes, hierarchy, label_studio, status, teaching
from longtail.serve.routes import predict as predicting
from longtail.serve.schemas import PredictRequest
from longtail.serve.served_model import ServedModel
from longtail.serve.settings import Settings
from longtail.serve.workers import Workers

SECONDS_BETWEEN_LOOKS = 1.0  # at the journal, for what other processes taught
_BEARER = HTTPBearer(auto_error=False, description="A token of the service.")


def create_app(path: str | os.PathLike[str], settings: Settings | None = None) -> Any:
    """Return the service of a model file as an ASGI application.

    Parameters
    ----------
    path : path-like
        A model file that takes texts.
    settings : Settings, optional
        Addresses, tokens and limits; the default accepts no changes, for it has no token.

    Returns
    -------
    ASGI application
        The model is loaded when it starts; until then it answers 503.
    """
    settings = settings or Settings()
    metrics = Metrics()
    audit = AuditTrail(settings.audit, lambda reason: metrics.audit_lost.labels(reason).inc())

    async def load() -> None:
        app.state.service = await asyncio.to_thread(_load, Path(path), settings, metrics, audit)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if not hasattr(app.state, "service"):
            await load()
        service: Service = app.state.service
        follower = asyncio.create_task(service.model.follow(SECONDS_BETWEEN_LOOKS))
        try:
            yield
        finally:
            follower.cancel()
            with suppress(asyncio.CancelledError):
                await follower
            for threads in (service.batcher, service.reading, service.searching):
                threads.close()
            await asyncio.to_thread(service.model.close)
            audit.close()

    app = FastAPI(
        title="longtail",
        version=__version__,
        description="Classify texts, say why, and teach.",
        lifespan=lifespan,
        redirect_slashes=False,  # to wherever the header Host says
        docs_url=None,  # its page would load scripts from elsewhere; `status` has one that does not
        redoc_url=None,
        dependencies=[Depends(_BEARER)],
    )
    problems.install(app)
    modules = (predicting, teaching, classes, hierarchy, status, annif, label_studio)
    routers = [*(module.router for module in modules), status.pages]
    for router in routers:
        app.include_router(router)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    routes: list[Any] = [route for router in (*routers, app.router) for route in router.routes]
    routes = [route for route in routes if hasattr(route, "path_regex")]
    guarded = Guard(app, settings, metrics, audit, routes)
    guarded.fastapi, guarded.load = app, load  # type: ignore[attr-defined]
    return guarded


def _load(path: Path, settings: Settings, metrics: Metrics, audit: AuditTrail) -> Service:
    limits = settings.limits
    model = ServedModel(
        path,
        read_only=settings.read_only,
        most_queued=limits.queued_changes,
        refine=settings.refine,
        memory=settings.memory,
        embedder=settings.embedder,
    )
    monitor = Monitor(metrics)

    def predict_counted(texts: list[str]) -> list[Prediction]:
        snapshot = model.snapshot
        predictions = predict(snapshot, texts)
        monitor.observe(snapshot, texts, predictions)
        return predictions

    batcher = Batcher(
        predict_counted,
        limits.queued_documents,
        limits.answer_seconds,
        metrics.batches.observe,
    )
    reading, searching = (
        Workers(f"longtail-{name}", n_threads, limits.queued_reads, limits.answer_seconds)
        for name, n_threads in (("read", 2), ("search", 1))
    )
    metrics.watch("longtail_classes", "Classes.", lambda: len(model.snapshot.classes))
    for field, name, description in OUTCOMES:
        value = partial(_read_outcome, model, field)
        metrics.watch(f"longtail_{name}", description, value)
    metrics.watch("longtail_queued_documents", "Waiting documents.", lambda: batcher.n_queued)
    return Service(settings, model, batcher, reading, searching, audit, metrics, monitor)


def _read_outcome(model: ServedModel, field: str) -> float:
    """Return how the last outcomes turned out; NaN where nothing is known."""
    return float(getattr(model.snapshot.outcomes, field))


def _describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, with what FastAPI cannot see in the code."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
        )
        schemas = schema["components"]["schemas"]
        for model in (problems.ProblemBody, PredictRequest):
            body = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(body.pop("$defs", {}))
            schemas[body["title"]] = body
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        app.openapi_schema = schema
    return app.openapi_schema
