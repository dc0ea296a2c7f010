"""The tables of ``docs/model-format.md``, written from the schema."""

from __future__ import annotations

import numpy as np

from longtail.store.checks import RULES, describe
from longtail.store.schema import (
    CLASS_LABELS,
    CLASS_TEXTS,
    DOUBLE_SAMPLING,
    DOUBLE_SAMPLING_VALUES,
    FEATURE_NAMES_IN,
    INDEX,
    LONG_TAIL,
    LONG_TAIL_VALUES,
    NODE_LABELS,
    PARAMETERS,
    STATE_VALUES,
    STATISTICS,
    TEXT,
    TEXT_VALUES,
)
from longtail.store.specs import LARGEST_FLOAT, ArraySpec, LabelSpecs, ValueSpec


def _forms(labels: LabelSpecs) -> tuple[ArraySpec, ...]:
    """Return the arrays of all forms of labels."""
    return labels.numeric, *(array for texts in labels.texts for array in texts.arrays)


_LABELS = (*_forms(CLASS_LABELS), *FEATURE_NAMES_IN.arrays)
_GROUPS: tuple[tuple[str, tuple[ArraySpec, ...], tuple[ValueSpec, ...]], ...] = (
    ("Every estimator", (*STATISTICS, *_LABELS, *INDEX), STATE_VALUES),
    ("`LongTailClassifier`", (*LONG_TAIL, *_forms(NODE_LABELS)), LONG_TAIL_VALUES),
    ("`DoubleSamplingClassifier`", DOUBLE_SAMPLING, DOUBLE_SAMPLING_VALUES),
    ("`TextClassifier`, beside those of its classifier", (*TEXT, *CLASS_TEXTS.arrays), TEXT_VALUES),
)


def format_tables() -> str:
    """Return all tables as Markdown, as they stand in the page between its two marks."""
    lines = []
    for title, arrays, values in _GROUPS:
        lines += [f"#### {title}", "", "| array | dtype | shape | values |", "|---|---|---|---|"]
        lines += [_array_row(spec) for spec in arrays]
        if values:
            lines += ["", "| value | must be | what |", "|---|---|---|"]
            lines += [f"| `{spec.name}` | {describe(spec)} | {spec.meaning} |" for spec in values]
        lines.append("")
    lines += ["#### Parameters of the estimators", "", "| parameter | must be |", "|---|---|"]
    lines += [
        f"| `{kind}` `{spec.name}` | {describe(spec)} |"
        for kind, specs in PARAMETERS.items()
        for spec in specs
    ]
    lines += ["", "#### Rules between them", "", *(f"- {rule.statement}" for rule in RULES)]
    return "\n".join(lines) + "\n"


def _array_row(spec: ArraySpec) -> str:
    """Return the row of one array."""
    dtypes = ", ".join(np.dtype(code).name for code in spec.dtypes.split())
    shape = spec.shape.replace("|", "\\|")
    return f"| `{spec.name}` | {dtypes} | ({shape}) | {spec.meaning}{_condition(spec)} |"


def _condition(spec: ArraySpec) -> str:
    """Return what holds for the values, in words."""
    parts = []
    if spec.ids:
        parts.append(f"{'-1' if spec.low == -1 else '0'} to {spec.ids} - 1")
    elif spec.offsets:
        parts.append(f"from 0 to {spec.offsets}" + ("" if spec.order else ", never falling"))
    elif spec.dtypes != "b1":
        low = f"at least {spec.low:g}" if spec.low > -LARGEST_FLOAT else ""
        high = f"at most {spec.high:g}" if spec.high < LARGEST_FLOAT else ""
        parts += [text for text in (low, high) if text]
    if spec.least_nonzero:
        parts.append(f"0 or at least {spec.least_nonzero:g}")
    if spec.order:
        parts.append(spec.order + (" within each row" if spec.rows else ""))
    if spec.optional:
        parts.append("may be missing")
    return f" ({'; '.join(parts)})" if parts else ""
