"""Records over partitions: the same bits as from one fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from longtail import TextClassifier
from longtail.datasets import Table
from longtail.distributed import fit_partitions, predict_partitions
from longtail.exceptions import PartitionError
from tests.estimator.test_records import FIELDS, LABELS, NEW, RECORDS


def write(path: Path, records: list[dict], labels: list[str]) -> Path:
    rows = [{**r, "class": label} for r, label in zip(records, labels, strict=True)]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_partitions_of_records_give_the_same_bits(tmp_path: Path) -> None:
    whole = TextClassifier(fields=FIELDS, random_state=0).fit(RECORDS, LABELS)
    first = write(tmp_path / "a.jsonl", RECORDS[:30], LABELS[:30])
    second = (RECORDS[30:], LABELS[30:])
    parts = [Table(first, [], "class"), lambda: second]
    model = TextClassifier(fields=FIELDS, random_state=0)
    fit_partitions(model, parts, scratch=tmp_path / "scratch", memory_limit="2GB")
    assert model.vocabulary_.options == whole.vocabulary_.options
    assert np.array_equal(model.vocabulary_.utf8, whole.vocabulary_.utf8)
    assert np.array_equal(model.term_weights_, whole.term_weights_)
    one, two = model.predict_proba_topk(NEW), whole.predict_proba_topk(NEW)
    assert np.array_equal(one.scores, two.scores)
    path = tmp_path / "model.longtail"
    model.save(path)
    [out] = predict_partitions(path, [Table(first, [])], tmp_path / "out", format="jsonl")
    predicted = [json.loads(line) for line in Path(out).read_text().splitlines()]
    assert len(predicted) == 30


def test_a_table_of_other_fields_is_refused(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", RECORDS[:30], LABELS[:30])
    table = Table(first, [], "class", fields=FIELDS)
    with pytest.raises(PartitionError, match="give the TextClassifier the same fields"):
        fit_partitions(TextClassifier(), [table], scratch=tmp_path / "scratch")
