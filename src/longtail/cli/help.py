"""The help of commands: plain text that fits 80 columns, options in sections.

Without rich's markup, which would take the brackets of `longtail[serve]` for a style, and without
its table, which cuts long options and calls the type of a flag `<bool>`.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose options are listed in their sections."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options, and then the options of each section."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
            section = getattr(parameter, "rich_help_panel", None) or kind
            sections.setdefault(section, []).append(record)
        for section, records in sections.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)


class Commands(TyperGroup):
    """Commands with the whole sentence of each; a misspelt one is never taken for a change."""

    changing: tuple[str, ...] = ()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with the first sentence of its help."""
        commands = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        records = [
            (name, (command.help or "").split("\n\n")[0].replace("\n", " ").strip())
            for name, command in commands
            if not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(records)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that was named, or fail with others of like names."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            harmless = [name for name in self.commands if name not in self.changing]
            close = ", ".join(map(repr, get_close_matches(args[0], harmless)))
            ctx.fail(f"No such command {args[0]!r}.{f' Did you mean {close}?' if close else ''}")
        return super().resolve_command(ctx, args)
