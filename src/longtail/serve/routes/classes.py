"""`/v1/classes`: search, browse, look at, rename, merge, remove."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from longtail.class_search import add_scored
from longtail.serve.class_details import decode_id, describe, encode_id, find_row, make_examples
from longtail.serve.context import answer, get_service, make_change
from longtail.serve.predictions import describe_label
from longtail.serve.problems import CHANGE_RESPONSES, Problem
from longtail.serve.routes.teaching import match_label
from longtail.serve.schemas import (
    ChangeResponse,
    ClassChange,
    ClassDetails,
    ClassList,
    ExampleList,
)
from longtail.serve.served_model import Snapshot

router = APIRouter(responses=CHANGE_RESPONSES)
ClassId = Annotated[str, Path(max_length=8_000, pattern=r"^[sn][\w.+-]*$")]


@router.get("/v1/classes", response_model=ClassList)
async def list_classes(
    request: Request,
    query: Annotated[str, Query(max_length=1_000, description="A part of a name.")] = "",
    by: Annotated[
        Literal["name", "score", "both"],
        Query(description="By letters, by the model's own score of the query, or both."),
    ] = "both",
    sort: Annotated[Literal["name", "size"], Query(description="Without a query.")] = "name",
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 20,
) -> Response:
    """Search classes, or go through all of them where there is no query."""
    service = get_service(request)
    snapshot = service.snapshot
    if not query.strip():
        return answer(await service.reading.run(_browse, snapshot, sort, offset, limit))
    found: list[tuple[Any, str]] = []
    if by != "score":
        found += await service.searching.run(snapshot.names.search, query, limit)
    if by != "name" and await service.searching.run(_has_known_term, snapshot, query):
        (prediction,) = await service.batcher.submit([query])
        found = add_scored(found, prediction.labels, limit)
    classes = await service.searching.run(_summarise, snapshot, found)
    return answer({"version": snapshot.version, "total": len(snapshot.classes), "classes": classes})


@router.get("/v1/classes/{class_id}", response_model=ClassDetails)
async def show_class(request: Request, class_id: ClassId) -> Response:
    """Show a class: its size, the terms that speak for it, the classes it is close to."""
    service = get_service(request)
    snapshot = service.snapshot
    label, row = decode_id(snapshot, class_id)
    details = await service.reading.run(describe, snapshot, label, row)
    return answer({"version": snapshot.version} | details)


@router.get("/v1/examples", response_model=ExampleList)
async def examples(request: Request) -> Response:
    """Give texts to begin with, made of words that speak for large classes."""
    service = get_service(request)
    snapshot = service.snapshot
    made = await service.reading.run(make_examples, snapshot)
    return answer({"version": snapshot.version, "examples": made})


@router.patch("/v1/classes/{class_id}", response_model=ChangeResponse)
async def change_class(request: Request, class_id: ClassId, asked: ClassChange) -> Response:
    """Rename a class, merge it into another, give it a text, or remove it."""
    snapshot = get_service(request).snapshot
    label, _ = decode_id(snapshot, class_id)
    given = asked.model_dump(exclude_none=True, exclude={"version", "by"})
    if len(given) != 1:
        raise Problem(422, "Give one of rename, merge_into, text and remove.")
    ((action, value),) = given.items()
    if action in ("rename", "merge_into"):
        value = match_label(snapshot, value)
    arguments = (label,) if action == "remove" else (label, value)
    return await make_change(request, asked, action.removesuffix("_into"), *arguments)


def _has_known_term(snapshot: Snapshot, query: str) -> bool:
    """Return whether the model has any term of a query; without one its scores say nothing."""
    return bool(snapshot.model.vocabulary_.count([query]).nnz)


def _browse(snapshot: Snapshot, sort: str, offset: int, limit: int) -> dict[str, Any]:
    """Return some classes in the order of their names or sizes."""
    sizes = snapshot.class_sizes
    n_classes = len(snapshot.classes)
    order = np.argsort(-sizes, kind="stable") if sort == "size" else np.arange(n_classes)
    rows = order[offset : offset + limit]
    labels = snapshot.classes[rows].tolist()
    classes = [
        {"id": encode_id(label), "size": snapshot.count_documents(row), "match": None}
        | describe_label(snapshot, label)
        for label, row in zip(labels, rows.tolist(), strict=True)
    ]
    return {"version": snapshot.version, "total": n_classes, "classes": classes}


def _summarise(snapshot: Snapshot, found: list[tuple[Any, str]]) -> list[dict[str, Any]]:
    """Return labels with their sizes; a class that is just gone is left out."""
    classes = []
    for label, match in found:
        row = find_row(snapshot, label)
        if row is not None:
            entry = {"id": encode_id(label), "size": snapshot.count_documents(row), "match": match}
            classes.append(entry | describe_label(snapshot, label))
    return classes
