"""Model files and journals: what is kept on disk, and the checks that come before it is used.

============= ============================================================================
`container`   `open_model`, `write_model`: named arrays and a manifest in one safe file
`manifest`    header and manifest of that file: layout, names, checksums, audit
`strict_json` the JSON of the manifest
`texts`       texts of any length in arrays
`files`       opening regular files, replacing files at once, cleaning up after kills
`schema`      every array and parameter of every saved state: dtype, shape, range
`specs`       what the schema is written in
`checks`      the checks of arrays and values against it
`contents`    what a file of an estimator holds, checked as a whole
`state_io`    from a state to named arrays and back, as the schema says
`journal`     changes since a model was saved; `changes`, `journal_rows` and `journal_database` are
              its parts, `forking` lets forks wait for it
============= ============================================================================
"""

from longtail.exceptions import ModelFileError
from longtail.store.container import ModelFile, open_model, read_checksum, write_model
from longtail.store.manifest import FORMAT_NUMBER
from longtail.store.texts import pack_texts

__all__ = [
    "FORMAT_NUMBER",
    "ModelFile",
    "ModelFileError",
    "open_model",
    "pack_texts",
    "read_checksum",
    "write_model",
]
