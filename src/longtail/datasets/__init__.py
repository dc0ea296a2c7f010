"""Data in: the embedded WordNet set, readers for sparse data files and tables.

====================== =====================================================
`load_wordnet`         text and class names of the embedded set
`load_wordnet_counts`  the same as term counts and class ids
`read_svmlight`        svmlight and libsvm files
`read_lshtc`           files of the LSHTC challenges
`read_extreme`         files of the Extreme Classification Repository
`Table`                tables of text for `read_text_chunks`
`Limits`               how much of a file is believed
`check_documents`      what is odd about labelled documents
====================== =====================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longtail.datasets.checking import DataCheck, check_documents
    from longtail.datasets.embedded import load_wordnet, load_wordnet_counts, load_wordnet_records
    from longtail.datasets.limits import Limits
    from longtail.datasets.readers import read_extreme, read_lshtc, read_svmlight
    from longtail.datasets.records import CountDataset, LabelledCounts, TextDataset
    from longtail.datasets.tables import Table, read_text_chunks
    from longtail.exceptions import DataFormatError

__all__ = [
    "CountDataset",
    "DataCheck",
    "DataFormatError",
    "LabelledCounts",
    "Limits",
    "Table",
    "TextDataset",
    "check_documents",
    "load_wordnet",
    "load_wordnet_counts",
    "load_wordnet_records",
    "read_extreme",
    "read_lshtc",
    "read_svmlight",
    "read_text_chunks",
]

# Public name -> module; loaded on first use, so that a table is opened before numba is imported.
_MODULES = {
    "CountDataset": "longtail.datasets.records",
    "DataCheck": "longtail.datasets.checking",
    "DataFormatError": "longtail.exceptions",
    "LabelledCounts": "longtail.datasets.records",
    "Limits": "longtail.datasets.limits",
    "Table": "longtail.datasets.tables",
    "TextDataset": "longtail.datasets.records",
    "check_documents": "longtail.datasets.checking",
    "load_wordnet": "longtail.datasets.embedded",
    "load_wordnet_counts": "longtail.datasets.embedded",
    "load_wordnet_records": "longtail.datasets.embedded",
    "read_extreme": "longtail.datasets.readers",
    "read_lshtc": "longtail.datasets.readers",
    "read_svmlight": "longtail.datasets.readers",
    "read_text_chunks": "longtail.datasets.tables",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module 'longtail.datasets' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names although they are not loaded yet."""
    return sorted(__all__)
