"""Classes held out whole, taught and fitted."""

import lzma

import numpy as np
import pytest
from longtail_bench.taught_classes import main, split_classes

Y = np.array([f"c{i % 12}" for i in range(96)])
Y_TEST = np.array([f"c{i % 10}" for i in range(20)])  # c10 and c11 have no test document


def test_classes_are_held_out_whole():
    split = split_classes(Y, Y_TEST, 4, 3, seed=1)
    taught = Y[split.taught]
    labels, counts = np.unique(taught, return_counts=True)
    assert counts.tolist() == [3] * 4
    assert not {"c10", "c11"} & set(labels)
    assert not set(labels) & set(Y[split.base])
    assert len(split.base) == 96 - 4 * 8
    assert np.array_equal(split.held_out, np.isin(Y_TEST, labels))
    assert len(np.unique(split.taught)) == 12
    other = split_classes(Y, Y_TEST, 4, 3, seed=2)
    assert not np.array_equal(other.taught, split.taught)


def test_too_few_classes_are_refused():
    with pytest.raises(ValueError, match="n_classes must be at most 10, the classes with 3"):
        split_classes(Y, Y_TEST, 11, 3, seed=0)


@pytest.mark.filterwarnings("ignore")  # so few documents are not calibrated
def test_rows_are_printed(tmp_path, capsys):
    for name, labels in (("train", Y), ("test", Y_TEST)):
        lines = [f"{label}\tword{label} common w{i % 5}\n" for i, label in enumerate(labels)]
        with lzma.open(tmp_path / f"{name}.tsv.xz", "wt") as file:
            file.writelines(lines)
    main([str(tmp_path), "--seeds", "1", "--classes", "3"])
    printed = capsys.readouterr().out.splitlines()
    systems = ["Teacher ", 'Teacher, memory="auto" ', "taught ", "taught and refined "]
    systems += ["taught and refined, 20 doc", "fitted "]
    assert len(printed) == 12
    for line, system in zip(printed, systems * 2, strict=True):
        assert f": {system}" in line
        assert "recall 100.00%" in line  # a word of its own tells each class
    assert "mean" in printed[-1]
