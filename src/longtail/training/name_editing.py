"""An edit of a `LongTailState`: the text by which a class is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from longtail._columns import as_labels
from longtail._validation import look_up
from longtail.scoring.names import ClassNames
from longtail.sparse import CountMatrix, stack_rows
from longtail.training.editing import add_class, invert
from longtail.training.long_tail import LongTailState
from longtail.training.long_tail_editing import derive, merge_segments


def set_name(
    state: LongTailState, label: Any, row: CountMatrix | None, n_jobs: int | None = None
) -> LongTailState:
    """Give a class another text, of which the counts are given; None takes it away.

    A label that is no class becomes one without documents; a class that loses its text and has no
    documents disappears.

    Raises
    ------
    ValueError
        If the label is of another kind than the classes.
    """
    state = merge_segments(state, n_jobs)
    edit = add_class(state.classes, state.statistics, label)
    before = ClassNames.none(len(state.classes)) if state.names is None else state.names
    given = ClassNames.none(1)
    if row is not None:
        given = ClassNames.of(row, state.current_corpus)
    sources = edit.sources.copy()
    sources[look_up(edit.classes, as_labels([label]))] = len(state.classes)
    names = stack_rows([before, given]).gather(sources)
    kept = np.flatnonzero((edit.statistics.class_sizes > 0) | names.named)
    return derive(
        replace(
            state,
            classes=edit.classes[kept],
            statistics=edit.statistics.gather(kept),
            residuals=state.residuals.gather(edit.sources[kept]),
            stale=np.append(state.stale, False)[edit.sources[kept]],
            names=names.gather(kept) if names.named.any() else None,
            memory=None
            if state.memory is None
            else state.memory.move_classes(invert(edit.sources[kept], len(state.classes))),
        ),
        n_jobs,
        edit.sources[kept],
    )
