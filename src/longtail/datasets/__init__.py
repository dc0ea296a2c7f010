"""Data in: the embedded WordNet set, readers for sparse data files, the paper's collections.

====================== =====================================================
`load_wordnet`         text and class names of the embedded set
`load_wordnet_counts`  the same as term counts and class numbers
`read_svmlight`        svmlight and libsvm files
`read_lshtc`           files of the LSHTC challenges
`read_extreme`         files of the Extreme Classification Repository
`PRESETS`              sizes, settings and results of the paper's collections
`load_preset_files`    a user's copy of such a collection
====================== =====================================================
"""

from longtail.datasets.embedded import load_wordnet, load_wordnet_counts
from longtail.datasets.presets import PRESETS, PaperRow, Preset, find_preset, load_preset_files
from longtail.datasets.readers import read_extreme, read_lshtc, read_svmlight
from longtail.datasets.records import CountDataset, LabelledCounts, TextDataset
from longtail.exceptions import DataFormatError

__all__ = [
    "PRESETS",
    "CountDataset",
    "DataFormatError",
    "LabelledCounts",
    "PaperRow",
    "Preset",
    "TextDataset",
    "find_preset",
    "load_preset_files",
    "load_wordnet",
    "load_wordnet_counts",
    "read_extreme",
    "read_lshtc",
    "read_svmlight",
]
