"""`longtail bench embeddings`: what the vectors of a sentence encoder are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longtail.cli.shared_options import AsJson, Seed, Threads
from longtail.cli.show import clear_errors, print_json, print_table, progress, say
from longtail_bench.cli.show import DATA_FOLDER, DataFolder


def embeddings(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A data set with its texts.")],
    from_text: Annotated[
        bool, typer.Option("--from-text", help="The model counts terms itself.")
    ] = False,
    vectors: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keeps vectors for the next run.")
    ] = None,
    max_words: Annotated[int, typer.Option(help="How much of a text is encoded.")] = 60,
    train: Annotated[
        int | None, typer.Option(help="Training documents, from the first; all if left out.")
    ] = None,
    test: Annotated[
        int | None, typer.Option(help="Test documents, from the first; all if left out.")
    ] = None,
    folder: DataFolder = DATA_FOLDER,
    seed: Seed = 0,
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Fit without and with the vectors of --embedder, and compare both on the test documents."""
    from dataclasses import asdict

    from longtail.cli.inputs import find_embedder
    from longtail_bench import embeddings as compared
    from longtail_bench.data import find_data_set

    with clear_errors():
        encode = find_embedder() or compared.default_encoder()
        encoder = compared.CachedEncoder(encode, vectors, max_words)
        loaded = compared.load_texts(find_data_set(data, folder)).head(train, test)
        rows = []
        with progress() as update:
            for name, given in (("without", None), ("with embeddings", encoder)):
                update(f"{data}: {name}", 0, 1)
                row = compared.measure(
                    loaded, given, from_text=from_text, n_jobs=threads, seed=seed
                )
                rows.append(row)
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    lines = {name: [f"{100 * row.measures[name]:.2f}" for row in rows] for name in rows[0].measures}
    lines["fit, CPU s"] = [f"{row.fit_cpu_seconds:.1f}" for row in rows]
    lines["predict, CPU µs"] = [f"{row.predict_cpu_microseconds:.1f}" for row in rows]
    header = ("", *(row.name for row in rows))
    print_table(data, header, [(name, *values) for name, values in lines.items()])
    for name, figures in zip(header[1:], rows[-1].held_out, strict=False):
        say(f"Held out in the fit, {name}: {figures[0]:.2%}, macro F1 {figures[1]:.2%}.")
    say("In percent. Vectors are made before anything is timed.")
