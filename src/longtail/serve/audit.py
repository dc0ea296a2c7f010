"""The audit trail: who tried to change what, when, and with what outcome.

In: a caller, an action and its outcome. Out: lines of JSON, appended to a file that only its owner
may read, or to the log ``longtail.serve.audit``: one before a change, without which there is none,
and one for what came of it. Texts and tokens are not in it; the journal has the texts of what was
accepted. Refusals of clients without a token are recorded so often a minute, then only counted:
they come from outside, and the disk is ours.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longtail.serve.access import Caller

_LOGGER = logging.getLogger("longtail.serve.audit")
MAX_REFUSALS = 20  # lines a minute; at 250 bytes they are 7 MB a day


class AuditTrail:
    """Appends lines to a file, or to the log.

    `on_lost` is told why a line is missing: "failed" or "too many".
    """

    def __init__(
        self, path: Path | None, on_lost: Callable[[str], None] = lambda reason: None
    ) -> None:
        self._file: int | None = None
        self._on_lost, self._is_torn = on_lost, False
        self._minute, self._n_refused = 0, 0
        if path is not None:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def begin(self, caller: Caller, action: str, **details: Any) -> None:
        """Append a line for a change that is about to be made.

        Raises
        ------
        OSError
            If it cannot be written; then the change must not be made.
        """
        try:
            self._write(caller, action, "begun", details)
        except OSError:
            self._on_lost("failed")
            raise

    def record(self, caller: Caller, action: str, outcome: str, **details: Any) -> None:
        """Append the outcome of a change; what cannot be written is logged and counted."""
        try:
            self._write(caller, action, outcome, details)
        except OSError as error:
            _LOGGER.error("the audit trail cannot be written: %s", error)
            self._on_lost("failed")

    def record_refusal(self, caller: Caller, action: str, reason: str) -> None:
        """Append a request that was refused, unless there were many in this minute."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            n_lost, self._minute, self._n_refused = self._n_refused - MAX_REFUSALS, minute, 0
            if n_lost > 0:
                nobody = Caller("", "", False)
                self.record(nobody, "refusals", f"{n_lost} more were refused and not recorded")
        self._n_refused += 1
        if self._n_refused <= MAX_REFUSALS:
            self.record(caller, action, reason)
        else:
            self._on_lost("too many")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self, caller: Caller, action: str, outcome: str, details: dict[str, Any]) -> None:
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
            return
        written = (b"\n" if self._is_torn else b"") + line.encode() + b"\n"
        n_written = os.write(self._file, written)
        self._is_torn = n_written < len(written)
        if self._is_torn:
            raise OSError(errno.ENOSPC, "a line was written in part")
