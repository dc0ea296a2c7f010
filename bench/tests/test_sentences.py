"""`longtail bench sentences`: classes are texts, documents their sentences."""

from __future__ import annotations

import lzma

import numpy as np
import pytest
from longtail_bench.data import load_counts
from longtail_bench.sentences import make_sentence_set, split_sentences

FOX = "The quick fox jumps over logs. The fox sleeps at noon. A brown fox eats small mice."
HEN = "The old hen lays brown eggs. The hen sleeps at noon. It runs."
OWL = "The grey owl hunts at night. The owl eats small mice."


def test_where_a_sentence_ends():
    assert split_sentences(
        'He saw it in "Fig. 3." Then he left the old house (Koch 1841). Now.'
    ) == [
        'He saw it in "Fig. 3.',
        "Then he left the old house (Koch 1841).",
    ]
    assert split_sentences("It is like S. purpurata and A. B. Smith of St. louis.") == [
        "It is like S. purpurata and A. B. Smith of St. louis."
    ]
    assert split_sentences("") == []


def test_each_text_is_a_class_and_one_sentence_of_three_is_held_out():
    data = make_sentence_set({"a": [FOX, HEN, FOX], "b": [OWL]}, seed=1)
    assert data.classes.tolist() == ["a 0", "a 1", "b 0"]
    assert data.y_train.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.y_test.tolist() == [0]
    assert data.X_train.shape == (6, len(data.terms))
    assert (data.X_train > 0).sum(axis=0).min() >= 2  # documents of each term
    seen = np.concatenate([data.X_train.toarray(), data.X_test.toarray()])[[0, 1, 6]]
    expected = [{"the", "fox"}, {"the", "fox", "at"}, {"brown", "fox", "small", "mice"}]
    found = [{data.terms[i] for i in np.flatnonzero(row)} for row in seen]
    assert all(any(words <= row for row in found) for words in expected)
    assert not np.array_equal(
        data.X_test.toarray(), make_sentence_set({"a": [FOX, HEN], "b": [OWL]}, 0).X_test.toarray()
    )


def test_a_sentence_that_two_texts_have_is_of_neither():
    first = "The fox sleeps at noon. The fox eats small mice."
    second = (
        "the FOX sleeps at noon. The fox runs from dogs. The fox hides in holes. All the same fox."
    )
    data = make_sentence_set({"a": [first, second, "The fox sleeps at noon."]})
    assert data.classes.tolist() == ["a 0", "a 1"]
    assert np.bincount(data.y_train).tolist() == [1, 2]
    with pytest.raises(ValueError, match="no text has 3 sentences that no other text has"):
        make_sentence_set({"a": [first]})


def test_the_command_writes_what_bench_run_reads(tmp_path):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from longtail.cli.app import app

    folder = tmp_path / "animals"
    folder.mkdir()
    for name, texts in (("train", [FOX, HEN]), ("test", [OWL])):
        lines = "".join(f"label\t{text}\n" for text in texts)
        (folder / f"{name}.tsv.xz").write_bytes(lzma.compress(lines.encode()))
    out = tmp_path / "sentences"
    arguments = ["bench", "sentences", str(out), "--data", str(folder)]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert "3 classes, 6 training and 1 test documents" in first.stdout
    data = load_counts(out)
    assert data.classes.tolist() == ["animals 0", "animals 1", "animals 2"]
    assert (data.X_train.shape[0], data.X_test.shape[0]) == (6, 1)
    second = CliRunner().invoke(app, arguments)
    assert second.exit_code == 1
    assert "is there already" in second.output
