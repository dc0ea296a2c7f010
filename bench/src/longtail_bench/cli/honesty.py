"""`longtail bench honesty`: the default beside its simpler selves and other settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longtail.cli.shared_options import AsJson, TextColumns, Threads
from longtail.cli.show import clear_errors, print_json, print_table, progress, say
from longtail_bench.cli.show import (
    DATA_FOLDER,
    DataFolder,
    DataSets,
    LabelColumn,
    Out,
    Seeds,
    append_json,
    parse_integers,
)

if TYPE_CHECKING:
    from longtail_bench.honesty import HonestyRow


def honesty(
    data: DataSets = None,
    folder: DataFolder = DATA_FOLDER,
    text: TextColumns = None,
    label: LabelColumn = None,
    seeds: Seeds = "0",
    threads: Threads = -1,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Compare the default LongTailClassifier with simpler versions of itself and other settings."""
    from dataclasses import asdict

    from longtail.answers import plain
    from longtail_bench.data import find_data_set, find_data_sets, name_data_set
    from longtail_bench.honesty import find_distances, run_honesty
    from longtail_bench.table_data import TableColumns, load_single_labels

    with clear_errors():
        results: list[dict[str, Any]] = []
        for name in data or list(find_data_sets(folder)):
            path = find_data_set(name, folder)
            with progress() as update:
                update(f"{name_data_set(path)}: reading", 0, 1)
                rows = run_honesty(
                    name_data_set(path),
                    load_single_labels(path, TableColumns(text or [], label)),
                    parse_integers("--seeds", seeds),
                    threads,
                    update,
                    lambda row: append_json(out, plain(asdict(row))),
                )
            distances = [
                {"compared_with": title, **asdict(distance)}
                for title, distance in find_distances(rows)
            ]
            if as_json:
                results.append({"rows": [asdict(row) for row in rows], "distances": distances})
            else:
                _print_rows(rows)
                _print_distances(distances)
        if as_json:
            print_json(results)


def _print_rows(rows: list[HonestyRow]) -> None:
    """Print a line for each setting, split and seed."""
    bands = [band.name for band in rows[0].bands]
    header = ("", "predicted", "seed", "accuracy", "macro F1", "recall", "fit", *bands)
    lines = [
        (
            row.setting,
            row.split,
            str(row.seed),
            f"{row.accuracy:.1%}",
            f"{row.macro_f1:.1%}",
            f"{row.candidate_recall:.1%}",
            f"{row.fit_cpu_seconds:.1f} s",
            *(f"{band.accuracy:.1%}" if band.n_documents else "-" for band in row.bands),
        )
        for row in rows
    ]
    print_table(f"{rows[0].data}: LongTailClassifier and simpler versions of it", header, lines)
    say(
        "Recall is that of the candidates; the last columns are accuracy by number of training "
        "documents of the class."
    )


def _print_distances(distances: list[dict[str, Any]]) -> None:
    """Print how far the default is behind."""
    for distance in distances:
        say(
            f"{distance['compared_with']}, seed {distance['seed']}: {distance['best']}, "
            f"{100 * distance['accuracy']:+.1f} points of accuracy and "
            f"{100 * distance['macro_f1']:+.1f} of macro F1 against the default on test documents."
        )
