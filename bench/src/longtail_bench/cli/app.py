"""All commands of `longtail bench`, for its entry point."""

from __future__ import annotations

from longtail_bench.cli.bench import bench
from longtail_bench.cli.honesty import honesty
from longtail_bench.cli.speed import growth, speed

__all__ = ["bench"]

for command in (speed, growth, honesty):
    bench.command()(command)
