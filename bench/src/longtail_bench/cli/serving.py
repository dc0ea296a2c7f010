"""`longtail bench serve`: load and faults of the service, over the loopback interface alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.shared_options import AsJson
from longtail.cli.show import clear_errors, print_json, print_note, print_table


def serve(
    model: Annotated[Path, typer.Argument(help="A model file that takes texts.")],
    texts: Annotated[Path, typer.Argument(help="Texts to ask with, one a line.")],
    rate: Annotated[float, typer.Option(min=1, help="Requests per second.")] = 100.0,
    requests: Annotated[int, typer.Option(min=100, help="Of each measurement.")] = 2_000,
    windows: Annotated[
        int, typer.Option(min=1, help="In which latency and throughput are measured.")
    ] = 5,
    connections: Annotated[int, typer.Option(min=1, help="At the same time.")] = 200,
    memory_requests: Annotated[int, typer.Option(min=0, help="While memory is watched.")] = 20_000,
    kills: Annotated[int, typer.Option(min=0, help="Services killed while they are taught.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the moments of the kills.")] = 0,
    hostile: Annotated[
        bool, typer.Option("--hostile", help="Measure beside hostile clients, and nothing else.")
    ] = False,
    clients: Annotated[int, typer.Option(min=1, max=500, help="Hostile ones.")] = 200,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="Of the attack.")] = 60.0,
    pause: Annotated[
        float, typer.Option(min=0, help="Seconds a hostile client waits when it was sent away.")
    ] = 0.5,
    as_json: AsJson = False,
) -> None:
    """Measure the service: latency, throughput, connections, slow clients, memory, faults.

    Where other work is beside it, the best window and CPU time say what the service needs.
    """
    from longtail_bench import serving, serving_faults, serving_hostile

    with clear_errors():
        lines = [line for line in texts.read_text("utf-8").splitlines() if line.strip()]
        if not lines:
            raise ValueError(f"{texts} has no texts.")
        report: dict[str, Any] = {"load average of the machine": os.getloadavg()[0]}
        if hostile:
            with serving.running(model) as service:
                report |= serving_hostile.measure_hostile(
                    service, lines, rate, clients, seconds, pause
                )
            _print(report, as_json)
            return
        with serving.running(model) as service:
            load = serving.Load(service, lines, rate, max(20, requests // windows))
            report |= load.measure(windows, connections)
            if memory_requests:
                report["resident MB"] = serving.measure_memory(service, lines, memory_requests)
        if kills:
            print_note("killing services while they are taught")
            report["kills"] = serving_faults.kill_while_teaching(model, lines, kills, seed)
            report["full disk"] = serving_faults.fill_disk(model, lines)
            report["damaged journal"] = serving_faults.damage_journal(model, lines)
        _print(report, as_json)


def _print(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    print_table("longtail serve", ("", "measured"), [(k, _show(v)) for k, v in report.items()])


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_show(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_show, value))
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
    return value if isinstance(value, str) else f"{value:,}"
