"""`longtail mcp`: a model as tools for language models, over standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer

from longtail.cli.inputs import check_model, find_embedder
from longtail.cli.shared_options import ModelPath
from longtail.cli.show import clear_errors


def mcp(
    model: ModelPath,
    allow_teaching: Annotated[
        bool,
        typer.Option("--allow-teaching", help="Also offer teach and undo, which change the model."),
    ] = False,
) -> None:
    """Offer a model's classes as tools of the Model Context Protocol, over standard input.

    The tools are classify, search_classes and explain. Needs longtail[mcp].
    """
    with clear_errors():
        from longtail.integrations.mcp import make_server

        check_model(model)
        make_server(model, allow_teaching=allow_teaching, embedder=find_embedder()).run()
