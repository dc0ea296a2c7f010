"""Model files: named arrays and a manifest, in one file that is safe to open.

In: a kind, parameters (plain JSON) and named arrays. Out: one file, written beside its target and
renamed into place; or the same things back, the arrays as private views of the mapped file. This
room knows no estimator. ``docs/model-format.md`` gives the layout byte by byte.

Reading is: read, audit, only then construct. Nothing that a file says is believed before it is
checked, no code is loaded from it, and whatever is wrong with it is a `ModelFileError`.

============= ==========================================================
`model_file`  an opened file, what is wrong with one, texts in arrays
`writing`     `write_model`
`reading`     `open_model`, `read_checksum`
`layout`      what both share: places and lengths, names, checksums
`strict_json` the JSON of the manifest
============= ==========================================================
"""

from longtail.exceptions import ModelFileError
from longtail.store.layout import FORMAT_NUMBER
from longtail.store.model_file import ModelFile, pack_texts
from longtail.store.reading import open_model, read_checksum
from longtail.store.writing import sync_folder, write_model

__all__ = [
    "FORMAT_NUMBER",
    "ModelFile",
    "ModelFileError",
    "open_model",
    "pack_texts",
    "read_checksum",
    "sync_folder",
    "write_model",
]
