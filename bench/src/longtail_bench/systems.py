"""The systems that a benchmark knows: name -> estimator, settings, what a search may try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from random import Random
from typing import Any

Settings = dict[str, Any]


@dataclass(frozen=True)
class System:
    """One line of a table."""

    title: str  # what tables call it
    # Where its class is. Parameters `n_jobs`, `random_state` and `max_gigabytes` are set by the run
    # where the class has them.
    module: str
    estimator: str
    # Parameters that differ from the defaults of the class.
    settings: Mapping[str, Any] = field(default_factory=dict)
    # The important parameters and the values that a search tries.
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    # Key of `environments.PEERS` if it runs in an environment of its own.
    environment: str | None = None
    # Whether it is given the documents themselves instead of their counts.
    reads_texts: bool = False
    # "paper" for the systems of the paper, "simple" for baselines, "today" for current ones.
    group: str = "paper"


def _packaged(title: str, module: str, estimator: str, environment: str, **fields: Any) -> System:
    """Return a system of `longtail_bench.baselines` that needs a package in its own environment."""
    return System(
        title, f"longtail_bench.baselines.{module}", estimator, environment=environment, **fields
    )


def _simple(title: str, module: str, estimator: str, **fields: Any) -> System:
    """Return one of the simple baselines of `longtail_bench.baselines`."""
    return System(title, f"longtail_bench.baselines.{module}", estimator, group="simple", **fields)


_BONSAI = {"clusters": 100, "balanced": False, "max_depth": 3}

# Grids hold what the paper's Table 4 tunes; a system that it does not have, its two or three
# parameters that matter most.
# Settings that differ where documents have several labels: rankings are longer there.
LABEL_SET_SETTINGS: dict[str, Settings] = {
    "pecos": {"beam": 20},
    # The gradients of all classes add up: on 3,000 documents of tib-subjects with 5,141 classes a
    # rate of 0.5 ends in "Encountered NaN". 0.1 is the package's own default.
    "fasttext": {"loss": "ova", "rate": 0.1},
}

SYSTEMS: dict[str, System] = {
    "longtail": System(
        "LongTailClassifier",
        "longtail",
        "LongTailClassifier",
        grid={"C": (0.3, 1.0, 3.0), "candidates": (10, 20, 50)},
        group="today",
    ),
    "text": System("TextClassifier", "longtail", "TextClassifier", reads_texts=True, group="today"),
    "ova": System(
        "OVA", "longtail_bench.baselines.linear", "OneVsAll", grid={"C": (0.1, 1.0, 10.0)}
    ),
    "msvm": System(
        "M-SVM", "longtail_bench.baselines.linear", "CrammerSinger", grid={"C": (0.1, 1.0, 10.0)}
    ),
    "recalltree": _packaged(
        "RecallTree",
        "recall_tree",
        "RecallTree",
        "vowpalwabbit",
        grid={"rate": (0.5, 0.7, 1.0), "loss": ("hinge", "logistic")},
    ),
    "fastxml": System(
        "FastXML",
        "longtail_bench.baselines.fastxml",
        "FastXML",
        grid={"n_trees": (50, 100), "C": (1.0, 10.0, 100.0)},
    ),
    "pfastrexml": System(
        "PfastReXML",
        "longtail_bench.baselines.pfastrexml",
        "PfastReXML",
        grid={"n_trees": (50, 100), "C": (1.0, 10.0, 100.0)},
    ),
    "pdsparse": System(
        "PD-Sparse",
        "longtail_bench.baselines.pdsparse",
        "PDSparse",
        grid={"l1": (0.1, 0.01, 0.001, 0.0001)},
    ),
    "paper": System(
        "(π,κ)-DS",
        "longtail",
        "DoubleSamplingClassifier",
        grid={"adversaries": (5, 30, 122), "examples_per_class": (1, 2), "candidates": (10, 20)},
    ),
    "centroid": _simple(
        "nearest centroid", "centroid", "NearestCentroid", settings={"sublinear": True}
    ),
    "bm25": _simple("BM25", "bm25", "BM25", grid={"k1": (1.2, 2.0), "b": (0.5, 0.75, 0.9)}),
    "bm25-names": _simple(
        "BM25 over names", "bm25", "BM25Names", grid={"k1": (1.2, 2.0), "b": (0.5, 0.75, 0.9)}
    ),
    "knn": _simple("kNN", "neighbours", "NearestNeighbours", grid={"neighbours": (5, 10, 20)}),
    # With alpha 1 the vocabulary drowns rare classes: on held-out documents of wordnet-hypernym
    # and cve-product 11 and 26 % accuracy, with 0.01 27 and 59 %.
    "multinomial": _simple(
        "naive Bayes",
        "bayes",
        "MultinomialBayes",
        settings={"alpha": 0.01},
        grid={"alpha": (0.001, 0.01, 0.1, 1.0)},
    ),
    "complement": _simple(
        "complement naive Bayes", "bayes", "ComplementBayes", grid={"alpha": (0.01, 0.1, 1.0)}
    ),
    "longtail-names": System(
        "LongTailClassifier with names",
        "longtail_bench.baselines.named",
        "NamedLongTail",
        group="today",
    ),
    "pecos": _packaged(
        "PECOS XR-Linear",
        "pecos",
        "Pecos",
        "pecos",
        grid={"splits": (16, 32), "max_leaf_size": (20, 100), "threshold": (0.01, 0.1)},
        group="today",
    ),
    "parabel": _packaged(
        "omikuji, Parabel",
        "omikuji",
        "Omikuji",
        "omikuji",
        grid={"C": (1.0, 3.0), "threshold": (0.05, 0.1)},
        group="today",
    ),
    "bonsai": _packaged(
        "omikuji, Bonsai",
        "omikuji",
        "Omikuji",
        "omikuji",
        settings=_BONSAI,
        grid={"C": (1.0, 3.0), "threshold": (0.05, 0.1)},
        group="today",
    ),
    "plt": _packaged(
        "napkinXC PLT",
        "napkinxc",
        "NapkinXC",
        "napkinxc",
        settings={"loss": "l2", "C": 1.0, "threshold": 0.01},
        grid={"loss": ("l2", "log"), "C": (1.0, 10.0)},
        group="today",
    ),
    "libmultilabel": _packaged(
        "LibMultiLabel, linear tree",
        "libmultilabel",
        "LibMultiLabelTree",
        "libmultilabel",
        grid={"C": (1.0, 3.0), "degree": (16, 100)},
        group="today",
    ),
    "hsm": _packaged(
        "napkinXC HSM",
        "napkinxc",
        "NapkinXC",
        "napkinxc",
        settings={"model": "HSM"},
        grid={"C": (1.0, 10.0), "threshold": (0.01, 0.1)},
        group="today",
    ),
    "fasttext": _packaged(
        "fastText",
        "fasttext",
        "FastText",
        "fasttext",
        grid={"rate": (0.2, 0.5, 1.0), "epochs": (25, 50)},
        group="today",
    ),
}


def check_systems(names: Sequence[str]) -> None:
    """Refuse names that no system has."""
    if isinstance(names, str) or not len(names):
        raise ValueError(f"systems must be a list with at least one entry; got {names!r}.")
    for name in names:
        if name not in SYSTEMS:
            raise ValueError(f"systems must be among {', '.join(SYSTEMS)}; got {name!r}.")


def trials(system: str, budget: int, seed: int) -> list[Settings]:
    """Return at most `budget` settings to try: the system's own first, then others of its grid.

    Parameters
    ----------
    system : str
        A key of `SYSTEMS`.
    budget : int
        How many fits a search may cost, the same for every system; a larger grid is sampled.
    seed : int
        Decides the sample.

    Examples
    --------
    >>> trials("ova", 6, seed=0)
    [{}, {'C': 0.1}, {'C': 10.0}]
    """
    known = SYSTEMS[system]
    defaults_of_system = dict(known.settings)
    names = list(known.grid)
    # Loading the class loads no peer's package; those are imported by `fit`.
    defaults = getattr(import_module(known.module), known.estimator)().get_params()
    current = tuple((defaults | defaults_of_system)[name] for name in names)
    others = [
        defaults_of_system | dict(zip(names, values, strict=True))
        for values in product(*known.grid.values())
        if values != current
    ]
    if len(others) > budget - 1:
        others = Random(seed).sample(others, budget - 1)
    return [defaults_of_system, *others]
