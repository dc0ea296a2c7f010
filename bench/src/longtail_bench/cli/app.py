"""All commands of `longtail bench`, for its entry point."""

from __future__ import annotations

from longtail_bench.cli.bench import bench
from longtail_bench.cli.honesty import honesty
from longtail_bench.cli.scale import scale
from longtail_bench.cli.serving import serve
from longtail_bench.cli.speed import cold_start, growth, speed
from longtail_bench.cli.stream import stream
from longtail_bench.cli.workers import workers

__all__ = ["bench"]

for command in (speed, growth, scale, workers, cold_start, honesty, serve, stream):
    bench.command()(command)
