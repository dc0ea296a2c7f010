"""The audit trail: who tried to change what, when, and what came of it.

In: a caller, an action and its outcome. Out: one line of JSON each, appended to a file that only
its owner may read, or to the log ``longtail.serve.audit``. Texts and tokens are not in it; the
journal has the texts of what was accepted.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longtail.serve.access import Caller

_LOGGER = logging.getLogger("longtail.serve.audit")


class AuditTrail:
    """Appends lines to a file, or to the log.

    Parameters
    ----------
    path : Path or None
        The file; None is the log.
    """

    def __init__(self, path: Path | None) -> None:
        self._file: int | None = None
        if path is not None:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def record(self, caller: Caller, action: str, outcome: str, **details: Any) -> None:
        """Append one line: outcome is "done" or the reason of a refusal."""
        entry = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "by": caller.name or None,
            "from": caller.address,
            "action": action,
            "outcome": outcome,
            **details,
        }
        line = json.dumps(entry)  # ASCII: nothing in it steers a terminal
        if self._file is None:
            _LOGGER.info(line)
        else:
            os.write(self._file, line.encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
