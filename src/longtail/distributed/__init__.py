"""Fit and predict over partitions: beyond memory, beyond one machine, the same bits.

==================== ======================================================================
`fit_partitions`     fits an estimator on files or functions, here, in processes or on Dask
`predict_partitions` predicts them with a model file, each into a file of its own
`CountFile`          svmlight files; tables of text are `longtail.datasets.Table`
`TaskReport`         what a task has cost
==================== ======================================================================

Every task is a pure function of paths; its result is a file on a scratch path, named by the hash of
what it was computed from. Nothing is pinned to a worker, nothing is kept in one, and what is there
is not computed again.

`fitting` has the order: `partitions` become blocks of counts (`tables_to_blocks`, `blocks`,
`class_text_files`), on which `on_disk` runs `training.pipeline`, and `double_sampling_blocks` the
paper's fit. `stages` runs the tasks of a stage, `tasks` one of them, `task_results` has its file;
`memory_plan` says how large blocks and shards may be. `predicting` needs none of this but tasks.
"""

from longtail.datasets.records import CountFile
from longtail.distributed.fitting import fit_partitions
from longtail.distributed.predicting import predict_partitions
from longtail.distributed.tasks import TaskReport
from longtail.exceptions import MemoryLimitError, PartitionError

__all__ = [
    "CountFile",
    "MemoryLimitError",
    "PartitionError",
    "TaskReport",
    "fit_partitions",
    "predict_partitions",
]
