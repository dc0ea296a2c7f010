"""Parts of a service that routes share, found through the application's state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import Request
from starlette.responses import Response

from longtail.exceptions import DocumentError, ModelFileError, VersionConflictError
from longtail.serve.access import Caller
from longtail.serve.audit import AuditTrail
from longtail.serve.batching import Batcher
from longtail.serve.counters import Metrics
from longtail.serve.monitoring import Monitor
from longtail.serve.problems import MODEL_REFUSED, VERSION_MOVED, Problem, busy, encode_json
from longtail.serve.schemas import ANY_VERSION, ChangeRequest
from longtail.serve.served_model import ServedModel, Snapshot
from longtail.serve.settings import Settings
from longtail.serve.workers import Workers
from longtail.teaching.versions import VersionedTeacher


@dataclass(frozen=True)
class Service:
    """The parts of a running service."""

    settings: Settings
    model: ServedModel
    batcher: Batcher
    # Threads for explanations, lists and figures; and for the search of classes, which whoever
    # types asks for with every key.
    reading: Workers
    searching: Workers
    audit: AuditTrail
    metrics: Metrics
    monitor: Monitor

    @property
    def snapshot(self) -> Snapshot:
        """The current model."""
        return self.model.snapshot


def get_service(request: Request) -> Service:
    """Return the service that a request reached.

    Raises
    ------
    Problem
        503 while the model is not loaded.
    """
    service: Service | None = getattr(request.app.state, "service", None)
    if service is None:
        raise busy("The model is being loaded.")
    return service


def get_caller(request: Request) -> Caller:
    """Return who asks."""
    caller: Caller = request.scope["longtail.caller"]
    return caller


def answer(body: Any, status: int = 200) -> Response:
    """Return plain data as JSON; what is not finite becomes null."""
    return Response(encode_json(body), status, media_type="application/json")


# The method of a teacher behind each action, as audit trail and metrics call it.
_METHODS = {
    "teach": "teach",
    "forget": "forget",
    "undo": "undo",
    "rename": "rename_class",
    "merge": "merge_classes",
    "remove": "remove_class",
    "text": "set_class_text",
    "hierarchy": "set_hierarchy",
    "move": "move_class",
}


async def make_change(
    request: Request, asked: ChangeRequest, action: str, *arguments: Any, **options: Any
) -> Response:
    """Make a change in a thread, record who made it, and answer with its number."""
    service, caller = get_service(request), get_caller(request)
    author, version = f"{caller.name}: {asked.by}" if asked.by else caller.name, asked.version
    against = None if version == ANY_VERSION else version

    def change(teacher: VersionedTeacher) -> int:
        change_number: int = getattr(teacher, _METHODS[action])(*arguments, by=author, **options)
        return change_number

    begin_change(request, action, author=author, version=version)
    outcome = "failed"
    try:
        change_number = await service.model.change(change, against)
        outcome = "done"
    except Exception as error:
        problem = describe_refusal(error)
        if problem is None:
            raise
        outcome = problem.detail
        raise problem from None
    finally:
        short = outcome if outcome in ("done", "failed") else "refused"
        service.metrics.changes.labels(action, short).inc()
        done = {"change": change_number} if outcome == "done" else {}
        service.audit.record(caller, action, outcome, author=author, version=version, **done)
    return answer({"change": change_number, "version": service.snapshot.version})


def begin_change(request: Request, action: str, **details: Any) -> None:
    """Record that a change is about to be made.

    Raises
    ------
    Problem
        503 where the audit trail cannot be written: no change without its record.
    """
    try:
        get_service(request).audit.begin(get_caller(request), action, **details)
    except OSError:
        raise Problem(
            503, "The audit trail cannot be written; nothing was changed.", MODEL_REFUSED
        ) from None


def describe_refusal(error: Exception) -> Problem | None:
    """Return the problem that a client is told about an error; None for a fault of ours."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, VersionConflictError):
        return Problem(409, str(error), VERSION_MOVED, version=error.current)
    if isinstance(error, ModelFileError):
        # The path is the server's own business.
        return Problem(503, f"The model or its journal {error.problem}.", MODEL_REFUSED)
    if isinstance(error, DocumentError):
        return Problem(422, str(error), document=error.document)
    if isinstance(error, ValueError | TypeError | KeyError):
        return Problem(422, _sentence(error))
    if isinstance(error, OSError):
        reason = error.strerror or "the disk failed"
        return Problem(503, f"The change could not be recorded: {reason}", MODEL_REFUSED)
    return None


def _sentence(error: Exception) -> str:
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return text.encode("utf-8", "replace").decode("utf-8")[:1_000]
