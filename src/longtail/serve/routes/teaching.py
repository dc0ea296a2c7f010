"""`/v1/teach`, `/v1/forget`, `/v1/undo`, `/v1/changes` and `/v1/reload`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from longtail.answers import as_label
from longtail.serve.context import (
    answer,
    begin_change,
    describe_refusal,
    get_caller,
    get_service,
    make_change,
)
from longtail.serve.document_texts import as_texts
from longtail.serve.problems import CHANGE_RESPONSES, MODEL_REFUSED, Problem
from longtail.serve.schemas import (
    ChangeList,
    ChangeResponse,
    ReloadResponse,
    TaughtDocument,
    TeachRequest,
    UndoRequest,
)
from longtail.serve.served_model import Snapshot
from longtail.store.changes import Change

_LONGEST_SHOWN = 300  # characters of a text in the list of changes
_MAX_SHOWN = 5  # documents of a change in that list

router = APIRouter(responses=CHANGE_RESPONSES)


@router.post("/v1/teach", response_model=ChangeResponse)
async def teach(request: Request, asked: TeachRequest) -> Response:
    """Add documents of known or new classes; they count in the next prediction."""
    texts, labels = read_documents(get_service(request).snapshot, asked.documents)
    return await make_change(request, asked, "teach", texts, labels)


@router.post("/v1/forget", response_model=ChangeResponse)
async def forget(request: Request, asked: TeachRequest) -> Response:
    """Take documents away that were fitted or taught before, with their labels of then."""
    texts, labels = read_documents(get_service(request).snapshot, asked.documents)
    return await make_change(request, asked, "forget", texts, labels)


@router.post("/v1/undo", response_model=ChangeResponse)
async def undo(request: Request, asked: UndoRequest) -> Response:
    """Take changes back, exactly: the last ones, or those with some numbers."""
    return await make_change(request, asked, "undo", asked.n, numbers=asked.changes)


@router.get("/v1/changes", response_model=ChangeList)
async def changes(
    request: Request,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Response:
    """List the changes since the model file was written, newest first."""
    service = get_service(request)
    try:
        found: list[Change] = await service.reading.run(service.model.read_changes)
    except Exception as error:
        raise describe_refusal(error) or error from None
    newest = found[::-1][offset : offset + limit]
    return answer(
        {
            "version": service.snapshot.version,
            "total": len(found),
            "changes": [_show_change(change) for change in newest],
        }
    )


@router.post("/v1/reload", response_model=ReloadResponse)
async def reload(request: Request) -> Response:
    """Take in the model file that now has the name of the old one; predictions go on meanwhile."""
    service, outcome = get_service(request), "done"
    begin_change(request, "reload")
    try:
        is_new = await service.model.refresh()
    except Exception as error:
        problem = describe_refusal(error) or Problem(500, "The service failed; its log says why.")
        outcome = problem.detail
        if problem.kind == MODEL_REFUSED:
            raise Problem(
                409, f"{problem.detail} The model stays as it was.", MODEL_REFUSED
            ) from None
        raise problem from error
    finally:
        service.audit.record(get_caller(request), "reload", outcome)
    return answer({"version": service.snapshot.version, "changed": is_new})


def read_documents(
    snapshot: Snapshot, documents: list[TaughtDocument]
) -> tuple[list[str], list[Any]]:
    """Return texts, and a label for each, or a label set where the model has them.

    Raises
    ------
    Problem
        422 where a document has no label, or several where the model has one for each.
    """
    texts = as_texts(snapshot, [document.text for document in documents])
    labels: list[Any] = []
    for i, document in enumerate(documents):
        given = document.labels if document.label is None else [document.label]
        if given is None or (document.label is not None and document.labels is not None):
            raise Problem(422, f"document {i} needs one of label and labels.", document=i)
        if len(given) != 1 and not snapshot.is_multilabel:
            raise Problem(422, f"document {i}: this model has one label a document.", document=i)
        checked = [match_label(snapshot, label) for label in given]
        for label in checked:
            _check_single(snapshot, label, i)
        if not texts[i].strip() and not isinstance(document.text, str):
            raise Problem(422, f"document {i} has no text.", document=i)
        labels.append(checked if snapshot.is_multilabel else checked[0])
    return texts, labels


def _check_single(snapshot: Snapshot, label: str | int, document: int) -> None:
    """Refuse a new class whose name is several labels in the tables of the model."""
    columns = snapshot.model.columns_
    parts = columns.split_labels(label) if columns and isinstance(label, str) else [label]
    if columns is not None and len(parts) > 1 and label not in snapshot.classes:
        raise Problem(
            422,
            f"document {document}: {label!r} is {len(parts)} labels, which "
            f"{columns.label_separator!r} separates. Give labels as a list.",
            document=document,
        )


def match_label(snapshot: Snapshot, label: str | int) -> str | int:
    """Return a label in the type that the model's classes have."""
    try:
        typed: str | int = as_label(snapshot.model, label)
    except ValueError:
        raise Problem(422, "The classes of this model are numbers.") from None
    return typed


def _show_change(change: Change) -> dict[str, Any]:
    """Return a change with a few of its documents, shortened."""
    content: dict[str, Any] = {}
    for key, value in change.content.items():
        some = value[:_MAX_SHOWN] if isinstance(value, list) and key != "changes" else value
        if key == "documents":
            some = [entry[:_LONGEST_SHOWN] for entry in some]
        content[key] = some
    return change.as_dict() | {"n_documents": len(change.labels), "content": content}
