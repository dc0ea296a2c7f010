"""Systems that learn from a stream: ours in eight ways, simple ones, online and refitted ones."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any

from longtail_bench.environments import find_environment
from longtail_bench.stream import StreamSystem
from longtail_bench.stream_baselines import RefittedBaseline
from longtail_bench.stream_learners import (
    WINDOW,
    LastClasses,
    RiverNeighbours,
    RowsSeen,
    StochasticGradient,
    VowpalWabbit,
)
from longtail_bench.stream_taught import REFINE_EVERY, TaughtModel, TaughtTeacher
from longtail_bench.systems import SYSTEMS

KEPT = 200  # documents of each class that a model with a memory keeps
GIVEN = 5_000  # last documents that a model without a memory is given to learn from
REFITTED = ("pecos", "parabel", "bonsai")  # systems of `bench run` that cannot learn a document


def make_systems(
    n_classes: int, refit_every: int, batch: int = REFINE_EVERY
) -> dict[str, Callable[[], StreamSystem]]:
    """Return what makes each system, by name.

    Parameters
    ----------
    n_classes : int
        Classes of the whole stream, which Vowpal Wabbit must be told.
    refit_every : int
        Documents between two fits.
    batch : int
        Documents that are predicted at once.
    """
    refined: dict[str, Any] = {"teach": True, "refine_every": REFINE_EVERY, "batch": batch}
    return {
        "longtail, frozen": lambda: TaughtModel(teach=False),
        "longtail, refitted every period": lambda: TaughtModel(teach=False, refit_by_period=True),
        "longtail, taught": lambda: TaughtModel(teach=True),
        "longtail, Teacher": TaughtTeacher,
        'longtail, Teacher, memory="auto"': lambda: TaughtTeacher("auto"),
        "longtail, taught and refined": lambda: TaughtModel(**refined),
        f"longtail, taught and refined, {KEPT} documents a class kept": lambda: TaughtModel(
            **refined, memory=KEPT
        ),
        f"longtail, taught and refined, given the last {GIVEN:,}": lambda: TaughtModel(
            given=GIVEN, **refined
        ),
        f"longtail, taught and refined, refitted every {refit_every:,}": lambda: TaughtModel(
            **refined, refit_every=refit_every
        ),
        "nearest centroid": lambda: RowsSeen(by_class=True),
        "nearest documents": lambda: RowsSeen(by_class=False),
        **{
            f"{SYSTEMS[key].title}, refitted every period": partial(RefittedBaseline, key)
            for key in REFITTED
        },
        "scikit-learn, one-vs-all SGD": lambda: StochasticGradient(n_classes),
        "vowpal wabbit, recall tree": lambda: VowpalWabbit("recall_tree", n_classes),
        "vowpal wabbit, one-vs-all": lambda: VowpalWabbit("oaa", n_classes),
        f"river, nearest of the last {WINDOW:,}": RiverNeighbours,
        "class of the last document": lambda: LastClasses(1),
        f"most frequent of the last {WINDOW:,}": lambda: LastClasses(WINDOW),
    }


# The package that a system needs, by the beginning of its name.
PACKAGES = {"vowpal wabbit": "vowpalwabbit", "river": "river"}


def find_missing(names: Collection[str]) -> dict[str, str]:
    """Return the systems that cannot run here, with the command that changes that."""
    missing = {
        name: f"pip install {package}"
        for name in names
        for prefix, package in PACKAGES.items()
        if name.startswith(prefix) and find_spec(package) is None
    }
    for name, key in product(names, REFITTED):
        environment = SYSTEMS[key].environment or ""
        if name.startswith(SYSTEMS[key].title) and find_environment(environment) is None:
            missing[name] = f"longtail bench environments {environment}"
    return missing


def choose_systems(
    n_classes: int, refit_every: int, beginnings: str | None = None, batch: int = REFINE_EVERY
) -> tuple[dict[str, Callable[[], StreamSystem]], dict[str, str]]:
    """Return the systems that are asked for, and what to do for each that cannot run here.

    Parameters
    ----------
    n_classes, refit_every, batch : int
        As for `make_systems`.
    beginnings : str, optional
        Names or beginnings of names, separated by semicolons (a name may have a comma).

    Raises
    ------
    ValueError
        If a beginning is no system's.
    """
    systems = make_systems(n_classes, refit_every, batch)
    if beginnings is not None:
        asked = [beginning.strip() for beginning in beginnings.split(";")]
        for beginning in asked:
            if not any(name.startswith(beginning) for name in systems):
                raise ValueError(
                    f"no system begins with {beginning!r}; there are: {'; '.join(systems)}"
                )
        # What is a name as a whole is no beginning of others.
        names, beginnings_of = set(asked) & set(systems), tuple(set(asked) - set(systems))
        systems = {
            name: make
            for name, make in systems.items()
            if name in names or name.startswith(beginnings_of)
        }
    missing = find_missing(systems)
    return {name: make for name, make in systems.items() if name not in missing}, missing
