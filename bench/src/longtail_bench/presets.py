"""The paper's five collections: sizes (Table 2), results (Table 3) and hyper-parameters (Table 4).

The collections themselves cannot be shipped. `load_preset_files` reads a user's copy of the
challenge files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.sparse import csr_array

from longtail.datasets.readers import read_lshtc
from longtail.datasets.records import CountDataset, LabelledCounts
from longtail.exceptions import DataFormatError

_DS = "(π,κ)-DS"
_SECONDS = {"s": 1.0}
_GIGABYTES = {"G": 1.0, "M": 1e-3}
_PERCENT = {"%": 1.0}


@dataclass(frozen=True)
class PaperRow:
    """One system on one collection in Table 3, as printed; ``NA`` where the paper has no result.

    The properties are the same as numbers, None for ``NA`` and for bounds such as ``>4d``.

    Examples
    --------
    >>> row = PRESETS["lshtc1"].paper_row
    >>> row.train_time, row.train_seconds, row.accuracy_percent
    ('321s', 321.0, 37.4)
    """

    train_time: str
    predict_time: str
    memory: str
    accuracy: str
    macro_f1: str

    @property
    def train_seconds(self) -> float | None:
        """Training time in seconds."""
        return _parse_quantity(self.train_time, _SECONDS)

    @property
    def predict_seconds(self) -> float | None:
        """Prediction time in seconds."""
        return _parse_quantity(self.predict_time, _SECONDS)

    @property
    def memory_gigabytes(self) -> float | None:
        """Total memory in gigabytes."""
        return _parse_quantity(self.memory, _GIGABYTES)

    @property
    def accuracy_percent(self) -> float | None:
        """Accuracy in percent."""
        return _parse_quantity(self.accuracy, _PERCENT)

    @property
    def macro_f1_percent(self) -> float | None:
        """Harmonic mean of macro precision and macro recall, in percent."""
        return _parse_quantity(self.macro_f1, _PERCENT)


@dataclass(frozen=True)
class Preset:
    """One collection of the paper."""

    name: str  # as the paper writes it
    # Table 2; documents are counted after replication.
    n_classes: int
    n_train: int
    n_test: int
    n_heldout: int
    n_terms: int
    # What (π,κ)-DS used, Table 4.
    examples_per_class: int
    adversaries: int
    candidates: int
    results: Mapping[str, PaperRow]  # table 3 for every system
    # Table 4 for the competitors, parameter -> value; a system the paper could not run is missing.
    settings: Mapping[str, Mapping[str, float | str]]

    @property
    def paper_row(self) -> PaperRow:
        """The row of (π,κ)-DS in Table 3."""
        return self.results[_DS]


def _parse_quantity(printed: str, multipliers: Mapping[str, float]) -> float | None:
    """Return a printed quantity in the base unit, None if it is no plain number."""
    digits, multiplier = printed[:-1], printed[-1:]
    if multiplier not in multipliers or not digits.replace(".", "", 1).isdigit():
        return None
    return float(digits) * multipliers[multiplier]


_LSHTC1 = Preset(
    name="LSHTC1",
    n_classes=12_294,
    n_train=126_871,
    n_test=31_718,
    n_heldout=5_000,
    n_terms=409_774,
    examples_per_class=2,
    adversaries=122,
    candidates=10,
    results={
        "OVA": PaperRow("23056s", "328s", "40.3G", "44.1%", "27.4%"),
        "M-SVM": PaperRow("48313s", "314s", "40.3G", "36.4%", "18.8%"),
        "RecallTree": PaperRow("701s", "21s", "122M", "18.1%", "3.8%"),
        "FastXML": PaperRow("8564s", "339s", "470M", "39.3%", "21.3%"),
        "PfastReXML": PaperRow("3912s", "164s", "471M", "39.8%", "22.4%"),
        "PD-Sparse": PaperRow("5105s", "67s", "10.5G", "45.7%", "27.7%"),
        _DS: PaperRow("321s", "544s", "2G", "37.4%", "26.5%"),
    },
    settings={
        "OVA": {"C": 10},
        "M-SVM": {"C": 1},
        "RecallTree": {"b": 30, "l": 1, "loss_function": "Hinge", "passes": 5},
        "FastXML": {"t": 100, "c": 100},
        "PfastReXML": {"t": 50, "c": 100},
        "PD-Sparse": {"l": 0.01, "Hashing": "multiTrainHash"},
    },
)

_DMOZ = Preset(
    name="DMOZ",
    n_classes=27_875,
    n_train=381_149,
    n_test=95_288,
    n_heldout=34_506,
    n_terms=594_158,
    examples_per_class=2,
    adversaries=27,
    candidates=10,
    results={
        "OVA": PaperRow("180361s", "2797s", "131.9G", "37.7%", "22.2%"),
        "M-SVM": PaperRow("212356s", "3981s", "131.9G", "32.2%", "14.3%"),
        "RecallTree": PaperRow("2212s", "47s", "256M", "16.9%", "1.75%"),
        "FastXML": PaperRow("14334s", "424s", "1339M", "33.4%", "15.1%"),
        "PfastReXML": PaperRow("15492s", "505s", "1242M", "33.7%", "15.9%"),
        "PD-Sparse": PaperRow("63286s", "482s", "28.1G", "40.8%", "22.7%"),
        _DS: PaperRow("1060s", "2122s", "5.3G", "27.8%", "20.5%"),
    },
    settings={
        "OVA": {"C": 10},
        "M-SVM": {"C": 1},
        "RecallTree": {"b": 30, "l": 0.7, "loss_function": "Hinge", "passes": 5},
        "FastXML": {"t": 50, "c": 100},
        "PfastReXML": {"t": 50, "c": 100},
        "PD-Sparse": {"l": 0.01, "Hashing": "multiTrainHash"},
    },
)

_WIKI_SMALL = Preset(
    name="WIKI-Small",
    n_classes=36_504,
    n_train=796_617,
    n_test=199_155,
    n_heldout=5_000,
    n_terms=380_078,
    examples_per_class=1,
    adversaries=36,
    candidates=10,
    results={
        "OVA": PaperRow("212438s", "2270s", "109.1G", "15.6%", "8.8%"),
        "M-SVM": PaperRow(">4d", "NA", "109.1G", "NA", "NA"),
        "RecallTree": PaperRow("1610s", "24s", "178M", "7.9%", "<1%"),
        "FastXML": PaperRow("10646s", "453s", "949M", "11.1%", "4.6%"),
        "PfastReXML": PaperRow("21702s", "871s", "947M", "12.1%", "5.63%"),
        "PD-Sparse": PaperRow("16309s", "382s", "12.4G", "15.6%", "9.91%"),
        _DS: PaperRow("1290s", "2577s", "3.6G", "21.5%", "13.3%"),
    },
    settings={
        "OVA": {"C": 1},
        "RecallTree": {"b": 30, "l": 0.7, "loss_function": "Logistic", "passes": 5},
        "FastXML": {"t": 50, "c": 10},
        "PfastReXML": {"t": 100, "c": 10},
        "PD-Sparse": {"l": 0.001, "Hashing": "multiTrainHash"},
    },
)

_WIKI_50K = Preset(
    name="WIKI-50K",
    n_classes=50_000,
    n_train=1_102_754,
    n_test=276_939,
    n_heldout=5_000,
    n_terms=951_558,
    examples_per_class=1,
    adversaries=5,
    candidates=10,
    results={
        "OVA": PaperRow("NA", "NA", "330G", "NA", "NA"),
        "M-SVM": PaperRow("NA", "NA", "330G", "NA", "NA"),
        "RecallTree": PaperRow("4188s", "45s", "226M", "17.9%", "5.5%"),
        "FastXML": PaperRow("30459s", "1110s", "1327M", "25.8%", "14.6%"),
        "PfastReXML": PaperRow("48739s", "2461s", "1781M", "27.3%", "16.3%"),
        "PD-Sparse": PaperRow("41091s", "790s", "35G", "33.8%", "23.4%"),
        _DS: PaperRow("3723s", "4083s", "5G", "33.4%", "24.5%"),
    },
    settings={
        "RecallTree": {"b": 30, "l": 0.5, "loss_function": "Hinge", "passes": 5},
        "FastXML": {"t": 100, "c": 10},
        "PfastReXML": {"t": 200, "c": 10},
        "PD-Sparse": {"l": 0.0001, "Hashing": "multiTrainHash"},
    },
)

_WIKI_100K = Preset(
    name="WIKI-100K",
    n_classes=100_000,
    n_train=2_195_530,
    n_test=550_133,
    n_heldout=5_000,
    n_terms=1_271_710,
    examples_per_class=1,
    adversaries=10,
    candidates=10,
    results={
        "OVA": PaperRow("NA", "NA", "1017G", "NA", "NA"),
        "M-SVM": PaperRow("NA", "NA", "1017G", "NA", "NA"),
        "RecallTree": PaperRow("8593s", "90s", "370M", "8.4%", "1.4%"),
        "FastXML": PaperRow("42359s", "1687s", "2622M", "15%", "8%"),
        "PfastReXML": PaperRow("73371s", "3210s", "2834M", "16.1%", "9%"),
        "PD-Sparse": PaperRow("155633s", "3121s", "40.3G", "22.2%", "15.1%"),
        _DS: PaperRow("9264s", "20324s", "9.8G", "25%", "17.8%"),
    },
    settings={
        "RecallTree": {"b": 28, "l": 0.5, "loss_function": "Hinge", "passes": 5},
        "FastXML": {"t": 50, "c": 10},
        "PfastReXML": {"t": 100, "c": 10},
        "PD-Sparse": {"l": 0.01, "Hashing": "multiTrainHash"},
    },
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "lshtc1": _LSHTC1,
        "dmoz": _DMOZ,
        "wiki-small": _WIKI_SMALL,
        "wiki-50k": _WIKI_50K,
        "wiki-100k": _WIKI_100K,
    }
)


def find_preset(name: str) -> Preset:
    """Return the preset of a name, in capital or small letters.

    Raises
    ------
    ValueError
        If there is none; the message lists the names.

    Examples
    --------
    >>> find_preset("DMOZ").adversaries
    27
    """
    try:
        return PRESETS[name.lower()]
    except KeyError:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}; got {name!r}.") from None


def load_preset_files(
    preset: str | Preset,
    train_path: str | os.PathLike[str],
    test_path: str | os.PathLike[str],
) -> CountDataset:
    """Read a user's copy of a collection, two LSHTC files that number classes and terms alike.

    Documents of several classes are replicated once per class in both files, as in the paper.

    Parameters
    ----------
    preset : str or Preset
        One of `PRESETS`. The files need not match its sizes: the challenges came in several
        versions.
    train_path, test_path : str or path-like
        Files for `read_lshtc`.

    Returns
    -------
    dataset : CountDataset
        Classes of training in ascending order of label, then those that only the test file has.
        Their documents stay in, since no system can get them right; ``n_unseen`` counts them.
        Column j is term number j.

    Raises
    ------
    DataFormatError
        If a line cannot be read, or if no test document has a class of the training file.
    """
    if isinstance(preset, str):
        find_preset(preset)
    train, test = read_lshtc(train_path), read_lshtc(test_path)
    train_classes, y_train = np.unique(train.y, return_inverse=True)
    classes = np.concatenate([train_classes, np.setdiff1d(test.y, train_classes)])
    if classes.size - train_classes.size == np.unique(test.y).size:
        reason = "no document has a class of the training file"
        hint = "the challenges' own test files hide the labels, so set aside training lines instead"
        raise DataFormatError(test_path, f"{reason}; {hint}")
    order = np.argsort(classes)
    n_terms = max(train.X.shape[1], test.X.shape[1])
    return CountDataset(
        X_train=_widen(train, n_terms),
        y_train=y_train,
        X_test=_widen(test, n_terms),
        y_test=order[np.searchsorted(classes, test.y, sorter=order)],
        classes=classes,
        terms=np.arange(n_terms),
    )


def _widen(counts: LabelledCounts, n_terms: int) -> csr_array[np.float64]:
    """Return the counts with more columns, sharing memory."""
    X = counts.X
    return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_terms))
