"""Teaching: a model file that people correct, with effect at once and nothing lost.

`teacher`     `Teacher`: one method for each kind of change
`opening`     `load`; a model file with its journal, and what other processes did to them
`snapshots`   the model after some change, kept to open it sooner
`replay`      what a change does to a model, and a journal
`runs`        changes in a row that teach or forget, applied together
`versions`    changes made against a version; followers of a journal
`documents`   documents and labels as a journal holds them
"""

from longtail.teaching.opening import load
from longtail.teaching.teacher import Teacher

__all__ = ["Teacher", "load"]
