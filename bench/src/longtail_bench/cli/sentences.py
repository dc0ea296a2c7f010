"""`longtail bench sentences`: a set of several hundred thousand real classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longtail.cli.shared_options import Seed
from longtail.cli.show import clear_errors, progress, say
from longtail_bench.cli.show import DATA_FOLDER, DataFolder


def sentences(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="New folder to write to.")],
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="A data set with texts by name or folder, repeatable; wikitaxa-genus, "
            "acl-lastauthor and cve-stream if left out."
        ),
    ] = None,
    folder: DataFolder = DATA_FOLDER,
    seed: Seed = 0,
) -> None:
    """Write a data set whose classes are the texts of others, and its documents their sentences.

    One sentence of each text that has three is a test document. `bench run --data FOLDER` takes
    the result.
    """
    from longtail_bench.data import save_counts
    from longtail_bench.sentences import make_sentence_set
    from longtail_bench.stream import read_stream

    with clear_errors():
        if out.exists():
            raise FileExistsError(f"{out} is there already; give a new folder.")
        names = data or ["wikitaxa-genus", "acl-lastauthor", "cve-stream"]
        paths = [folder / name if (folder / name).is_dir() else Path(name) for name in names]
        with progress() as update:
            texts = {path.name: read_stream(path).texts for path in paths}
            made = make_sentence_set(texts, seed, update)
            save_counts(made, out)
        say(
            f"{out}: {len(made.classes):,} classes, {made.X_train.shape[0]:,} training and "
            f"{made.X_test.shape[0]:,} test documents, {made.X_train.shape[1]:,} terms."
        )
