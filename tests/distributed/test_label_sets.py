"""Label sets over partitions: the bits of a plain fit, for counts and texts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from longtail import DoubleSamplingClassifier, LongTailClassifier, TextClassifier
from longtail._labels import join_sets, read_label_sets
from longtail.datasets import Table, read_svmlight
from longtail.distributed import PartitionError, fit_partitions, memory_plan, predict_partitions
from tests.distributed import data


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    model = LongTailClassifier(random_state=0).fit(*data.label_sets())
    assert model.state_.several
    return data.checksum(model, tmp_path_factory.mktemp("plain"))


def fit(partitions, scratch, **settings):
    return fit_partitions(
        LongTailClassifier(random_state=0), partitions, scratch=scratch, **settings
    )


@pytest.mark.parametrize("n_parts", [1, 5])
def test_any_number_of_partitions(n_parts, plain, tmp_path):
    model = fit(data.functions(n_parts, data.sets_part), tmp_path / "s")
    assert data.checksum(model, tmp_path) == plain
    assert isinstance(model.predict(data.label_sets()[0][:3])[0], list)


def test_many_shards(tmp_path, monkeypatch):
    """The parts of the index have a part of each label set."""
    monkeypatch.setattr(memory_plan, "INDEX_BYTES", 10**6)
    monkeypatch.setattr(memory_plan, "SHARD_ENTRIES", 900)
    whole = LongTailClassifier(candidates=5, random_state=0).fit(*data.label_sets())
    reports, model = [], LongTailClassifier(candidates=5, random_state=0)
    fit_partitions(
        model,
        data.functions(3, data.sets_part),
        scratch=tmp_path / "s",
        memory_limit="3GB",
        on_task=reports.append,
    )
    assert sum(report.stage == "index" for report in reports) >= 2 * 3  # built twice, in parts
    assert data.checksum(model, tmp_path) == data.checksum(whole, tmp_path)


def test_indicator_matrices(tmp_path):
    X, y = data.indicator_part(0, data.N_DOCUMENTS)
    whole = LongTailClassifier(random_state=0).fit(X, y)
    model = fit(data.functions(3, data.indicator_part), tmp_path / "s")
    assert data.checksum(model, tmp_path) == data.checksum(whole, tmp_path)
    assert model.predict(X).shape == y.shape


def test_svmlight(tmp_path):
    """Labels separated by commas; whole files have one each."""
    X, y = data.label_sets()
    for i, (first, last) in enumerate(data.bounds(3)):
        lines = []
        for row in range(first, last):
            entries = slice(X.indptr[row], X.indptr[row + 1])
            pairs = zip(X.indices[entries] + 1, X.data[entries], strict=True)
            labels = ",".join(label.removeprefix("class ") for label in y[row]) or "7"
            lines.append(f"{labels} " + " ".join(f"{t}:{c:g}" for t, c in pairs) + "\n")
        (tmp_path / f"part-{i}.svm").write_text("".join(lines))
    read = [read_svmlight(path, replicate=False) for path in sorted(tmp_path.glob("*.svm"))]
    whole = LongTailClassifier(random_state=0).fit(X, join_sets([part.label_sets for part in read]))
    model = fit(f"{tmp_path}/*.svm", tmp_path / "s")
    assert data.checksum(model, tmp_path) == data.checksum(whole, tmp_path)


def test_texts(tmp_path):
    """Of each text the hash is kept once for each label; predictions are rankings or sets."""
    X, y = data.label_sets()
    texts, files = data.spell(X), tmp_path / "files"
    labels = [labels or ["class 7"] for labels in y]
    files.mkdir()
    for i, (first, last) in enumerate(data.bounds(3)):
        rows = zip(texts[first:last], labels[first:last], strict=True)
        lines = [json.dumps({"body": text, "label": label}) + "\n" for text, label in rows]
        (files / f"part-{i}.jsonl").write_text("".join(lines))
    settings = {"random_state": 0, "remember_documents": True}
    whole = TextClassifier(**settings).fit(texts, labels)
    table = Table(files, text=["body"], label="label")
    model = fit_partitions(TextClassifier(**settings), table, scratch=tmp_path / "s")
    assert data.checksum(model, tmp_path) == data.checksum(whole, tmp_path)
    model.forget(texts[:1], labels[:1])
    reports = []
    [file, *others] = predict_partitions(
        tmp_path / "model.longtail", table, tmp_path / "out", k=3, on_task=reports.append
    )
    assert {(report.stage, report.name) for report in reports} == {
        ("predicting", str(i)) for i in range(1 + len(others))
    }
    written = {report.bytes_written for report in reports}
    assert written == {Path(path).stat().st_size for path in (file, *others)}
    assert all(report.bytes_read > report.cpu_seconds > 0 for report in reports)
    first = json.loads(Path(file).read_text().splitlines()[0])
    expected = whole.predict_proba_topk(texts[:1], 3)
    assert first["classes"] == expected.classes[0].tolist()
    assert first["probabilities"] == expected.scores[0].tolist()
    files = predict_partitions(tmp_path / "model.longtail", table, tmp_path / "sets")
    rows = [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]
    assert [row["classes"] for row in rows] == whole.predict(texts)


def test_plain_labels_as_sets(tmp_path):
    X, y = data.counts()
    whole = LongTailClassifier(multilabel=True, random_state=0).fit(X, y)
    model = LongTailClassifier(multilabel=True, random_state=0)
    fit_partitions(model, data.functions(2), scratch=tmp_path / "s")
    assert data.checksum(model, tmp_path) == data.checksum(whole, tmp_path)


def test_what_is_refused(tmp_path):
    with pytest.raises(PartitionError, match=r"partition 0 .* multilabel=False"):
        fit_partitions(
            LongTailClassifier(multilabel=False),
            data.functions(2, data.sets_part),
            scratch=tmp_path,
        )
    with pytest.raises(ValueError, match=r"takes one label for each document"):
        fit_partitions(
            DoubleSamplingClassifier(), data.functions(2, data.sets_part), scratch=tmp_path
        )
    with pytest.raises(ValueError, match=r"labels in different forms"):
        fit([lambda: ([[1, 0]], [[1, 0]]), lambda: ([[1, 0]], np.array([[0, 1]]))], tmp_path)
    with pytest.raises(PartitionError, match=r"twice in the set"):
        fit([lambda: ([[1, 0]], [["a", "a"]])], tmp_path)


def test_sets_of_nothing_join_any_labels():
    joined = join_sets([read_label_sets([[]]), read_label_sets([["b"], ["a", "b"]])])
    assert joined.to_lists() == [[], ["b"], ["a", "b"]]
