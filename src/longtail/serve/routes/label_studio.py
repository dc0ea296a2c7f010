"""`/setup`, `/predict`, `/webhook`, `/health`: the service as an ML backend of Label Studio.

The labelling configuration says which field of a task holds the text (`<Text value="$text"/>`) and
which control takes the classes (`Choices` or `Taxonomy`). Where that field is a column of the fit
and the task has all of these columns, they are joined as in the fit; a record is read by field.
Annotations that arrive at the webhook are taught.
"""

from __future__ import annotations

import re
from typing import Annotated, Any
from xml.etree import ElementTree

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from longtail.serve.context import answer, get_service, make_change
from longtail.serve.document_texts import as_texts
from longtail.serve.problems import CHANGE_RESPONSES, Problem
from longtail.serve.routes.teaching import read_documents
from longtail.serve.schemas import (
    ANY_VERSION,
    MAX_CHARACTERS,
    MAX_DOCUMENTS,
    ChangeRequest,
    TaughtDocument,
)
from longtail.serve.served_model import Snapshot

router = APIRouter(responses=CHANGE_RESPONSES, tags=["Label Studio"])
_CONTROLS = {"choices": "Choices", "taxonomy": "Taxonomy"}
_LARGEST_CONFIGURATION = 1 << 20


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Setup(_Open):
    """What Label Studio says when it connects."""

    project: str | int | None = None
    schema_: Annotated[str | None, Field(alias="schema", max_length=_LARGEST_CONFIGURATION)] = None


class Tasks(_Open):
    """Tasks to predict, and the labelling configuration."""

    tasks: Annotated[list[dict[str, Any]], Field(max_length=MAX_DOCUMENTS)]
    label_config: Annotated[str, Field(max_length=_LARGEST_CONFIGURATION)]


class Event(_Open):
    """Something that happened in Label Studio."""

    action: str
    task: dict[str, Any] | None = None
    annotation: dict[str, Any] | None = None
    project: dict[str, Any] | None = None


class Control(BaseModel):
    """Where a labelling configuration takes the class, and from which text."""

    name: str
    kind: str
    object_name: str
    field: str


@router.get("/health")
async def health(request: Request) -> Response:
    """Say that the backend is up."""
    get_service(request)
    return answer({"status": "UP", "model_class": "longtail"})


@router.post("/setup")
async def setup(request: Request, asked: Setup) -> Response:
    """Accept a connection; the configuration is read again with each prediction."""
    if asked.schema_:
        read_configuration(asked.schema_)
    return answer({"model_version": get_service(request).snapshot.version})


@router.post("/predict")
async def predict(request: Request, asked: Tasks) -> Response:
    """Predict tasks: the best class of each, with its probability as the score."""
    control = read_configuration(asked.label_config)
    service = get_service(request)
    texts = [_read_text(service.snapshot, task, control, i) for i, task in enumerate(asked.tasks)]
    predictions = await service.batcher.submit(texts) if texts else []
    results = []
    for prediction in predictions:
        labels = prediction.predicted
        results.append(
            {
                "model_version": prediction.snapshot.version,
                "score": prediction.values[0] if prediction.values else 0.0,
                "none": prediction.none,
                "result": [_as_region(control, [str(label) for label in labels])] if labels else [],
            }
        )
    return answer({"results": results})


@router.post("/webhook")
async def webhook(request: Request, asked: Event) -> Response:
    """Teach an annotation that was made; other events are acknowledged."""
    if asked.action != "ANNOTATION_CREATED" or not asked.task or not asked.annotation:
        return answer({"status": "ignored"})
    configuration = str((asked.project or {}).get("label_config", ""))
    control = read_configuration(configuration) if configuration else None
    labels = _read_labels(asked.annotation)
    if not labels:
        return answer({"status": "ignored"})
    snapshot = get_service(request).snapshot
    text = _read_text(snapshot, asked.task, control, 0)
    try:
        document = TaughtDocument(text=text, labels=list(labels))
    except ValueError:
        raise Problem(422, "The annotation has a text or a label that cannot be taught.") from None
    texts, checked = read_documents(snapshot, [document])
    made = ChangeRequest(version=ANY_VERSION, by="Label Studio")
    return await make_change(request, made, "teach", texts, checked)


def read_configuration(text: str) -> Control:
    """Return the control for classes of a labelling configuration.

    Raises
    ------
    Problem
        422 where it is not XML, or has no Choices or Taxonomy for a Text.
    """
    if re.search(r"<!(DOCTYPE|ENTITY)", text, re.IGNORECASE):  # entities could grow without bound
        raise Problem(422, "The labelling configuration may not have a DOCTYPE.")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, RecursionError):
        raise Problem(422, "The labelling configuration is not XML.") from None
    fields = {
        element.get("name", ""): element.get("value", "").lstrip("$")
        for element in root.iter()
        if element.tag in ("Text", "HyperText", "Paragraphs")
    }
    for element in root.iter():
        kind, target = str(element.tag).lower(), element.get("toName", "")
        if kind in _CONTROLS and target in fields:
            name = element.get("name", "")
            return Control(name=name, kind=kind, object_name=target, field=fields[target])
    raise Problem(422, "The labelling configuration has no Choices or Taxonomy for a Text.")


def _read_text(
    snapshot: Snapshot, task: dict[str, Any], control: Control | None, document: int
) -> str:
    """Return the text of a task: of the columns of the fit, where it shows one and has them all."""
    data = task.get("data")
    data = data if isinstance(data, dict) else {}
    columns = snapshot.text_columns
    is_shown = control is None or control.field in columns
    needed = any if snapshot.fields is not None else all  # values of a record may be missing
    text: Any
    if is_shown and needed(name in data for name in columns):
        [text] = as_texts(snapshot, [data])
    elif control is not None:
        text = data.get(control.field)
    else:
        text = next((value for value in data.values() if isinstance(value, str)), None)
    if not isinstance(text, str) or len(text) > MAX_CHARACTERS:
        raise Problem(
            422,
            f"task {document} has no text of at most {MAX_CHARACTERS:,} characters.",
            document=document,
        )
    return text


def _as_region(control: Control, labels: list[str]) -> dict[str, Any]:
    """Return labels as Label Studio holds them; a taxonomy has paths."""
    held: list[Any] = [[label] for label in labels] if control.kind == "taxonomy" else list(labels)
    return {
        "from_name": control.name,
        "to_name": control.object_name,
        "type": control.kind,
        "value": {control.kind: held},
    }


def _read_labels(annotation: dict[str, Any]) -> list[str]:
    """Return the classes of an annotation; of a taxonomy the last of each path."""
    labels: list[str] = []
    regions = annotation.get("result")
    for region in regions if isinstance(regions, list) else ():
        value = region.get("value") if isinstance(region, dict) else None
        if not isinstance(value, dict):
            continue
        for kind in _CONTROLS:
            held = value.get(kind)
            for entry in held if isinstance(held, list) else ():
                last = entry[-1] if isinstance(entry, list) and entry else entry
                if isinstance(last, str):
                    labels.append(last)
    return list(dict.fromkeys(labels))
