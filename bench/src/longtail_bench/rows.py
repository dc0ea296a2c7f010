"""Results of runs: one Row each, kept as lines of JSON that an interruption cannot damage."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from longtail.datasets import DataFormatError
from longtail.metrics.classes import FrequencyBand
from longtail.metrics.label_sets import LabelBand

_NAN = math.nan

OK, FAILED, TIME_OUT, MEMORY, NO_ENVIRONMENT = "ok", "failed", "time", "memory", "environment"
TEST, HELD_OUT = "test", "held-out"
_OLD_NAMES = {  # of fields, in files written by earlier versions
    "part": "split",
    "fit_processor_seconds": "fit_cpu_seconds",
    "predict_processor_seconds": "predict_cpu_seconds",
}


@dataclass(frozen=True)
class Row:
    """Figures of one system on one data set, and their cost.

    Shares are from 0 to 1, times in seconds; all are NaN where `error` says why there are none.
    """

    system: str
    data: str
    seed: int  # decides every random draw of the system
    # What was predicted: the test documents, or training documents held out for a search of
    # settings.
    split: str = TEST
    # Parameters that were asked for, beside seed and threads.
    settings: dict[str, Any] = field(default_factory=dict)
    # All parameters with which it ran; empty where it did not get so far.
    parameters: dict[str, Any] = field(default_factory=dict)
    # Sizes of the data.
    n_train: int = 0
    n_test: int = 0
    n_classes: int = 0
    n_terms: int = 0
    n_unlabelled: int = 0  # training documents that were left out because they have no label
    fractions: bool = False  # whether the values of the data are not all whole numbers
    # Share of predicted documents whose true class is ranked first, or is one of the first five. A
    # system that gives one class has NaN for the second.
    accuracy: float = _NAN
    # Mean of the per-class F1; the paper's harmonic mean of macro precision and macro recall.
    macro_f1: float = _NAN
    macro_f1_of_means: float = _NAN
    top_5: float = _NAN
    # From counts to a fitted system, weighting of terms included, conversion into a peer's file
    # format not: on the clock, and of the processor over all threads and processes.
    fit_seconds: float = _NAN
    fit_cpu_seconds: float = _NAN
    # All documents in one call, likewise.
    predict_seconds: float = _NAN
    predict_cpu_seconds: float = _NAN
    conversion_seconds: float = 0.0  # on the clock, for both: what was left out
    warmup_seconds: float = _NAN  # spent on compiling before anything was measured
    # Largest memory of all processes of the system together, from start to end: interpreter,
    # libraries, data, compiler.
    peak_megabytes: float = _NAN
    model_bytes: int = 0  # size of the fitted model when it is stored
    bands: tuple[FrequencyBand, ...] = ()  # results by number of training documents of a class
    # What documents with label sets are measured by, such as ``P@5``; empty for the others, whose
    # measures are above.
    measures: dict[str, float] = field(default_factory=dict)
    # Results by number of training documents of a class, where documents have label sets.
    label_bands: tuple[LabelBand, ...] = ()
    outcome: str = OK  # "ok", "failed", "time", "memory" or "environment"
    error: str | None = None  # why there are no results
    n_threads: int = 0  # threads that the system was given
    # Seconds and megabytes after which a run is stopped.
    time_limit: float = _NAN
    memory_limit: float = _NAN
    # Number of settings from which these were chosen on held-out documents; 0 if none were tried.
    tuned: int = 0
    data_digest: str = ""  # start of the SHA-256 of the counts
    # Packages, and what ran them.
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Any, ...]:
        """Key that two rows of the same run share."""
        settings = json.dumps(self.settings, sort_keys=True)
        return (
            self.data,
            self.data_digest,
            self.split,
            self.system,
            self.seed,
            self.n_threads,
            self.tuned > 0,
            settings,
        )

    def to_json(self) -> str:
        """Return one line; what is not known is null."""
        return json.dumps(_without_nan(asdict(self)), ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Row:
        """Return the row of a line; a field that this version does not know is left out."""
        values = json.loads(line)
        if not isinstance(values, dict) or not {"system", "data", "seed"} <= set(values):
            raise ValueError("no result of a benchmark")
        values = {_OLD_NAMES.get(name, name): value for name, value in values.items()}
        known = {item.name: values[item.name] for item in fields(cls) if item.name in values}
        for item in fields(cls):
            if item.type == "float" and known.get(item.name, 0) is None:
                known[item.name] = _NAN
        bands, label_bands = known.get("bands") or (), known.get("label_bands") or ()
        known["bands"] = tuple(FrequencyBand(**_with_nan(band)) for band in bands)
        known["label_bands"] = tuple(LabelBand(**_with_nan(band)) for band in label_bands)
        known["measures"] = _with_nan(known.get("measures") or {})
        return cls(**known)


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    """Read the rows of a file.

    Parameters
    ----------
    path : str or path-like
        Lines of JSON. A last line without an end is what an interruption leaves, and is not a row.

    Raises
    ------
    DataFormatError
        If another line is no row: which, and why.
    """
    lines = Path(path).read_bytes().split(b"\n")[:-1]  # what follows the last newline is torn
    rows = []
    for line_number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            rows.append(Row.from_json(line.decode("utf-8")))
        except (ValueError, TypeError) as error:
            raise DataFormatError(
                path, f"this is no row of results: {error}", line_number
            ) from error
    return rows


def append_row(path: str | os.PathLike[str], row: Row) -> None:
    """Add one row at the end of a file; on any error the file is left with its rows as they were.

    A torn last line is cut off first.

    Raises
    ------
    OSError
        If it cannot be written: the file, why, and that the rows in it are intact.
    """
    file_path = Path(path)
    try:
        # No buffer: it would try again, when the file is closed, to write what failed.
        with file_path.open("ab+", buffering=0) as file:
            end = _end_of_rows(file)
            file.truncate(end)
            try:
                _write_all(file.fileno(), row.to_json().encode("utf-8") + b"\n")
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise
    except OSError as error:
        reason = error.strerror or error
        raise OSError(
            f"cannot write to {file_path}: {reason}; the rows in it are intact"
        ) from error


def _with_nan(values: dict[str, Any]) -> dict[str, Any]:
    """Return values from JSON, where null stands for NaN."""
    return {name: _NAN if value is None else value for name, value in values.items()}


def _write_all(descriptor: int, data: bytes) -> None:
    """Write until nothing is left; a full disk takes a part first and fails then."""
    while data:
        data = data[os.write(descriptor, data) :]


def _without_nan(value: Any) -> Any:
    """Return a value with None for each NaN in it, which JSON does not know."""
    if isinstance(value, dict):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _end_of_rows(file: Any) -> int:
    """Return the position after the last newline of an open file."""
    end: int = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - 65536)
        file.seek(start)
        block = file.read(end - start)
        if (file_path := block.rfind(b"\n")) >= 0:
            return start + int(file_path) + 1
        end = start
    return 0
