"""Teaching: a model file that people correct, with effect at once and nothing lost.

`teacher`    `Teacher`: one method for each kind of change
`opening`    `load`; a model file with its journal, and what other processes did to them
`log`        changes as numbers, and as rows of a journal
`refiner`    refining in the background
`refined`    what a `refine` learned, in a file of its own until the journal is folded in
`versions`   changes made against a version; followers of a journal
`documents`  documents and labels as a caller gives them
"""

from longtail.teaching.opening import load
from longtail.teaching.teacher import Teacher

__all__ = ["Teacher", "load"]
