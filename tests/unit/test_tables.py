"""Tables in all formats, whole, damaged and odd."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import subprocess
import sys

import numpy as np
import pytest

from longtail.datasets import DataFormatError, Limits, read_svmlight, tables
from longtail.datasets.count_chunks import read_count_chunks
from longtail.datasets.tables import Table, find_format, read_text_chunks


def read(path, text=("body",), label="genus", **options):
    """All rows of a table: texts, labels, lines."""
    chunks = list(read_text_chunks(Table(path, text, label, **options)))
    return (
        [text for chunk in chunks for text in chunk.texts],
        [label for chunk in chunks for label in chunk.labels],
        [line for chunk in chunks for line in chunk.lines],
    )


def read_skipping(path, text=("body",), label="genus", **options):
    bad = []
    return read(path, text, label, on_bad_row=bad.append, **options), bad


@pytest.fixture
def write(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_csv(write):
    path = write('genus,id,body\nOvis,1,"wild sheep, ""argali"""\nFelis,2,cat\n')
    assert read(path) == (['wild sheep, "argali"', "cat"], ["Ovis", "Felis"], [2, 3])
    texts, labels, _ = read(path, ["body", "id"], None)
    assert texts == ['wild sheep, "argali" 1', "cat 2"]
    assert labels == []
    [chunk] = read_text_chunks(Table(path, ["body"], keep=["id", "genus"]))
    assert chunk.kept == [["1", "Ovis"], ["2", "Felis"]]
    assert chunk.n_bytes == path.stat().st_size


def test_newlines_in_quotes_keep_line_numbers_right(write):
    path = write('genus,body\nOvis,"wild\nsheep\n"\n\nFelis,cat\n')
    assert read(path) == (["wild\nsheep\n", "cat"], ["Ovis", "Felis"], [2, 6])


def test_line_ends_and_byte_order_mark(write):
    path = write(b"\xef\xbb\xbfgenus,body\r\nOvis,sheep\r\n\r\nFelis,cat")
    assert read(path) == (["sheep", "cat"], ["Ovis", "Felis"], [2, 4])
    path = write(b"\xef\xbb\xbfgenus\tbody\r\nOvis\tsheep\r\n", "table.tsv")
    assert read(path) == (["sheep"], ["Ovis"], [2])


def test_only_a_newline_ends_a_line(write):
    text = "a\u2028b\x0bc\x1cd\x85e"
    path = write(f"genus\tbody\nOvis\t{text}\nFelis\tcat\n", "table.tsv")
    assert read(path) == ([text, "cat"], ["Ovis", "Felis"], [2, 3])


def test_tsv_has_no_quotes_unless_asked(write):
    path = write('Ovis\t"wild" sheep\nFelis\t"cat"\n', "table.tsv")
    texts, labels, lines = read(path, ["2"], "1", header=False)
    assert texts == ['"wild" sheep', '"cat"']
    assert (labels, lines) == (["Ovis", "Felis"], [1, 2])
    path = write('genus\tbody\nOvis\t"wild\tsheep"\n', "table.tsv")
    assert read(path, quotes=True)[0] == ["wild\tsheep"]
    with pytest.raises(DataFormatError, match=r"line 2: the row has 3 fields.*in quotes, say so"):
        read(path)


def test_delimiter(write):
    path = write("genus;body\nOvis;wild, sheep\n")
    assert read(path, delimiter=";")[0] == ["wild, sheep"]
    with pytest.raises(DataFormatError, match=r"no column 'body'; there .* the delimiter ';'"):
        read(path)
    with pytest.raises(ValueError, match="delimiter must be one character; got '::'"):
        read(path, delimiter="::")


def test_columns(write):
    path = write("genus,body,note,body\nOvis,sheep,x,y\n")
    with pytest.raises(DataFormatError, match=r"columns 2 and 4 are both called 'body'.*number"):
        read(path)
    assert read(path, ["2"])[0] == ["sheep"]
    with pytest.raises(DataFormatError, match=r"no column 'nte'; there are .* mean 'note'"):
        read(path, ["nte"])
    with pytest.raises(DataFormatError, match="no column '5'"):
        read(path, ["5"])
    with pytest.raises(DataFormatError, match="given by number, here from 1 to 4; got 'body'"):
        read(path, header=False)
    with pytest.raises(ValueError, match="text must be a list"):
        read(path, "body")


def test_a_column_called_by_a_number_is_found_by_name(write):
    assert read(write("2,1\nsheep,Ovis\n"), ["2"], "1") == (["sheep"], ["Ovis"], [2])


def test_empty_files(write):
    with pytest.raises(DataFormatError, match="is empty"):
        read(write(""))
    assert read(write("genus,body\n")) == ([], [], [])
    assert read(write("\n\n", "table.jsonl")) == ([], [], [])
    with pytest.raises(DataFormatError, match="UTF-16"):
        read(write("genus,body\n".encode("utf-16")))


BAD_CSV = (
    "genus,body\n"
    "Ovis,sheep\n"
    "Felis,cat,too much\n"
    ",nameless\n"
    "Canis\n"
    'Lupus,"never closed\n'
    'Vulpes,"fox"\n'
    'Ursus,"bear"y\n'
    '"  ",blank\n'
    "Equus,horse\n"
)


def test_bad_rows_are_errors_with_file_and_line(write):
    path = write(BAD_CSV)
    with pytest.raises(DataFormatError, match=r"table\.csv, line 3: the row has 3 fields.* has 2"):
        read(path)
    with pytest.raises(DataFormatError, match="line 2: the label in column 'genus' is missing"):
        read(write("genus,body\n,sheep\n"))
    with pytest.raises(DataFormatError, match="line 2: a quote is opened and never closed"):
        read(write('genus,body\nOvis,"sheep\nFelis,cat\n'))
    with pytest.raises(DataFormatError, match=r"line 2: .*goes on after its closing quote"):
        read(write('genus,body\nOvis,"sheep"x\n'))
    with pytest.raises(DataFormatError, match="line 2: a carriage return"):
        read(write("genus,body\nOvis,sh\reep\n"))


def test_bad_rows_are_skipped_and_told(write):
    (texts, labels, lines), bad = read_skipping(write(BAD_CSV))
    assert texts == ["sheep", "horse"]
    assert labels == ["Ovis", "Equus"]
    assert lines == [2, 10]
    assert [row.line for row in bad] == [3, 4, 5, 6, 8, 9]
    assert "3 fields" in bad[0].reason
    assert bad[0].start == "Felis,cat,too much"
    assert bad[3].start == 'Lupus,"never closed'


def test_a_quote_that_is_never_closed_costs_what_follows(write):
    rows = "".join(f"Ovis,sheep {i}\n" for i in range(500))
    (texts, _, lines), [bad] = read_skipping(write('genus,body\nOvis,ewe\nFelis,"cat\n' + rows))
    assert (texts, lines) == (["ewe"], [2])
    assert bad.line == 3
    assert "a quote is opened and never closed" in bad.reason
    assert "(lines 3 to 503 are left out)" in bad.reason


def test_invalid_utf8(write):
    content = b"genus,body\nOvis,sh\xffeep\nFelis,c\xc3\xa4t\n"
    with pytest.raises(DataFormatError, match="line 2: column 'body' is not valid UTF-8"):
        read(write(content))
    (texts, _, _), bad = read_skipping(write(content))
    assert texts == ["cät"]
    assert bad[0].line == 2
    bad[0].start.encode()  # can be written


def test_a_long_field(write):
    text = "sheep " * 50_000
    assert read(write(f'genus,body\nOvis,"{text}"\n'))[0] == [text]


def test_json_lines(write):
    rows = [
        {"genus": "Ovis", "body": "sheep", "n": 1},
        {"genus": 7, "body": None},
        {"genus": 7.0, "body": 1.5},
    ]
    path = write("\n".join(map(json.dumps, rows)) + "\n\n", "table.jsonl")
    assert read(path) == (["sheep", "", "1.5"], ["Ovis", "7", "7"], [1, 2, 3])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"genus": "Ovis", "body"', "the line is not JSON"),
        ('["Ovis", "sheep"]', "one object per line.*found a list"),
        ('{"genus": "Ovis"}', "no column 'body'; there are 'genus'"),
        ('{"genus": null, "body": "x"}', "label in column 'genus' is missing"),
        ('{"genus": "Ovis", "body": ["x"]}', "column 'body' holds a list"),
        ('{"genus": "Ovis", "body": "\\ud800"}', "column 'body' is not valid UTF-8"),
        ("[" * 100_000, "the line is not JSON"),
        ('{"genus": ' + "1" * 5000 + ', "body": "x"}', "the line is not JSON"),
    ],
)
def test_bad_json(write, line, reason):
    good = '{"genus": "Felis", "body": "cat"}'
    path = write(f"{good}\n{line}\n{good}\n", "table.jsonl")
    with pytest.raises(DataFormatError, match=f"line 2: .*{reason}"):
        read(path)
    (texts, _, lines), bad = read_skipping(path)
    assert texts == ["cat", "cat"]
    assert lines == [1, 3]
    assert len(bad) == 1
    assert len(bad[0].start) <= 80


@pytest.fixture
def parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def write(columns, name="table.parquet"):
        parquet.write_table(pa.table(columns), tmp_path / name)
        return tmp_path / name

    return write


def test_parquet(parquet):
    path = parquet({"genus": ["Ovis", "Felis"], "n": [1, 2], "body": ["sheep", None]})
    assert read(path) == (["sheep", ""], ["Ovis", "Felis"], [1, 2])
    assert read(path, ["body", "n"], "n") == (["sheep 1", " 2"], ["1", "2"], [1, 2])
    with pytest.raises(DataFormatError, match="no column 'text'; there are 'genus', 'n', 'body'"):
        read(path, ["text"])


def test_parquet_numbers_dictionaries_and_bad_rows(parquet):
    import pyarrow as pa

    names = pa.array(["Ovis", "Ovis", None]).dictionary_encode()
    path = parquet({"genus": names, "body": ["a", "b", "c"], "list": [[1], [2], [3]]})
    (texts, labels, lines), bad = read_skipping(path)
    assert (texts, labels, lines) == (["a", "b"], ["Ovis", "Ovis"], [1, 2])
    assert [row.line for row in bad] == [3]
    with pytest.raises(DataFormatError, match=r"column 'list' holds list<.*expected strings"):
        read(path, ["list"])


def test_parquet_with_invalid_utf8(parquet):
    import pyarrow as pa

    body = pa.array([b"sheep", b"c\xffat", None], pa.binary()).view(pa.string())
    path = parquet({"genus": ["Ovis", "Felis", "Canis"], "body": body})
    (texts, labels, _), bad = read_skipping(path)
    assert (texts, labels) == (["sheep", ""], ["Ovis", "Canis"])
    assert bad[0].reason == "column 'body' is not valid UTF-8; give the encoding, such as latin-1"


def test_parquet_that_is_none(write, parquet):
    with pytest.raises(DataFormatError, match="not a sound Parquet file"):
        read(write("genus,body\n", "table.parquet"))
    with pytest.raises(ValueError, match="not from standard input"):
        read("-", format="parquet")


@pytest.mark.parametrize("missing", ["pyarrow", "zstandard"])
def test_a_missing_package_names_the_extra(write, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    path = write(b"PAR1", "t.parquet") if missing == "pyarrow" else write(b"\x28\xb5\x2f\xfd")
    with pytest.raises(ImportError, match=rf"{missing}: pip install 'longtail\[data\]'"):
        read(path)


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zst"])
def test_compressed(write, ending):
    content = b"genus,body\nOvis,sheep\n"
    compress = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    if ending == "zst":
        compress["zst"] = pytest.importorskip("zstandard").ZstdCompressor().compress
    packed = compress[ending](content)
    assert read(write(packed, f"table.csv.{ending}"))[0] == ["sheep"]
    with pytest.raises(DataFormatError, match="damaged or cut short"):
        read(write(packed[:-3], f"table.csv.{ending}"))


def test_standard_input(write):
    path = write(b"genus,body\nOvis,sheep\n,x\n")
    code = (
        "from longtail.datasets.tables import *\n"
        "for c in read_text_chunks(Table('-', ['body'], 'genus', format='csv')): print(c.texts)"
    )
    with path.open("rb") as file:
        result = subprocess.run(
            [sys.executable, "-c", code], stdin=file, capture_output=True, text=True
        )
    assert "standard input, line 3: the label" in result.stderr


def test_formats():
    assert find_format("a.b.TSV.gz") == "tsv"
    assert find_format("-", "jsonl") == "jsonl"
    with pytest.raises(ValueError, match=r"ending of 'a\.xls' does not tell its format; known"):
        find_format("a.xls")
    with pytest.raises(ValueError, match=r"ending of 'train\.gz' does not tell"):
        find_format("train.gz")
    with pytest.raises(ValueError, match=r"standard input has no ending.*csv, tsv"):
        find_format("-")
    with pytest.raises(ValueError, match=r"format must be one of csv.*; got 'xls'"):
        find_format("a.csv", "xls")
    with pytest.raises(ValueError, match="svmlight files hold counts"):
        read_text_chunks(Table("a.svm", ["body"]))


def test_chunks_are_bounded(write, monkeypatch):
    monkeypatch.setattr(tables, "CHUNK_DOCUMENTS", 3)
    monkeypatch.setattr(tables, "CHUNK_CHARACTERS", 100)
    bodies = ["x"] * 7 + ["y" * 101, "z"]
    path = write("body\n" + "".join(f"{body}\n" for body in bodies))
    chunks = list(read_text_chunks(Table(path, ["body"])))
    assert [len(chunk.texts) for chunk in chunks] == [3, 3, 2, 1]
    assert [text for chunk in chunks for text in chunk.texts] == bodies


def test_a_file_is_not_read_whole(tmp_path):
    """The first chunk comes before the rest is read: the rest may be anything."""
    path = tmp_path / "table.csv"
    with path.open("wb") as file:
        file.write(b"genus,body\n")
        for _ in range(20):
            file.write(b"Ovis,sheep\n" * 100_000)
    chunk = next(read_text_chunks(Table(path, ["body"], "genus")))
    assert chunk.n_bytes < path.stat().st_size / 3


def test_counts_in_chunks_are_those_of_the_whole_file(tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.datasets.streams.BLOCK_BYTES", 200)
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(100):
        terms = np.sort(rng.choice(50, 5, replace=False)) + 1
        labels = ",".join(map(str, rng.choice(9, rng.integers(1, 3), replace=False)))
        lines.append(f"{labels} " + " ".join(f"{t}:{t % 3 + 1}" for t in terms))
    lines[10] += " # a comment"
    lines.insert(20, "# only a comment")
    path = tmp_path / "train.svm"
    path.write_text("\n".join(lines) + "\n")
    chunks = list(read_count_chunks(path, n_terms=50))
    assert len(chunks) > 5
    whole = read_svmlight(path, zero_based=False, n_terms=50)
    dense = np.vstack([chunk.content.toarray() for chunk in chunks])
    assert np.array_equal(dense, whole.X.toarray())
    assert np.array_equal(np.concatenate([chunk.labels for chunk in chunks]), whole.y)
    places = [i + 1 for i, line in enumerate(lines) if not line.startswith("#")]
    found = [line for chunk in chunks for line in chunk.lines]
    assert found == [places[document] for document in whole.documents]


def test_bad_counts(write):
    path = write("1 1:1\n2 2:x\n3 0:1\n\n4 3:1\n", "train.svm")
    with pytest.raises(DataFormatError, match="line 2: the count in '2:x' is not a number"):
        list(read_count_chunks(path))
    bad = []
    [chunk] = read_count_chunks(path, on_bad_row=bad.append)
    assert chunk.labels.tolist() == [1, 4]
    assert chunk.lines == [1, 5]
    assert [row.line for row in bad] == [2, 3]
    assert "must be read as zero-based" in bad[1].reason
    [chunk] = read_count_chunks(path, on_bad_row=bad.append, zero_based=True)
    assert chunk.labels.tolist() == [1, 3, 4]
    nothing = list(read_count_chunks(write("1 x\n", "train.svm"), on_bad_row=bad.append))
    assert nothing == []


def test_counts_without_labels_for_a_model_of_fewer_terms(write):
    path = write("1:1 9:1\n 2:1\n", "new.svm")
    [chunk] = read_count_chunks(path, labelled=False, n_terms=3)
    assert chunk.content.toarray().tolist() == [[1, 0, 0], [0, 1, 0]]
    assert len(chunk.labels) == 0


def test_the_csv_limit_is_only_raised(write):
    before = csv.field_size_limit(2 * Limits().row)
    try:
        read(write("genus,body\nOvis,sheep\n"))
        assert csv.field_size_limit() == 2 * Limits().row
    finally:
        csv.field_size_limit(max(before, Limits().row))


def sets_of(path, **options):
    """Return the label sets of all rows."""
    table = Table(path, ["body"], **options)
    return [labels for chunk in read_text_chunks(table) for labels in chunk.labels]


class TestLabelSets:
    """Label sets in tables: separators, several columns, arrays."""

    def test_separator(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("body,tags\nx,a; b;\ny,c\n")
        assert sets_of(path, label="tags", label_separator=";") == [["a", "b"], ["c"]]
        assert sets_of(path, label="tags") == ["a; b;", "c"]

    def test_several_columns_and_what_is_kept(self, tmp_path):
        path = tmp_path / "t.tsv"
        path.write_text("body\tone\ttwo\tid\nx\ta\tb\t1\ny\t\tc\t2\n")
        assert sets_of(path, label=["one", "two"]) == [["a", "b"], ["c"]]
        [chunk] = read_text_chunks(Table(path, ["body"], ["one", "two"], ["id"]))
        assert chunk.kept == [["1"], ["2"]]
        assert chunk.texts == ["x", "y"]

    def test_arrays(self, tmp_path):
        path = tmp_path / "t.jsonl"
        path.write_text('{"body": "x", "tags": ["a", 7], "id": 1}\n{"body": "y", "tags": ["b"]}\n')
        assert sets_of(path, label="tags") == [["a", "7"], ["b"]]
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        path = tmp_path / "t.parquet"
        table = pa.table({"tags": [["a", "b"], ["c"]], "body": ["x", "y"], "id": ["1", "2"]})
        parquet.write_table(table, path)
        assert sets_of(path, label="tags") == [["a", "b"], ["c"]]
        [chunk] = read_text_chunks(Table(path, ["body"], "tags", ["id"]))
        assert (chunk.texts, chunk.kept) == (["x", "y"], [["1"], ["2"]])
        with pytest.raises(DataFormatError, match="holds list"):
            next(read_text_chunks(Table(path, ["tags"])))

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ('{"body": "x", "tags": []}', "the label in column 'tags' is missing"),
            ('{"body": "x", "tags": null}', "one label here and lists in the rows before"),
            ('{"body": "x", "tags": "a"}', "one label here and lists in the rows before"),
            ('{"body": "x", "tags": ["a", null]}', "a list with a missing value"),
            ('{"body": "x", "tags": ["a", NaN]}', "a list with a missing value"),
            ('{"body": "x", "tags": ["a", "b", "a"]}', "'a' occurs twice"),
            ('{"body": "x", "tags": [["a"]]}', "holds a list; expected a string"),
            ('{"body": ["x"], "tags": ["a"]}', "'body' holds a list; expected a string"),
        ],
    )
    def test_bad_rows(self, tmp_path, row, reason):
        path = tmp_path / "t.jsonl"
        path.write_text('{"body": "y", "tags": ["a"]}\n' + row + "\n")
        with pytest.raises(DataFormatError, match=reason) as caught:
            sets_of(path, label="tags")
        assert caught.value.line == 2
        skipped = []
        assert sets_of(path, label="tags", on_bad_row=skipped.append) == [["a"]]
        assert reason in skipped[0].reason

    def test_a_list_among_single_labels(self, tmp_path):
        path = tmp_path / "t.jsonl"
        path.write_text('{"body": "y", "tags": "a"}\n{"body": "x", "tags": ["a"]}\n')
        with pytest.raises(DataFormatError, match="a list here and one label each"):
            sets_of(path, label="tags")
