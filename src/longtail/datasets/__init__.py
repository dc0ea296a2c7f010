"""Data in: the embedded WordNet set, readers for sparse data files and tables.

====================== =====================================================
`load_wordnet`         text and class names of the embedded set
`load_wordnet_counts`  the same as term counts and class ids
`read_svmlight`        svmlight and libsvm files
`read_lshtc`           files of the LSHTC challenges
`read_extreme`         files of the Extreme Classification Repository
`Table`                tables of text for `read_text_chunks`
`Limits`               bounds on what a file may hold
`check_documents`      what is odd about labelled documents
====================== =====================================================

Text: `tables` reads rows from `delimited` (CSV, TSV) and `columns` (JSON lines, Parquet). Counts:
`readers` reads whole files and `count_chunks` chunks of them, with the grammar of `rows`. Both get
their bytes from `streams`, return what is in `records`, and keep to `limits`.
"""

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
