"""What a model holds as a whole, whichever of its two segments has a class.

In: a `LongTailState`. Out: sums and sizes of classes, without building an index.
"""

from __future__ import annotations

import numpy as np

from longtail.sparse import Integers
from longtail.statistics.classes import ClassStatistics
from longtail.statistics.editing import splice_classes
from longtail.training.long_tail import LongTailState


def merged_statistics(state: LongTailState) -> tuple[ClassStatistics, Integers]:
    """Return the sums of all classes, and each class's row in the main segment (-1 for none)."""
    if state.delta is None:
        return state.statistics, np.arange(len(state.classes))
    every_class = np.arange(len(state.delta.all_classes))
    return gather_statistics(state, every_class), state.delta.find_in_main()


def gather_statistics(state: LongTailState, class_ids: Integers) -> ClassStatistics:
    """Return the sums of some classes, whichever segment has them.

    The document frequencies are those of all documents.
    """
    main, delta = state.statistics, state.delta
    if delta is None:
        return main.gather(class_ids)
    in_main, in_delta = delta.find_in_main()[class_ids], delta.find_in_delta()[class_ids]
    return splice_classes(main, delta.statistics, in_main, in_delta)


def merged_class_sizes(state: LongTailState) -> Integers:
    """Return the number of documents of each class; unlike their sums at once."""
    delta = state.delta
    if delta is None:
        return state.statistics.class_sizes
    of_main: Integers = np.append(state.statistics.class_sizes, 0)[delta.find_in_main()]
    of_delta: Integers = np.append(delta.statistics.class_sizes, 0)[delta.find_in_delta()]
    return of_main + of_delta
