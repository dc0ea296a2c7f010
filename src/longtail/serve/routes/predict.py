"""`/v1/predict`, `/v1/explain` and `/v1/threshold`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from longtail.serve import explanations
from longtail.serve.class_details import find_row
from longtail.serve.context import Service, answer, get_service
from longtail.serve.document_texts import as_texts
from longtail.serve.guard import STREAMED
from longtail.serve.highlights import new_words
from longtail.serve.predictions import Prediction, find_nodes, find_threshold
from longtail.serve.predictions import predict as predictions_of
from longtail.serve.problems import RESPONSES, Problem, describe_invalid, encode_json
from longtail.serve.schemas import (
    MAX_CHARACTERS,
    ExplainRequest,
    ExplainResponse,
    PredictRequest,
    PredictResponse,
    Text,
    ThresholdResponse,
)

STREAM_BATCH = 128  # lines of a stream that are predicted together
_STREAM_CHARACTERS = 1 << 19  # of the lines that wait for a batch, so that a stream takes few MB
_LONGEST_LINE = 12 * MAX_CHARACTERS + 1_000  # bytes; a character takes at most 12 in JSON
_TEXT = TypeAdapter(Text)

router = APIRouter(responses=RESPONSES)


@router.post(
    "/v1/predict",
    response_model=PredictResponse,
    openapi_extra={
        "requestBody": {
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/PredictRequest"}},
                STREAMED: {
                    "schema": {
                        "type": "string",
                        "description": "A JSON string, or an object with the columns of the fit or "
                        "`text`, in each line.",
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
    each: Annotated[bool, Query(description="Of a stream.")] = False,
) -> Response:
    """Classify texts: candidates, probabilities, and the labels at a precision.

    As `application/x-ndjson` any number of texts is taken, one in each line; the answer has a line
    for each, while the rest is still coming in.
    """
    service = get_service(request)
    kind = request.scope["longtail.body_type"]  # as the guard read it, which bounds the others
    if kind == STREAMED:
        return _LinesResponse(_answer_lines(service, request, k, (precision, each)))
    if kind != "application/json":
        raise Problem(415, f"Send application/json, or {STREAMED} to stream.")
    asked = _parse(await request.body())
    texts = as_texts(service.snapshot, asked.documents)
    if asked.limits:
        predictions = await _predict_limited(service, texts, asked.limits)
    else:
        predictions = await service.batcher.submit(texts)
    snapshot = predictions[0].snapshot
    sure = find_threshold(snapshot, asked.precision, asked.each)
    results = [prediction.as_dict(asked.k, sure) for prediction in predictions]
    if asked.back_off is not None:
        find = partial(find_nodes, snapshot, texts, asked.back_off, asked.limits)
        nodes = await _read(service, find)
        for result, node in zip(results, nodes, strict=True):
            result["node"] = node
    if asked.new_words:
        vocabulary = snapshot.model.vocabulary_
        unknown = await service.reading.run(new_words, vocabulary, texts)
        for result, some in zip(results, unknown, strict=True):
            result["new_words"] = some
    body = None if sure is None else sure.as_dict()
    return answer({"version": snapshot.version, "threshold": body, "results": results})


async def _predict_limited(
    service: Service, texts: list[str], limits: dict[str, Any]
) -> list[Prediction]:
    """Predict among some classes, in a call of its own that joins no batch."""
    found: list[Prediction] = await _read(
        service, partial(predictions_of, service.snapshot, texts, **limits)
    )
    return found


async def _read(service: Service, function: Callable[[], Any]) -> Any:
    """Run a reader of the model; a ValueError is the fault of the request."""
    try:
        return await service.reading.run(function)
    except ValueError as error:
        raise Problem(422, str(error)) from None


@router.post("/v1/explain", response_model=ExplainResponse)
async def explain(request: Request, asked: ExplainRequest) -> Response:
    """Say why a text gets a class: its score in terms and features, beside the runner-up's."""
    service = get_service(request)
    snapshot = service.snapshot
    label = None
    if asked.label is not None:
        row = find_row(snapshot, asked.label)
        if row is None:
            raise Problem(422, "The model has no class with this label.")
        [label] = snapshot.classes[row : row + 1].tolist()  # in the type that the model has
    [text] = as_texts(snapshot, [asked.text])
    found = await service.reading.run(explanations.explain, snapshot, text, label, asked.top_terms)
    return answer(found)


@router.get("/v1/threshold", response_model=ThresholdResponse)
async def threshold(
    request: Request,
    precision: Annotated[float, Query(gt=0, lt=1, description="What is to be reached.")],
    each: Annotated[
        bool, Query(description="Whether each prediction must be that probable.")
    ] = False,
) -> Response:
    """Say from which probability on predictions reach a precision, and how many these are."""
    service = get_service(request)
    snapshot = service.snapshot
    found = await service.reading.run(find_threshold, snapshot, precision, each)
    if found is None:
        raise Problem(422, "This model has no probabilities.")
    return answer({"version": snapshot.version, **found.as_dict()})


class _LinesResponse(Response):
    """Lines that are sent while the body still comes in.

    Starlette's own streaming response reads from the body to notice that the client has gone.
    """

    media_type = STREAMED

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
    service: Service, request: Request, k: int, wanted: tuple[float | None, bool]
) -> AsyncIterator[bytes]:
    """Yield an answer for each line of a stream, a batch at a time.

    `wanted` is the precision, and whether each label must have it.
    """
    batch: list[str | Problem] = []
    n_characters = 0
    async for line in _split_lines(request):
        text = line if isinstance(line, Problem) else _read_line(service, line)
        batch.append(text)
        n_characters += len(text) if isinstance(text, str) else 0
        if len(batch) == STREAM_BATCH or n_characters > _STREAM_CHARACTERS:
            yield await _answer_batch(service, batch, k, wanted)
            batch, n_characters = [], 0
    if batch:
        yield await _answer_batch(service, batch, k, wanted)


async def _answer_batch(
    service: Service, batch: list[str | Problem], k: int, wanted: tuple[float | None, bool]
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
            sure = find_threshold(prediction.snapshot, *wanted)
            body = prediction.as_dict(k, sure) | {"version": prediction.snapshot.version}
        lines.append(encode_json(body))
    return b"\n".join([*lines, b""])


def _read_line(service: Service, line: bytes) -> str | Problem:
    """Return the text of a line, or what is wrong with it."""
    snapshot = service.snapshot
    try:
        value = json.loads(line)
        [text] = as_texts(snapshot, [value]) if isinstance(value, dict) else [value]
        checked: str = _TEXT.validate_python(text, strict=True)
        checked.encode("utf-8")
        return checked
    except (ValueError, RecursionError, Problem):
        expected = " and ".join(snapshot.text_columns)
        return Problem(
            422, f"A line must be a JSON string, or an object with {expected}, of at most "
            f"{MAX_CHARACTERS:,} characters."
        )  # fmt: skip


async def _split_lines(request: Request) -> AsyncIterator[bytes | Problem]:
    """Yield the lines of a body as they come; one that is too long is dropped."""
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
