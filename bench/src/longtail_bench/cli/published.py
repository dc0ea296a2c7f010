"""`longtail bench published`: rows of a run beside those of papers."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from longtail.answers import plain
from longtail.cli.shared_options import AsJson
from longtail.cli.show import clear_errors, print_json, print_table, say
from longtail_bench.cli.show import DATA_FOLDER, Seeds, parse_integers


def published(
    preset: Annotated[
        str,
        typer.Argument(
            help="eurlex-4k, wiki10-31k, amazoncat-13k, amazon-670k or wikiseealso-320k."
        ),
    ] = "eurlex-4k",
    folder: Annotated[
        Path | None,
        typer.Option(
            help="With the files of the Extreme Classification Repository: train.txt and test.txt, "
            f"or such as wiki10_train.txt; {DATA_FOLDER}/PRESET if left out."
        ),
    ] = None,
    systems: Annotated[
        str, typer.Option(help="Comma-separated names of `bench systems`.")
    ] = "longtail,bonsai,parabel,pecos,ova",
    out: Annotated[
        Path, typer.Option(help="Rows are appended here; those that it has are not run again.")
    ] = Path("results.jsonl"),
    seeds: Seeds = "0",
    threads: Annotated[int, typer.Option("--threads", help="Threads of each system.")] = 2,
    time_limit: Annotated[float, typer.Option(help="Seconds of a run.")] = 3600,
    as_json: AsJson = False,
) -> None:
    """Run systems on a data set of the Extreme Classification Repository, beside published rows."""
    from longtail_bench.cli.systems import run_and_note
    from longtail_bench.published import COLUMNS, find_published_set, published_folder
    from longtail_bench.report import collect
    from longtail_bench.report_label_sets import repository_table

    with clear_errors():
        path = published_folder(preset, folder, DATA_FOLDER)
        rows = run_and_note(
            [str(path)],
            systems.split(","),
            out=out,
            seeds=parse_integers("--seeds", seeds),
            n_threads=threads,
            time_limit=time_limit,
        )
        quoted = find_published_set(preset)
        if as_json:
            print_json(
                plain(
                    {
                        "rows": [json.loads(row.to_json()) for row in rows],
                        "published": [
                            asdict(row) | {"values": dict(zip(COLUMNS, row.values, strict=True))}
                            for row in quoted.rows
                        ],
                    }
                )
            )
            return
        (entries,) = collect(rows).values()
        table = repository_table(quoted, entries)
        print_table(table.title, table.header, list(table.rows))
        for footnote in table.notes:
            say(footnote)
