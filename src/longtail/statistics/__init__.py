"""Class statistics: additive sums per class, and what the whole corpus shares.

========== ===========================================================
`classes`  `ClassStatistics`: the sum of the documents of each class
`checks`   class ids, sums that fit, invariants of the arrays
`editing`  classes moved, gathered, merged, left out; terms added
`corpus`   `Corpus`: document frequencies, idf, collection counts
========== ===========================================================
"""

from longtail.statistics.classes import ClassStatistics
from longtail.statistics.corpus import Corpus

__all__ = ["ClassStatistics", "Corpus"]
