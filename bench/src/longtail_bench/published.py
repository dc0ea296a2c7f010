"""Data sets of the Extreme Classification Repository and what others published on them.

The figures are quoted, each with its source, never measured here. `report_label_sets` puts them
beside rows of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from pathlib import Path
from types import MappingProxyType

from longtail_bench.data import EXTREME_FILES

_PARABEL_PAPER = "Prabhu et al., Parabel, WWW 2018, Table 2"
_REPOSITORY = "Extreme Classification Repository (Bhatia et al., 2016), table of results"
_UNKNOWN = "source not recorded (later than the paper of Parabel)"

# What rows of a run call the columns of `PublishedRow`. Published figures have all labels in the
# truth, also those that training never saw, and a document without label counts as 0; precision is
# the same either way.
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "P@1": "P@1",
        "P@3": "P@3",
        "P@5": "P@5",
        "nDCG@5": "all documents nDCG@5",
        "PSP@1": "all labels PSP@1",
        "PSP@5": "all labels PSP@5",
    }
)


@dataclass(frozen=True)
class PublishedRow:
    """Printed figures of a system on a data set, in percent; NaN where one is not given."""

    system: str  # as its paper writes it
    values: tuple[float, float, float, float, float, float]  # in the order of `COLUMNS`
    source: str  # where the figures are printed


@dataclass(frozen=True)
class PublishedSet:
    """One data set of the repository."""

    name: str  # as the repository writes it
    rows: tuple[PublishedRow, ...]  # the best P@1 first


def _anchors(name: str, **rows: tuple[float, float, float, float, float]) -> PublishedSet:
    """Return a data set with P@1, P@3, P@5, PSP@1 and PSP@5 of the repository."""
    titles = {"AttentionXML": "AttentionXML (GPU)", "XRTransformer": "XR-Transformer (GPU)"}
    return PublishedSet(
        name,
        tuple(
            PublishedRow(titles.get(system, system), (*row[:3], nan, *row[3:]), _REPOSITORY)
            for system, row in sorted(rows.items(), key=lambda item: -item[1][0])
        ),
    )


PUBLISHED_SETS: Mapping[str, PublishedSet] = MappingProxyType(
    {
        "eurlex-4k": PublishedSet(
            "EURLex-4K",
            (
                PublishedRow("PPDSparse", (83.83, 70.72, 59.21, nan, 37.61, 50.79), _PARABEL_PAPER),
                PublishedRow("DiSMEC", (83.67, 70.70, 59.14, nan, nan, nan), _PARABEL_PAPER),
                PublishedRow("Bonsai", (82.96, 69.76, 58.31, 67.41, 37.08, 49.57), _UNKNOWN),
                PublishedRow(
                    "Parabel, 3 trees", (82.25, 68.71, 57.53, 66.54, 36.44, 48.46), _PARABEL_PAPER
                ),
                PublishedRow(
                    "1-vs-all, older", (79.89, 66.01, 53.80, 63.04, 37.97, 46.17), _PARABEL_PAPER
                ),
                PublishedRow("SLEEC", (79.26, 64.30, 52.33, 61.60, 35.45, 44.62), _PARABEL_PAPER),
                PublishedRow("PD-Sparse", (76.43, 60.37, 49.72, nan, nan, nan), _PARABEL_PAPER),
                PublishedRow(
                    "PfastreXML", (75.45, 62.70, 52.51, 60.78, 45.38, 48.08), _PARABEL_PAPER
                ),
            ),
        ),
        "wiki10-31k": _anchors(
            "Wiki10-31K",
            PfastreXML=(83.57, 68.61, 59.10, 19.02, 18.43),
            Parabel=(84.17, 72.46, 63.37, 11.68, 13.69),
            Bonsai=(84.69, 73.69, 64.39, 11.78, 14.28),
            DiSMEC=(85.20, 74.60, 65.90, 13.60, 13.80),
            AttentionXML=(87.47, 78.48, 69.37, 15.57, 17.82),
            XRTransformer=(87.95, 78.79, 69.43, nan, nan),
        ),
        "amazoncat-13k": _anchors(
            "AmazonCat-13K",
            PfastreXML=(91.75, 77.97, 63.68, 69.52, 75.48),
            Parabel=(93.03, 79.16, 64.52, 50.93, 72.08),
            Bonsai=(92.98, 79.13, 64.46, 51.30, 72.48),
            DiSMEC=(93.40, 79.10, 64.10, 59.10, 71.20),
            AttentionXML=(95.92, 82.41, 67.31, 53.76, 76.38),
        ),
        "amazon-670k": _anchors(
            "Amazon-670K",
            PfastreXML=(39.46, 35.81, 33.05, 29.30, 32.43),
            Parabel=(44.89, 39.80, 36.00, 25.43, 32.85),
            Bonsai=(45.58, 40.39, 36.60, 27.08, 34.11),
            DiSMEC=(44.70, 39.70, 36.10, 27.80, 34.20),
            PPDSparse=(45.32, 40.37, 36.92, 26.64, 34.65),
            AttentionXML=(47.58, 42.61, 38.92, 30.29, 37.13),
            XRTransformer=(50.13, 44.60, 40.69, 29.90, 38.63),
        ),
        "wikiseealso-320k": _anchors(
            "LF-WikiSeeAlso-320K",
            PfastreXML=(28.79, 18.38, 13.60, 17.12, 19.43),
            Parabel=(33.46, 22.03, 16.61, 17.10, 23.53),
            Bonsai=(34.86, 23.21, 17.66, 18.19, 25.66),
            DiSMEC=(34.59, 23.58, 18.26, 18.95, 27.90),
            AttentionXML=(40.50, 26.43, 19.87, 22.67, 29.83),
            XRTransformer=(42.57, 28.24, 21.30, 25.18, 33.79),
        ),
    }
)


def find_published_set(name: str) -> PublishedSet:
    """Return the data set of a name, in capital or small letters.

    Raises
    ------
    ValueError
        If there is none; the message lists the names.

    Examples
    --------
    >>> find_published_set("EURLex-4K").rows[0].system
    'PPDSparse'
    """
    try:
        return PUBLISHED_SETS[name.lower()]
    except KeyError:
        known = ", ".join(PUBLISHED_SETS)
        raise ValueError(f"PRESET must be one of {known}; got {name!r}.") from None


def published_folder(name: str, folder: Path | None, data_folder: Path) -> Path:
    """Return where the files of a data set are: what the user gave, or in the folder of data sets.

    Raises
    ------
    ValueError
        If no folder was given and `data_folder` does not have the data set.
    """
    published = find_published_set(name)
    if folder is not None:
        return folder
    path = data_folder / name.lower()
    if not path.is_dir():
        raise ValueError(
            f"--folder is missing and there is no {path.absolute()}: unpack {published.name} of "
            f"the Extreme Classification Repository and give its folder, with {EXTREME_FILES}."
        )
    return path
