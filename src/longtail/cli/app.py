"""The commands: they parse, call and print; what they compute is in the other rooms.

Rooms are imported when a command runs, so that `longtail --help` answers at once.

========== ==============================================
`fit`      from a table to a model file
`evaluate` how good a model is on labelled documents
`predict`  the classes of new documents
`explain`  why a document gets its class
`teach`    change a model; `forget` is there too
`info`     what is in a model; `warmup` is there too
`demo`     the embedded WordNet set
`bench`    accuracy, time and memory of systems
`options`  what options are called
`inputs`   what commands read
`files`    what commands write
`show`     what commands print
========== ==============================================
"""

from __future__ import annotations

import typer

from longtail.cli.bench import bench
from longtail.cli.bench_speed import growth, speed
from longtail.cli.demo import demo
from longtail.cli.evaluate import evaluate
from longtail.cli.explain import explain
from longtail.cli.fit import fit
from longtail.cli.info import info, warmup
from longtail.cli.predict import predict
from longtail.cli.teach import forget, teach

app = typer.Typer(
    name="longtail",
    help="Classify text into ten thousand to a million classes, most of them rare.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (demo, fit, evaluate, predict, explain, teach, forget, info, warmup):
    app.command()(command)
bench.command()(speed)
bench.command()(growth)
app.add_typer(bench, name="bench", help="Measure accuracy, time and memory.")
