"""All commands of `longtail bench`, for its entry point."""

from __future__ import annotations

from longtail_bench.cli.bench import bench
from longtail_bench.cli.beyond_memory import beyond_memory
from longtail_bench.cli.embeddings import embeddings
from longtail_bench.cli.honesty import honesty
from longtail_bench.cli.published import published
from longtail_bench.cli.scale import scale
from longtail_bench.cli.sentences import sentences
from longtail_bench.cli.serving import serve
from longtail_bench.cli.speed import cold_start, growth, speed
from longtail_bench.cli.stream import stream
from longtail_bench.cli.taxonomy import taxonomy
from longtail_bench.cli.workers import workers

__all__ = ["bench"]

COMMANDS = (
    *(speed, growth, scale, workers, beyond_memory, cold_start, honesty, serve, stream),
    *(published, taxonomy, embeddings, sentences),
)

for command in COMMANDS:
    bench.command()(command)
