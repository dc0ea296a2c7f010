"""`longtail bench taxonomy`: what answers by nodes, subsets and candidates are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from longtail.cli.shared_options import AsJson, Threads
from longtail.cli.show import clear_errors, print_json, print_table, progress
from longtail_bench.cli.show import DATA_FOLDER, DataFolder


def taxonomy(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A data set.")],
    hierarchy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A table with columns child and parent."),
    ] = None,
    path_separator: Annotated[
        str | None, typer.Option(help="Classes are paths, whose levels this separates.")
    ] = None,
    folder: DataFolder = DATA_FOLDER,
    seed: Annotated[int, typer.Option(help="Decides every random draw.")] = 0,
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Measure back-off beside abstaining, levels, speed within subsets, and recall at k."""
    from dataclasses import asdict
    from warnings import catch_warnings, simplefilter

    import numpy as np

    from longtail.answers import plain
    from longtail.cli.hierarchy import read_pairs
    from longtail.exceptions import HierarchyWarning
    from longtail_bench import taxonomies
    from longtail_bench.data import find_data_set
    from longtail_bench.table_data import TableColumns, load_single_labels

    with clear_errors():
        given: Any = path_separator if hierarchy is None else read_pairs(hierarchy)
        path = find_data_set(data, folder)
        results: dict[str, Any] = {}
        with progress() as update, catch_warnings():
            simplefilter("ignore", HierarchyWarning)
            update(f"{data}: fitting", 0, 1)
            loaded = load_single_labels(path, TableColumns([], None))
            model = taxonomies.fit(loaded, given, seed, threads)
            true = np.asarray(loaded.classes)[loaded.y_test]
            X = loaded.X_test
            update(f"{data}: predicting", 0, 1)
            if given is not None:
                levels = tuple(range(1, min(model.state_.back_off.n_levels, 5)))
                results["back-off"] = [*map(asdict, taxonomies.measure_back_off(model, X, true))]
                results["levels"] = [
                    *map(asdict, taxonomies.measure_levels(model, X, true, levels))
                ]
            results["recall"] = taxonomies.measure_recall(model, X, true)
            results["CPU µs"] = taxonomies.measure_speed(model, X)
        if as_json:
            print_json(plain({"data": data, **results}))
            return
        for title, found in results.items():
            rows = found if isinstance(found, list) else [found]
            cells = [[_shown(value) for value in row.values()] for row in rows]
            print_table(f"{data}: {title}", tuple(map(str, rows[0])), cells)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        kept = (
            f"{asked}: {correct:.3f} of {share:.3f}" for asked, (correct, share) in value.items()
        )
        return ", ".join(kept)
    return f"{value:.3f}" if isinstance(value, float) else str(value)
