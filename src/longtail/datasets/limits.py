"""Limits on files: small hostile input must not take large memory."""

from __future__ import annotations

from dataclasses import dataclass, fields

# Compressed files may grow this far whatever their ratio; short files of repeated text do.
FREE_EXPANSION = 1 << 26


@dataclass(frozen=True)
class Limits:
    """Limits beyond which a reader raises a `DataFormatError` that names the limit.

    Parameters
    ----------
    row : int, default=16,000,000
        Bytes of a line, and characters of a row or a field. Documents are shorter; what is longer
        is binary data or a quote that is never closed.
    label : int, default=1,000
        Characters of a label. Arrays of labels are as wide as the longest one.
    terms : int, default=10,000,000
        Number of terms of a sparse file; a model has arrays of that length. The largest public
        collections have about 3 million.
    expansion : int, default=200
        How many times larger than the compressed file its content may be, beyond the first 64 MiB.
        Text shrinks to a third or a tenth.

    Examples
    --------
    >>> Limits(label=50).label
    50
    """

    row: int = 16_000_000
    label: int = 1_000
    terms: int = 10_000_000
    expansion: int = 200

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"the limit {limit.name} must be an integer above 0; got {value}.")


DEFAULT_LIMITS = Limits()
