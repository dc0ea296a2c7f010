"""`longtail bench serve`: load and faults of the service, over the loopback interface alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.options import AsJson
from longtail.cli.show import clear_errors, print_json, print_note, print_table


def serve(
    model: Annotated[Path, typer.Argument(help="A model file that takes texts.")],
    texts: Annotated[Path, typer.Argument(help="Texts to ask with, one a line.")],
    rate: Annotated[float, typer.Option(min=1, help="Requests per second.")] = 100.0,
    requests: Annotated[int, typer.Option(min=100, help="Of each measurement.")] = 2_000,
    connections: Annotated[int, typer.Option(min=1, help="At the same time.")] = 200,
    memory_requests: Annotated[int, typer.Option(min=0, help="While memory is watched.")] = 20_000,
    kills: Annotated[int, typer.Option(min=0, help="Services killed while they are taught.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the moments of the kills.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure the service: latency, throughput, connections, slow clients, memory, kills."""
    from longtail_bench import serving

    with clear_errors():
        lines = [line for line in texts.read_text("utf-8").splitlines() if line.strip()]
        if not lines:
            raise ValueError(f"{texts} has no texts.")
        report: dict[str, Any] = {}
        with serving.running(model) as service:
            serving.measure_latency(service.port, lines, rate, 100)  # warm up
            start = service.cpu_seconds()
            report["latency ms"] = serving.measure_latency(service.port, lines, rate, requests)
            # CPU time says what the service needs where other work is beside it.
            middle = service.cpu_seconds()
            report["CPU ms a request"] = (middle - start) / requests * 1e3
            batches = max(1, requests // 10)
            report["documents/s in batches of 32"] = serving.measure_throughput(
                service.port, lines, 32, batches, 4
            )
            used = service.cpu_seconds() - middle
            report["CPU ms a document in batches"] = used / (32 * batches) * 1e3
            report[f"{connections} connections"] = serving.count_statuses(
                service.port, lines, connections, max(1, requests // connections)
            )
            with serving.slow_clients(service.port, 50):
                report["latency ms beside 50 slow clients"] = serving.measure_latency(
                    service.port, lines, rate, min(requests, int(rate * 8))
                )
            if memory_requests:
                report["resident MB"] = serving.measure_memory(service, lines, memory_requests)
        if kills:
            print_note("killing services while they are taught")
            report["kills"] = serving.kill_while_teaching(model, lines, kills, seed)
        if as_json:
            print_json(report)
            return
        print_table("longtail serve", ("", "measured"), [(k, _show(v)) for k, v in report.items()])


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_show(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_show, value))
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
