"""`longtail bench stream`: predict each batch of a stream, then learn it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longtail.cli.shared_options import AsJson
from longtail.cli.show import clear_errors, print_json, print_note, print_table, progress, say
from longtail_bench.cli.show import DATA_FOLDER, DataFolder, append_json

if TYPE_CHECKING:
    from longtail_bench.stream import StreamRow


def stream(
    data: Annotated[str, typer.Argument(help="A data set with texts, by name or folder.")],
    folder: DataFolder = DATA_FOLDER,
    start: Annotated[
        int | None,
        typer.Option("--from", help="First period predicted; the third of the set by default."),
    ] = None,
    until: Annotated[int | None, typer.Option(help="Last period.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Documents predicted, then learned.")] = 250,
    refit_every: Annotated[int, typer.Option(min=1, help="Documents between two fits.")] = 5000,
    systems: Annotated[
        str | None, typer.Option(help="Beginnings of names, separated by ';'; all by default.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Append each row to this JSON lines file; what it has is not run again."),
    ] = None,
    table: Annotated[Path | None, typer.Option(help="Write the tables as Markdown.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw accuracy over time.")] = None,
    as_json: AsJson = False,
) -> None:
    """Predict a stream of documents batch by batch, teaching each batch after it was predicted."""
    from dataclasses import asdict

    from longtail.answers import plain
    from longtail_bench import stream_report
    from longtail_bench.stream import read_rows, read_stream, run_systems
    from longtail_bench.stream_systems import choose_systems

    with clear_errors():
        path = Path(data) if Path(data).is_dir() else folder / data
        documents = read_stream(path)
        if until is not None:
            documents = documents.until(until)
        first = int(documents.periods[len(documents.texts) // 3]) if start is None else start
        n_classes = len(set(documents.labels))
        selected, missing = choose_systems(n_classes, refit_every, systems, batch)
        for name, command in missing.items():
            print_note(f"{name}: left out, needs {command}")

        until = int(documents.periods[-1])
        run = {"data": path.name, "batch": batch, "from": first, "until": until}
        done = {} if out is None or not out.exists() else read_rows(out, run)

        def keep(new: Sequence[StreamRow]) -> None:
            for row in new:
                append_json(out, run | plain(asdict(row)))
                done.setdefault(row.system, []).append(row)

        to_run = {name: make for name, make in selected.items() if name not in done}
        with progress() as update:
            run_systems(documents, to_run, first, batch, update, keep)
        rows = [row for name in selected for row in done[name]]
        title = f"{path.name} from {first} on, batches of {batch}"
        tables = [stream_report.summary_table(rows, title), stream_report.period_table(rows)]
        if table is not None:
            table.write_text("\n".join(entry.to_markdown() for entry in tables), "utf-8")
        if figure is not None:
            stream_report.plot_stream(rows).savefig(figure)
        if as_json:
            print_json([plain(asdict(row)) for row in rows])
            return
        for entry in tables:
            print_table(entry.title, entry.header, entry.rows)
        for footnote in stream_report.NOTES:
            say(footnote)
