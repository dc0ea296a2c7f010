"""Other parents of the classes of a fitted model: a state in, a state out."""

from __future__ import annotations

from typing import Any

from longtail._columns import as_labels, show_label
from longtail._validation import look_up
from longtail.model.state import LongTailState
from longtail.taxonomy import read_hierarchy


def set_hierarchy(state: LongTailState, given: Any) -> LongTailState:
    """Return the state with other parents of its classes; None takes them away."""
    hierarchy = None if given is None else read_hierarchy(given, state.all_classes)
    return state.with_hierarchy(hierarchy)


def move_class(state: LongTailState, label: Any, parents: Any) -> LongTailState:
    """Return the state with other parents of one class or inner node."""
    wanted = list(parents) if isinstance(parents, list | tuple | set | frozenset) else [parents]
    hierarchy = state.current_hierarchy
    if hierarchy is None:
        raise ValueError("this model has no hierarchy; give it one with set_hierarchy.")
    [known] = look_up(state.all_classes, as_labels([label])) >= 0
    if not known and hierarchy.find(as_labels([label]))[0] < 0:
        raise ValueError(f"{show_label(label)} is neither a class nor a node of the hierarchy.")
    return state.with_hierarchy(hierarchy.move(label, [p for p in wanted if p is not None]))
