"""`/v1/hierarchy`: go through it a node at a time, give the classes another, move a node."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from longtail.answers import find_path
from longtail.serve.class_details import decode_node, encode_id, find_label, find_row
from longtail.serve.context import answer, get_service, make_change
from longtail.serve.predictions import LONGEST_TEXT
from longtail.serve.problems import CHANGE_RESPONSES, Problem
from longtail.serve.routes.classes import ClassId
from longtail.serve.routes.teaching import match_label
from longtail.serve.schemas import ChangeResponse, HierarchyChange, NodeChange, NodeList
from longtail.serve.served_model import Snapshot
from longtail.taxonomy import Hierarchy

router = APIRouter(responses=CHANGE_RESPONSES)


@router.get("/v1/hierarchy", response_model=NodeList)
async def list_nodes(
    request: Request,
    node: Annotated[
        str | None, Query(max_length=8_000, description="Whose children; none: the roots.")
    ] = None,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """List the children of a node, or the nodes without a parent."""
    service = get_service(request)
    snapshot = service.snapshot
    return answer(await service.reading.run(_list, snapshot, node, offset, limit))


@router.put("/v1/hierarchy", response_model=ChangeResponse)
async def set_hierarchy(request: Request, asked: HierarchyChange) -> Response:
    """Give the classes parents, or take them away."""
    snapshot = get_service(request).snapshot
    given = asked.model_dump(exclude_none=True, exclude={"version", "by"})
    if len(given) != 1:
        raise Problem(422, "Give one of pairs, path_separator and remove.")
    parents: Any = given.get("path_separator")
    if "pairs" in given:
        parents = [tuple(match_label(snapshot, label) for label in p) for p in given["pairs"]]
    return await make_change(request, asked, "hierarchy", parents)


@router.patch("/v1/hierarchy/{node_id}", response_model=ChangeResponse)
async def move_node(request: Request, node_id: ClassId, asked: NodeChange) -> Response:
    """Give a class, or an inner node, other parents."""
    snapshot = get_service(request).snapshot
    label = decode_node(snapshot, node_id)
    parents = [match_label(snapshot, parent) for parent in asked.parents]
    return await make_change(request, asked, "move", label, parents)


def _list(snapshot: Snapshot, node_id: str | None, offset: int, limit: int) -> dict[str, Any]:
    """Return some children of a node, or some roots."""
    hierarchy = snapshot.model.hierarchy_
    if hierarchy is None:
        raise Problem(404, "The model has no hierarchy.")
    path: list[Any] | None = None
    if node_id is None:
        total, shown = len(snapshot.roots), snapshot.roots[offset : offset + limit]
    else:
        label = decode_node(snapshot, node_id)
        path = find_path(snapshot.model, label)
        children = hierarchy.child_ids(hierarchy.find_one(label)) if path else np.zeros(0, np.int64)
        total, shown = len(children), hierarchy.nodes[children[offset : offset + limit]]
    nodes = [_describe(snapshot, hierarchy, label) for label in shown.tolist()]
    return {"version": snapshot.version, "total": total, "path": path, "nodes": nodes}


def _describe(snapshot: Snapshot, hierarchy: Hierarchy, label: Any) -> dict[str, Any]:
    """Return a node as it is listed."""
    row, node = find_row(snapshot, label), find_label(hierarchy.nodes, label)
    size = None if row is None else snapshot.count_documents(row)
    n_children = 0 if node is None else len(hierarchy.child_ids(node))
    found = {"id": encode_id(label), "label": label, "size": size, "n_children": n_children}
    text = snapshot.texts.get(label)
    return found if text is None else found | {"text": text[:LONGEST_TEXT]}
