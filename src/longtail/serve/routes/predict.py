"""`/v1/predict`, `/v1/explain` and `/v1/threshold`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from longtail.serve import explanations
from longtail.serve.class_details import find_row
from longtail.serve.context import Service, answer, get_service, in_thread
from longtail.serve.guard import STREAMED
from longtail.serve.highlights import new_words
from longtail.serve.predictions import Prediction, as_json, find_threshold, threshold_as_json
from longtail.serve.problems import RESPONSES, Problem, describe_invalid
from longtail.serve.schemas import (
    MOST_CHARACTERS,
    ExplainRequest,
    ExplainResponse,
    PredictRequest,
    PredictResponse,
    Text,
    ThresholdResponse,
)

STREAM_BATCH = 128  # lines of a stream that are predicted together
_LONGEST_LINE = 12 * MOST_CHARACTERS + 1_000  # bytes; a character takes at most 12 in JSON
_TEXT = TypeAdapter(Text)
_MEDIA_TYPE = STREAMED.decode()

router = APIRouter(responses=RESPONSES)


@router.post(
    "/v1/predict",
    response_model=PredictResponse,
    openapi_extra={
        "requestBody": {
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/PredictRequest"}},
                _MEDIA_TYPE: {
                    "schema": {
                        "type": "string",
                        "description": "A JSON string, or an object with `text`, in each line.",
                    }
                },
            },
            "required": True,
        }
    },
)
async def predict(
    request: Request,
    k: Annotated[int, Query(ge=1, le=100, description="Of a stream.")] = 5,
    precision: Annotated[float | None, Query(gt=0, lt=1, description="Of a stream.")] = None,
) -> Response:
    """Classify texts: candidates, probabilities, and the labels at a precision.

    As `application/x-ndjson` any number of texts is taken, one in each line; the answer has a line
    for each, while the rest is still coming in.
    """
    service = get_service(request)
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == _MEDIA_TYPE:
        return _LinesResponse(_answer_lines(service, request, k, precision))
    if kind != "application/json":
        raise Problem(415, f"Send application/json, or {_MEDIA_TYPE} to stream.")
    asked = _parse(await request.body())
    predictions = await service.batcher.submit(asked.documents)
    snapshot = predictions[0].snapshot
    sure = find_threshold(snapshot, asked.precision)
    results = [as_json(prediction, asked.k, sure) for prediction in predictions]
    if asked.new_words:
        vocabulary = snapshot.model.vocabulary_
        unknown = await in_thread(new_words, vocabulary, asked.documents)
        for result, some in zip(results, unknown, strict=True):
            result["new_words"] = some
    body = None if sure is None else threshold_as_json(sure)
    return answer({"version": snapshot.version, "threshold": body, "results": results})


@router.post("/v1/explain", response_model=ExplainResponse)
async def explain(request: Request, asked: ExplainRequest) -> Response:
    """Say why a text gets a class: its score in terms and features, beside the runner-up's."""
    service = get_service(request)
    snapshot = service.snapshot
    if asked.label is not None and find_row(snapshot, asked.label) is None:
        raise Problem(422, "The model has no class with this label.")
    found = await in_thread(
        explanations.explain, snapshot, asked.text, asked.label, asked.top_terms
    )
    return answer(found)


@router.get("/v1/threshold", response_model=ThresholdResponse)
async def threshold(
    request: Request,
    precision: Annotated[float, Query(gt=0, lt=1, description="What is to be reached.")],
) -> Response:
    """Say from which probability on predictions reach a precision, and how many these are."""
    snapshot = get_service(request).snapshot
    found = await in_thread(find_threshold, snapshot, precision)
    if found is None:
        raise Problem(422, "This model has no probabilities.")
    return answer({"version": snapshot.version, **threshold_as_json(found)})


class _LinesResponse(Response):
    """Lines that are sent while the body still comes in.

    Starlette's own streaming response reads from the body to notice that the client has gone.
    """

    media_type = _MEDIA_TYPE

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._lines = lines

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(head)
        with suppress(ClientDisconnect):
            async for lines in self._lines:
                await send({"type": "http.response.body", "body": lines, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _parse(body: bytes) -> PredictRequest:
    """Return a request from its bytes, which is twice as fast as from parsed JSON."""
    try:
        return PredictRequest.model_validate_json(body)
    except ValidationError as error:
        errors = error.errors(include_input=False, include_url=False, include_context=False)
        raise describe_invalid(errors) from None


async def _answer_lines(
    service: Service, request: Request, k: int, precision: float | None
) -> AsyncIterator[bytes]:
    """Yield an answer for each line of a stream, a batch at a time."""
    batch: list[str | Problem] = []
    async for line in _split_lines(request):
        batch.append(line if isinstance(line, Problem) else _read_line(line))
        if len(batch) == STREAM_BATCH:
            yield await _answer_batch(service, batch, k, precision)
            batch = []
    if batch:
        yield await _answer_batch(service, batch, k, precision)


async def _answer_batch(
    service: Service, batch: list[str | Problem], k: int, precision: float | None
) -> bytes:
    texts = [text for text in batch if isinstance(text, str)]
    try:
        found: list[Prediction] | Problem = await service.batcher.submit(texts) if texts else []
    except Problem as problem:
        found = problem
    predictions = iter(() if isinstance(found, Problem) else found)
    lines = []
    for entry in batch:
        refused = entry if isinstance(entry, Problem) else found
        if isinstance(refused, Problem):
            body: dict[str, Any] = {
                "error": {"status": refused.status_code, "detail": refused.detail}
            }
        else:
            prediction = next(predictions)
            sure = find_threshold(prediction.snapshot, precision)
            body = as_json(prediction, k, sure) | {"version": prediction.snapshot.version}
        lines.append(to_json(body, inf_nan_mode="null"))
    return b"\n".join([*lines, b""])


def _read_line(line: bytes) -> str | Problem:
    """Return the text of a line, or what is wrong with it."""
    try:
        value = json.loads(line)
        text = value.get("text") if isinstance(value, dict) else value
        checked: str = _TEXT.validate_python(text, strict=True)
        checked.encode("utf-8")
        return checked
    except (ValueError, RecursionError):
        return Problem(
            422, "A line must be a JSON string, or an object with text, of at most "
            f"{MOST_CHARACTERS:,} characters."
        )  # fmt: skip


async def _split_lines(request: Request) -> AsyncIterator[bytes | Problem]:
    """Yield the lines of a body as they come; one that is too long is given up, not kept."""
    rest, is_skipped = b"", False
    async for chunk in request.stream():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if is_skipped or len(line) > _LONGEST_LINE:
                yield Problem(413, f"A line may have {_LONGEST_LINE:,} bytes at most.")
            elif line.strip():
                yield line
            is_skipped = False
        if len(rest) > _LONGEST_LINE:
            rest, is_skipped = b"", True
    if is_skipped:
        yield Problem(413, f"A line may have {_LONGEST_LINE:,} bytes at most.")
    elif rest.strip():
        yield rest
