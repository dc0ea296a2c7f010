"""Tables with several fields on the command line: every format, every command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longtail import load
from longtail.cli.app import app
from longtail.datasets import DataFormatError, Table, read_text_chunks
from tests.estimator.test_records import FIELDS, make_records

COLUMNS = (
    *("--text", "subject", "--text", "body", "--category", "brand"),
    *("--number", "price", "--categories", "tags", "--label", "class"),
)


def run(*arguments: Any, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.output


def write_table(path: Path, seed: int = 0, n: int = 120) -> Path:
    records, labels = make_records(n, seed)
    rows = [{**r, "class": label} for r, label in zip(records, labels, strict=True)]
    if path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)) + "\n")
        return path
    if path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(rows), path)
        return path
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writerow(rows[0])
        for row in rows:
            cells = [";".join(v) if isinstance(v, list) else v for v in row.values()]
            writer.writerow(["" if cell is None else cell for cell in cells])
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_every_format_gives_the_same_records(tmp_path: Path, ending: str) -> None:
    expected = write_table(tmp_path / "expected.jsonl")
    path = write_table(tmp_path / f"table.{ending}")
    table, other = Table(expected, [], "class", fields=FIELDS), Table(path, [], fields=FIELDS)
    texts = [text for chunk in read_text_chunks(table) for text in chunk.texts]
    assert texts == [text for chunk in read_text_chunks(other) for text in chunk.texts]
    assert json.loads(texts[0]).keys() <= FIELDS.keys()


def test_a_bad_value_is_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("subject,price\na,1\nb,cheap\nc,\n")
    table = Table(path, [], fields={"subject": "text", "price": "number"})
    with pytest.raises(DataFormatError, match=r"line 3.*field 'price' holds 'cheap'; expected a"):
        list(read_text_chunks(table))
    bad: list[Any] = []
    fields = {"subject": "text", "price": "number"}
    [chunk] = read_text_chunks(Table(path, [], fields=fields, on_bad_row=bad.append))
    assert chunk.texts == ['{"subject": "a", "price": 1}', '{"subject": "c"}']
    assert [row.line for row in bad] == [3]


def test_every_command_takes_records(tmp_path: Path) -> None:
    train, test = write_table(tmp_path / "train.csv"), write_table(tmp_path / "test.jsonl", 1, 40)
    model = tmp_path / "model.longtail"
    assert "documents" in run("check", train, *COLUMNS, "-q")
    run("fit", train, *COLUMNS, "-o", model, "-q")
    assert load(model).fields_ == FIELDS
    figures = json.loads(run("evaluate", model, test, "--json", "-q"))
    assert "accuracy" in json.dumps(figures)
    out = tmp_path / "predicted.csv"
    run("predict", model, test, "-o", out, "-q")
    rows = out.read_text().splitlines()
    assert len(rows) == 41
    record = json.dumps({"subject": "broken order", "brand": "zed co", "price": 150})
    assert "brand=zed co" in run("explain", model, record)
    run("teach", model, '{"brand": "new brand"}', "--class", "new", "-q")
    assert load(model).predict([{"brand": "new brand"}]).tolist() == ["new"]
    run("teach", model, test, "-q")
    run("forget", model, test, "-q")
    assert "leave --text out" in run("predict", model, test, "--text", "body", "-q", code=1)


def test_options_that_cannot_be_used(tmp_path: Path) -> None:
    train = write_table(tmp_path / "train.csv")
    out = ("-o", tmp_path / "m.longtail", "-q", "--label", "class")
    said = run("fit", train, "--text", "body", "--category", "body", *out, code=1)
    assert "column 'body' is given twice" in said
    said = run("fit", train, "--text", "body", "--number", "brand", *out, code=1)
    assert "field 'brand' holds" in said
    said = run("fit", train, "--text", "body", "--number", "prise", *out, code=1)
    assert "did you mean 'price'" in said
