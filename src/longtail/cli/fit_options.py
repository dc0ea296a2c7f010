"""The options of `fit` that set a parameter of an estimator, each in one row.

A test compares the rows with the estimators' signatures. They are not read from there because
`longtail --help` must not import the estimators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

TEXT_PANEL = "How text is read"


@dataclass(frozen=True)
class EstimatorOption:
    """An option and the parameter that it sets, which keeps its default where none is given."""

    parameter: str  # the name of the parameter
    kind: Any  # what is given
    help: str  # what the option does
    flags: str = ""  # the option; the parameter's name where left out
    # What is given -> the value of the parameter.
    convert: Callable[[Any], Any] = lambda given: given
    settings: Mapping[str, Any] = field(default_factory=dict)  # further arguments of `typer.Option`

    @property
    def all_flags(self) -> str:
        """The option, as it is given: --a, or --a/--not-a."""
        return self.flags or "--" + self.parameter.replace("_", "-")

    def as_parameter(self, panel: str | None) -> Parameter:
        """Return the parameter of a command that takes the option."""
        option = typer.Option(
            self.all_flags, help=self.help, rich_help_panel=panel, **self.settings
        )
        kind: Any = self.kind | None
        annotation = Annotated[kind, option]
        return Parameter(
            self.parameter, Parameter.KEYWORD_ONLY, default=None, annotation=annotation
        )


def _read_stop_words(given: str) -> Any:
    """Return the words of a file; a list that the vectorizer has is called by its name."""
    return given if given == "english" else Path(given).read_text(encoding="utf-8").split()


def _read_memory(given: str) -> Any:
    """Return a number of documents, or the word that was given."""
    return int(given) if given.isdecimal() else given


VECTORIZER_OPTIONS = (
    EstimatorOption(
        "ngram_range",
        int,
        "2: words and pairs of neighbouring words; 1: words only.",
        "--ngrams",
        lambda longest: (1, longest),
    ),
    EstimatorOption(
        "char_ngram_range",
        tuple[int, int],
        "Shortest and longest character n-gram, such as 3 5.",
        "--char-ngrams",
    ),
    EstimatorOption("min_df", int, "Leave out words in fewer documents."),
    EstimatorOption("max_df", float, "Leave out terms in a larger share of documents."),
    EstimatorOption("max_features", int, "Keep only so many terms, the most frequent."),
    EstimatorOption("ngram_min_df", int, "Leave out pairs and n-grams in fewer documents."),
    EstimatorOption("ngram_weight", float, "Weight of a pair; a word has 1."),
    EstimatorOption("stem", bool, "Remove English plural endings.", "--stem/--no-stem"),
    EstimatorOption("lowercase", bool, "Whether to fold case.", "--lowercase/--keep-case"),
    EstimatorOption(
        "strip_accents", bool, "Do not fold accents.", "--keep-accents", lambda _: None
    ),
    EstimatorOption(
        "stop_words",
        str,
        "Words to leave out: a file of them, or english.",
        convert=_read_stop_words,
        settings={"metavar": "FILE|english"},
    ),
    EstimatorOption("token_pattern", str, "Regular expression that finds words."),
    EstimatorOption(
        "split_unspaced",
        bool,
        "Whether to split Chinese, Japanese, Thai, ... into character bigrams.",
        "--split-unspaced/--keep-unspaced",
    ),
)

TEXT_OPTIONS = (
    EstimatorOption(
        "remember_documents",
        bool,
        "Keep a hash of each document, so that forget refuses documents that were never added.",
        "--remember-documents",
    ),
)

CLASSIFIER_OPTIONS = (
    EstimatorOption("C", float, "How closely residuals follow the documents; default 1."),
    EstimatorOption("candidates", int, "Classes ranked for each document.", settings={"min": 1}),
    EstimatorOption(
        "calibrate",
        bool,
        "Hold documents out to calibrate probabilities and to estimate accuracy.",
        "--calibrate/--no-calibrate",
    ),
    EstimatorOption(
        "time_budget",
        float,
        "Seconds for learning; calibration is skipped first, then residuals.",
    ),
    EstimatorOption("search", str, "exact: look at all classes, also from 100,000 on."),
    EstimatorOption(
        "memory",
        str,
        "Documents of each class that the model keeps for refine to learn from: how many, auto, "
        "or 0 for none ever, also of what it is taught.",
        convert=_read_memory,
    ),
    EstimatorOption(
        "adapt",
        bool,
        "Learn from what the model would have said of documents before they are taught.",
        "--adapt/--no-adapt",
    ),
)


def convert_given(options: tuple[EstimatorOption, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that were given a value, by name."""
    return {
        option.parameter: option.convert(given[option.parameter])
        for option in options
        if given.get(option.parameter) is not None
    }
