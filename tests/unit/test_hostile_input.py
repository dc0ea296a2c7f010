"""Small hostile files: refused with one error, in bounded memory and linear time."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from longtail.datasets import DataFormatError, Limits, Table, read_svmlight, streams
from longtail.datasets.count_chunks import read_count_chunks
from longtail.datasets.tables import read_text_chunks

# Prints the outcome and by how many megabytes the process grew while reading.
PROBE = """
import resource, sys
from longtail.datasets import Limits, Table, read_text_chunks
from longtail.datasets.count_chunks import read_count_chunks
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def read(path):
    if ".svm" in path:
        return sum(chunk.content.shape[0] for chunk in read_count_chunks(path))
    return sum(len(chunk.texts) for chunk in read_text_chunks(Table(path, ["body"], "genus")))
read(sys.argv[1])
before = peak()
try:
    said = read(sys.argv[2])
except ValueError as error:
    said = f"{type(error).__name__} {error}"
print(round(peak() - before), said)
"""


def probe(small, hostile):
    """Read a small file, then a hostile one, in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", PROBE, str(small), str(hostile)],
        capture_output=True,
        text=True,
        check=True,
    )
    grown, said = result.stdout.split(" ", 1)
    return int(grown), said


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text("genus,body\nOvis,sheep\n")
    return path


def write_zeros(path, opened, n_megabytes=300):
    with opened(path, "wb") as file:
        file.write(b"genus,body\nOvis,")
        for _ in range(n_megabytes):
            file.write(bytes(1 << 20))
    return path


@pytest.mark.parametrize(
    ("ending", "opened"), [("xz", lzma.open), ("bz2", bz2.open), ("gz", gzip.open)]
)
def test_a_line_without_end(small, tmp_path, ending, opened):
    grown, said = probe(small, write_zeros(tmp_path / f"zeros.csv.{ending}", opened, 60))
    assert "line 2: the line is longer than 16,000,000 bytes" in said
    assert grown < 100


def test_a_long_last_line_is_not_called_an_open_quote(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("genus,body\nOvis," + "x" * 300)
    wanted = Table(path, ["body"], "genus", limits=Limits(row=200))
    with pytest.raises(DataFormatError, match="line 2: the line is longer than 200"):
        list(read_text_chunks(wanted))
    path.write_text('genus,body\nOvis,"' + "x\n" * 300)
    with pytest.raises(DataFormatError, match="line 2: a quote is opened and never closed"):
        list(read_text_chunks(wanted))


def test_a_zstd_frame_that_expands(small, tmp_path):
    zstandard = pytest.importorskip("zstandard")
    path = write_zeros(tmp_path / "zeros.csv.zst", zstandard.open)
    assert path.stat().st_size < 100_000
    grown, said = probe(small, path)
    assert "the line is longer" in said
    assert grown < 100


def write_large_dictionary(path, n_megabytes):
    """Write an xz file whose header asks for a dictionary of so many megabytes."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": n_megabytes << 20}]
    path.write_bytes(lzma.compress(b"genus,body\nOvis,sheep\n", filters=filters))
    return path


def test_an_xz_file_that_asks_for_a_large_dictionary(tmp_path):
    small = write_large_dictionary(tmp_path / "small.csv.xz", 64)  # that of xz -9
    assert [c.texts for c in read_text_chunks(Table(small, ["body"]))] == [["sheep"]]
    large = write_large_dictionary(tmp_path / "large.csv.xz", 1024)
    assert large.stat().st_size < 200
    with pytest.raises(DataFormatError, match="would take more than 130 MiB; compress it with"):
        list(read_text_chunks(Table(large, ["body"])))


def test_an_xz_file_of_several_streams(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "_XZ_BYTES", 7)
    rows = [f"Ovis,sheep {i}\n".encode() for i in range(50)]
    pieces = [lzma.compress(b"genus,body\n"), *map(lzma.compress, rows)]
    path = tmp_path / "rows.csv.xz"
    path.write_bytes((b"\0" * 4).join(pieces))
    (chunk,) = read_text_chunks(Table(path, ["body"]))
    assert list(chunk.texts) == [f"sheep {i}" for i in range(50)]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataFormatError, match="xz stream is damaged or cut short"):
        list(read_text_chunks(Table(path, ["body"])))


def test_an_endless_device_is_refused():
    if not os.path.exists("/dev/zero"):
        pytest.skip("there is no /dev/zero")
    with pytest.raises(DataFormatError, match="line 1: the line is longer than"):
        list(read_text_chunks(Table("/dev/zero", ["1"], format="tsv", header=False)))


def test_many_short_lines_from_a_small_file(tmp_path, monkeypatch):
    """The ratio is noticed where no line is too long."""
    monkeypatch.setattr(streams, "FREE_EXPANSION", 1 << 20)
    monkeypatch.setattr(streams, "BLOCK_BYTES", 1 << 18)
    path = tmp_path / "rows.csv.xz"
    path.write_bytes(lzma.compress(b"body\n" + b"sheep and goats\n" * 100_000))
    with pytest.raises(DataFormatError, match="xz stream expands to more than 200 times"):
        list(read_text_chunks(Table(path, ["body"])))
    generous = Table(path, ["body"], limits=Limits(expansion=100_000))
    assert sum(len(chunk.texts) for chunk in read_text_chunks(generous)) == 100_000


def test_a_parquet_column_that_repeats_a_long_value(small, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    values = pa.DictionaryArray.from_arrays(
        pa.array([0] * 5000, pa.int32()), pa.array(["x" * 500_000])
    )
    table = pa.table({"genus": ["Ovis"] * 5000, "body": values})
    path = tmp_path / "long.parquet"
    parquet.write_table(table, path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 200_000
    good = tmp_path / "good.parquet"
    parquet.write_table(pa.table({"genus": ["Ovis"], "body": ["sheep"]}), good)
    grown, said = probe(good, path)
    assert "expands too far: its first 1" in said  # 64 MiB are 134 rows of it
    assert grown < 200
    believed = Table(path, ["body"], "genus", limits=Limits(expansion=10**8))
    assert sum(len(chunk.texts) for chunk in read_text_chunks(believed)) == 5000


def write_lists(path, values, n_rows, n_entries):
    """Write rows with the same list of the first value, so many times, as their labels."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    codes = pa.array(np.zeros(n_rows * n_entries, np.int32))
    offsets = pa.array(np.arange(0, n_rows * n_entries + 1, n_entries, np.int32))
    lists = pa.ListArray.from_arrays(
        offsets, pa.DictionaryArray.from_arrays(codes, pa.array(values))
    )
    table = pa.table({"genus": lists, "body": ["sheep"] * n_rows})
    parquet.write_table(table, path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 10_000


def test_parquet_lists_that_repeat_a_long_value(small, tmp_path):
    path, good = tmp_path / "long.parquet", tmp_path / "good.parquet"
    write_lists(path, ["x" * 900_000], 5000, 1)
    write_lists(good, ["Ovis"], 1, 1)
    grown, said = probe(good, path)
    assert "longer than 1,000 characters" in said
    assert grown < 200


def test_parquet_lists_from_nothing(tmp_path):
    path = tmp_path / "lists.parquet"
    write_lists(path, ["Ovis"], 3, 1_000_000)
    with pytest.raises(DataFormatError, match=r"column 'genus.list.element' has 3,000,000 values"):
        list(read_text_chunks(Table(path, ["body"], "genus")))


@pytest.mark.parametrize("labels", [[["a", "b"], None, ["b"]], [[1, 2], None, [2]]])
def test_parquet_lists_come_as_they_are(tmp_path, labels):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path, skipped = tmp_path / "lists.parquet", []
    parquet.write_table(pa.table({"genus": labels, "body": ["one", "two", "three"]}), path)
    table = Table(path, ["body"], "genus", on_bad_row=skipped.append)
    (chunk,) = read_text_chunks(table)
    assert chunk.labels == [[str(label) for label in found] for found in labels if found]
    assert [bad.line for bad in skipped] == [2]


def test_many_labels_of_which_the_last_is_there_twice(tmp_path):
    """Each is looked at once; counting each among all took minutes."""
    labels = [f"l{i}" for i in range(200_000)]
    path = tmp_path / "many.jsonl"
    path.write_text(json.dumps({"body": "sheep", "genus": [*labels, labels[-1]]}) + "\n")
    with pytest.raises(DataFormatError, match="the label 'l199999' occurs twice"):
        list(read_text_chunks(Table(path, ["body"], "genus")))


def test_a_parquet_column_that_expands(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table(
        {"genus": ["Ovis"] * 200, "body": ["x" * 500_000 + str(i) for i in range(200)]}
    )
    path = tmp_path / "pages.parquet"
    parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    with pytest.raises(DataFormatError, match="expands too far: column 'body' does"):
        list(read_text_chunks(Table(path, ["body"], "genus")))


def test_a_parquet_page_that_lies(tmp_path):
    """Its header says a million bytes, footer and content say less."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"genus": ["Ovis"] * 2000, "body": ["many words " * 10] * 2000})
    path = tmp_path / "pages.parquet"
    parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    column = parquet.read_metadata(path).row_group(0).column(1)
    content = bytearray(path.read_bytes())
    size = slice(column.data_page_offset + 3, column.data_page_offset + 6)  # after the page type
    assert [byte >> 7 for byte in content[size]] == [1, 1, 0]  # a number of three bytes
    content[size] = b"\xfe\xff\x7f"
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match="not a sound Parquet file: Corrupt"):
        list(read_text_chunks(Table(path, ["body"], "genus")))


def test_parquet_rows_from_nothing(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"genus": ["Ovis"] * 300_000, "body": ["x"] * 300_000}), path)
    wanted = Table(path, ["body"], "genus", limits=Limits(expansion=1))
    assert path.stat().st_size < 100_000
    assert sum(len(chunk.texts) for chunk in read_text_chunks(wanted)) == 300_000
    monkeypatch.setattr("longtail.datasets.columns._FREE_ROWS", 100_000)
    with pytest.raises(DataFormatError, match=r"expands too far: its .* bytes hold 300,000 rows"):
        list(read_text_chunks(wanted))


def test_a_term_number(tmp_path):
    path = tmp_path / "terms.svm"
    path.write_text("1 1:1\n2 2147483646:1\n")
    message = (
        r"line 2: the term number in '2147483646:1' is out of range; allowed are 1 to 10000000"
    )
    with pytest.raises(DataFormatError, match=message):
        list(read_count_chunks(path))
    with pytest.raises(DataFormatError, match="out of range"):
        read_svmlight(path)
    [chunk] = read_count_chunks(path, n_terms=3)  # a model leaves out what it does not know
    assert chunk.content.toarray().tolist() == [[1, 0, 0], [0, 0, 0]]
    wide = Limits(terms=2**31 - 2)
    assert read_svmlight(path, zero_based=False, limits=wide).X.shape == (2, 2**31 - 2)


def test_labels_and_fields(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(f"genus,body\n{'O' * 1001},sheep\nOvis,{'x' * 200}\nFelis,cat\n")
    with pytest.raises(DataFormatError, match=r"line 2: the label in .* 1,000 char.*limit 'label'"):
        list(read_text_chunks(Table(path, ["body"], "genus")))
    bad = []
    narrow = Table(path, ["body"], "genus", on_bad_row=bad.append, limits=Limits(row=100))
    with pytest.raises(ValueError, match="limit row must be"):
        Limits(row=0)
    [chunk] = read_text_chunks(narrow)
    assert chunk.texts == ["cat"]
    assert [row.line for row in bad] == [2, 3]


def test_bad_lines_of_counts_cost_one_look_each(tmp_path, monkeypatch):
    from longtail.datasets import rows

    looked = []
    read_lines = rows._read_lines
    monkeypatch.setattr(
        rows,
        "_read_lines",
        lambda lines, *rest: looked.append(len(lines)) or read_lines(lines, *rest),
    )
    path = tmp_path / "bad.svm"
    path.write_text("1 x\n2 1:1\n" * 2000)
    bad = []
    [chunk] = read_count_chunks(path, on_bad_row=bad.append)
    assert len(bad) == 2000
    assert chunk.lines == list(range(2, 4001, 2))
    assert sum(looked) <= 2 * 4000


def test_a_pipe_without_writer_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "PIPE_PATIENCE", 0.05)
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with pytest.raises(DataFormatError, match="nothing was written to it"):
        list(read_text_chunks(Table(pipe, ["body"])))


def test_a_pipe_is_read(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("body\nsheep\n",))
    writer.start()
    [chunk] = read_text_chunks(Table(pipe, ["body"]))
    writer.join()
    assert chunk.texts == ["sheep"]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8-sig"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes("genus,body\nOvis,schöne Schafe\n".encode(encoding))
    [chunk] = read_text_chunks(Table(path, ["body"], "genus", encoding=encoding))
    assert chunk.texts == ["schöne Schafe"]
    with pytest.raises(ValueError, match="encoding must be one that Python knows"):
        list(read_text_chunks(Table(path, ["body"], encoding="klingon")))
