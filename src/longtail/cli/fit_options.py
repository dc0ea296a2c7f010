"""The options of `fit` that set a parameter of an estimator, made of the estimators' source.

A parameter is an option of its name and type, and the first sentence of its description is the
help; what reads otherwise on a command line is said here. The source is read, not imported: numba
would keep every `--help` waiting for a second.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from inspect import Parameter, cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer

TEXT_PANEL = "How text is read"
_KINDS = {"int": int, "float": float, "bool": bool, "tuple[int, int]": tuple[int, int]}


@dataclass(frozen=True)
class EstimatorOption:
    """An option and the parameter that it sets, which keeps its default where none is given."""

    parameter: str  # the name of the parameter
    kind: Any  # what is given
    help: str  # what the option does
    flags: str  # as it is given: --a, or --a/--not-a
    # From what is given to the value of the parameter.
    convert: Callable[[Any], Any] = lambda given: given
    settings: Mapping[str, Any] = field(default_factory=dict)  # further arguments of `typer.Option`

    def as_parameter(self, panel: str | None) -> Parameter:
        """Return the parameter of a command that takes the option."""
        option = typer.Option(self.flags, help=self.help, rich_help_panel=panel, **self.settings)
        kind: Any = self.kind | None
        annotation = Annotated[kind, option]
        return Parameter(
            self.parameter, Parameter.KEYWORD_ONLY, default=None, annotation=annotation
        )


def read_options(
    module: str, estimator: str, without: str, **otherwise: dict[str, Any]
) -> Iterator[EstimatorOption]:
    """Yield the options of an estimator.

    `without` names parameters that are none, `otherwise` has fields that the source does not give.
    """
    source: Any = ast.parse(files("longtail").joinpath(module).read_text(encoding="utf-8"))
    [body] = [node.body for node in source.body if getattr(node, "name", "") == estimator]
    [signature] = [node.args for node in body if getattr(node, "name", "") == "__init__"]
    helps = _read_helps(ast.literal_eval(body[0].value))
    for argument, default in zip(signature.args[1:], signature.defaults, strict=True):
        name, flag = argument.arg, argument.arg.replace("_", "-")
        if name not in without.split():
            kind = _KINDS.get(ast.unparse(argument.annotation).removesuffix(" | None"), str)
            value = ast.literal_eval(default)
            shown = "" if value is None or kind is bool else f"  [default: {value}]"
            known: dict[str, Any] = {
                "kind": kind,
                "help": helps[name] + shown,
                "flags": f"--{flag}/--no-{flag}" if kind is bool else f"--{flag}",
            }
            yield EstimatorOption(name, **(known | otherwise.pop(name, {})))
    if otherwise:
        raise TypeError(f"{estimator} has no parameter {' and no '.join(otherwise)}.")


def _read_helps(docstring: str) -> dict[str, str]:
    """Return the first sentence on each parameter of a numpydoc docstring, without markup."""
    section = cleandoc(docstring).split("Parameters\n----------\n")[1].split("\n\n")[0]
    described = re.findall(r"^(\w+) : .*\n((?: {4}.*\n?)+)", section.replace("`", ""), re.MULTILINE)
    return {name: re.split(r"(?<=\.)\s", " ".join(text.split()))[0] for name, text in described}


def _read_stop_words(given: str) -> Any:
    """Return the words of a file; a list that the vectorizer has is called by its name."""
    return given if given == "english" else Path(given).read_text(encoding="utf-8").split()


def _read_memory(given: str) -> Any:
    """Return a number of documents, or the word that was given."""
    return int(given) if given.isdecimal() else given


VECTORIZER_OPTIONS = tuple(
    read_options(
        "text/vectorizer.py",
        "TextVectorizer",
        without="tokenizer fields n_jobs",
        ngram_range={
            "kind": int,
            "help": "2: words and pairs of neighbouring words; 1: words only.",
            "flags": "--ngrams",
            "convert": lambda longest: (1, longest),
        },
        char_ngram_range={
            "help": "Shortest and longest character n-gram, such as 3 5.",
            "flags": "--char-ngrams",
        },
        min_df={"kind": int, "help": "Leave out words in fewer documents."},
        max_df={"help": "Leave out terms in a larger share of documents."},
        ngram_min_df={"kind": int, "help": "Leave out pairs and n-grams in fewer documents."},
        lowercase={"flags": "--lowercase/--keep-case"},
        strip_accents={
            "kind": bool,
            "help": "Do not fold accents.",
            "flags": "--keep-accents",
            "convert": lambda _: None,
        },
        stop_words={
            "help": "Words to leave out: a file of them, or english.",
            "convert": _read_stop_words,
            "settings": {"metavar": "FILE|english"},
        },
        split_unspaced={"flags": "--split-unspaced/--keep-unspaced"},
    )
)

# --embedder stands before the command; --seed, --threads and --quiet are those of all commands.
TEXT_OPTIONS = tuple(
    read_options(
        "estimators/text.py",
        "TextClassifier",
        without="classifier vectorizer fields embedder random_state n_jobs verbose",
    )
)

CLASSIFIER_OPTIONS = tuple(
    read_options(
        "estimators/long_tail.py",
        "LongTailClassifier",
        without="multilabel class_weight random_state n_jobs verbose",
        candidates={"settings": {"min": 1}},
        memory={
            "kind": str,
            "help": "Documents of each class that the model keeps for refine to learn from: how "
            "many, auto, or 0 for none ever, also of what it is taught.",
            "convert": _read_memory,
        },
    )
)


def convert_given(options: tuple[EstimatorOption, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that were given a value, by name."""
    return {
        option.parameter: option.convert(given[option.parameter])
        for option in options
        if given.get(option.parameter) is not None
    }
