"""What was written to a table is read from it, whatever the text holds."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from longtail.datasets import DataFormatError
from longtail.datasets.tables import Table, read_text_chunks

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
labels = texts.filter(lambda label: label.strip())
rows = st.lists(st.tuples(labels, texts), max_size=8)


def read(content, name, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        chunks = list(read_text_chunks(Table(path, ["body"], "genus", **options)))
    found = [pair for chunk in chunks for pair in zip(chunk.labels, chunk.texts, strict=True)]
    return found, [line for chunk in chunks for line in chunk.lines]


@given(rows, st.sampled_from(["\n", "\r\n"]), st.sampled_from([",", ";", "\t"]))
def test_csv_round_trip(rows, end, delimiter):
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator=end, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerow(["genus", "body"])
    starts = []
    for row in rows:
        starts.append(buffer.getvalue().count("\n") + 1)
        writer.writerow(row)
    found, lines = read(buffer.getvalue().encode(), "t.csv", delimiter=delimiter)
    assert found == rows
    assert lines == starts


@given(rows, st.booleans())
def test_json_lines_round_trip(rows, ascii_only):
    lines = [
        json.dumps({"genus": label, "body": text}, ensure_ascii=ascii_only) for label, text in rows
    ]
    content = "".join(line + "\n" for line in lines).encode() or b"\n"
    found, numbers = read(content, "t.jsonl")
    assert found == rows
    assert numbers == list(range(1, len(rows) + 1))


@given(st.binary(max_size=200), st.sampled_from(["t.csv", "t.tsv", "t.jsonl"]))
def test_any_bytes_are_read_or_refused(content, name):
    """Whatever a file holds, rows are read or passed over; nothing else is raised."""
    bad = []
    try:
        found, lines = read(b"genus,body\tgenus\tbody\n" + content, name, on_bad_row=bad.append)
    except DataFormatError:
        return
    for label, text in found:
        (label + text).encode()
    assert not {row.line for row in bad} & set(lines)
    for row in bad:
        row.start.encode()
