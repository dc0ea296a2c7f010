"""Other classifiers under the same interface, for tables that need a line to compare with.

Each takes counts and labels and has `predict` and `predict_topk`; nearly all are a `Baseline`.
Names are loaded on first use: a peer's environment can load its own baseline, which needs no more
than `base`.

================================================ =================================================
`OneVsAll`, `CrammerSinger`, `RecallTree`,       the paper's competitors
`FastXML`, `PfastReXML`, `PDSparse`
`NearestCentroid`, `BM25`, `BM25Names`,          simple baselines
`NearestNeighbours`,
`MultinomialBayes`, `ComplementBayes`
`Pecos`, `Omikuji`, `NapkinXC`, `FastText`,      today's systems, through their own packages
`LibMultiLabelTree`
================================================ =================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longtail_bench.baselines.base import Baseline
    from longtail_bench.baselines.bayes import ComplementBayes, MultinomialBayes
    from longtail_bench.baselines.bm25 import BM25, BM25Names
    from longtail_bench.baselines.centroid import NearestCentroid
    from longtail_bench.baselines.fasttext import FastText
    from longtail_bench.baselines.fastxml import FastXML
    from longtail_bench.baselines.libmultilabel import LibMultiLabelTree
    from longtail_bench.baselines.linear import CrammerSinger, OneVsAll
    from longtail_bench.baselines.napkinxc import NapkinXC
    from longtail_bench.baselines.neighbours import NearestNeighbours
    from longtail_bench.baselines.omikuji import Omikuji
    from longtail_bench.baselines.pdsparse import PDSparse
    from longtail_bench.baselines.pecos import Pecos
    from longtail_bench.baselines.pfastrexml import PfastReXML
    from longtail_bench.baselines.recall_tree import RecallTree

__all__ = [
    "BM25",
    "BM25Names",
    "Baseline",
    "ComplementBayes",
    "CrammerSinger",
    "FastText",
    "FastXML",
    "LibMultiLabelTree",
    "MultinomialBayes",
    "NapkinXC",
    "NearestCentroid",
    "NearestNeighbours",
    "Omikuji",
    "OneVsAll",
    "PDSparse",
    "Pecos",
    "PfastReXML",
    "RecallTree",
]

_MODULES = {
    "BM25": "bm25",
    "BM25Names": "bm25",
    "Baseline": "base",
    "ComplementBayes": "bayes",
    "CrammerSinger": "linear",
    "FastText": "fasttext",
    "FastXML": "fastxml",
    "LibMultiLabelTree": "libmultilabel",
    "MultinomialBayes": "bayes",
    "NapkinXC": "napkinxc",
    "NearestCentroid": "centroid",
    "NearestNeighbours": "neighbours",
    "Omikuji": "omikuji",
    "OneVsAll": "linear",
    "PDSparse": "pdsparse",
    "Pecos": "pecos",
    "PfastReXML": "pfastrexml",
    "RecallTree": "recall_tree",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module 'longtail_bench.baselines' has no attribute {name!r}")
    return getattr(import_module(f"longtail_bench.baselines.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names although they are not loaded yet."""
    return sorted(__all__)
