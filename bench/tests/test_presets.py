"""The paper's collections: numbers against the paper's own tables, and loading files."""

import re
from pathlib import Path

import numpy as np
import pytest
from longtail_bench.presets import PRESETS, find_preset, load_preset_files

from longtail.datasets import DataFormatError

PAPERS = sorted((Path(__file__).parents[3] / "shared" / "paper").glob("*.txt"))
needs_paper = pytest.mark.skipif(not PAPERS, reason="the text of the paper is not here")
DS = "(π,κ)-DS"
NAMES = {
    r"\OVA": "OVA",
    r"\MSVM": "M-SVM",
    r"\RecallTree": "RecallTree",
    r"\fastxml": "FastXML",
    r"\pfastrexml": "PfastReXML",
    r"\pdsparse": "PD-Sparse",
    r"\mRb": DS,
}


def table(label):
    """Return the cells of a table of the paper, row by row, without markup."""
    text = PAPERS[0].read_text(encoding="utf-8")
    end = text.index(rf"\label{{{label}}}")
    body = text[text.rindex(r"\begin{tabular}", 0, end) : end]
    body = body[body.index("\n") : body.index(r"\end{tabular}")]
    body = re.sub(r"\\hline|\\cline\{.*?\}", "", body)
    return [[clean(cell) for cell in re.split(r"(?<!\\)&", row)] for row in body.split(r"\\")]


def clean(cell):
    """Return a cell without braces, dollars and escapes."""
    bold = re.sub(r"\\textbf|\\textsuperscript\{\*\}", "", cell)
    return re.sub(r"[{}$\s]", "", bold).replace(r"\%", "%").replace(r"\_", "_")


@needs_paper
def test_sizes_equal_table_2():
    rows = [row for row in table("tab:data_statistics") if row[0].lower() in PRESETS]
    assert len(rows) == len(PRESETS)
    for name, *sizes in rows:
        preset = find_preset(name)
        assert preset.name == name
        ours = [preset.n_classes, preset.n_train, preset.n_test, preset.n_heldout, preset.n_terms]
        assert list(map(int, sizes)) == ours


@needs_paper
def test_results_equal_table_3():
    header, *rows = [row for row in table("tab:res_comp") if len(row) == 9]
    systems = [*(NAMES[cell] for cell in header[2:-1]), DS]
    assert len(rows) == 5 * len(PRESETS)
    for number, preset in enumerate(PRESETS.values()):
        block = rows[5 * number : 5 * number + 5]
        assert block[0][0] == preset.name
        assert block[1][0] == f"m={preset.n_train + preset.n_test + preset.n_heldout}"
        assert list(preset.results) == systems
        for column, row in enumerate(preset.results.values(), start=2):
            ours = [row.train_time, row.predict_time, row.memory, row.accuracy, row.macro_f1]
            assert ours == [line[column] for line in block]


@needs_paper
def test_settings_equal_table_4():
    rows = [row for row in table("tab:hyperpms") if len(row) == 7][1:]
    system = ""
    seen = {name: {} for name in PRESETS}
    for name, parameter, *values in rows:
        system = NAMES[name] if name else system
        for collection, value in zip(PRESETS, values, strict=True):
            if value != "NA":
                seen[collection].setdefault(system, {})[parameter] = value
    for collection, preset in PRESETS.items():
        ours = list(seen[collection].pop(DS).values())
        expected = [preset.examples_per_class, preset.adversaries, preset.candidates]
        assert list(map(int, ours)) == expected
        printed = {
            system: {parameter: str(value) for parameter, value in settings.items()}
            for system, settings in preset.settings.items()
        }
        assert printed == seen[collection]


def test_numbers():
    assert list(PRESETS) == ["lshtc1", "dmoz", "wiki-small", "wiki-50k", "wiki-100k"]
    lshtc1 = PRESETS["lshtc1"]
    assert (lshtc1.examples_per_class, lshtc1.adversaries, lshtc1.candidates) == (2, 122, 10)
    assert lshtc1.paper_row.predict_seconds == 544
    assert lshtc1.results["RecallTree"].memory_gigabytes == pytest.approx(0.122)
    large = PRESETS["wiki-100k"]
    assert (large.examples_per_class, large.adversaries, large.n_terms) == (1, 10, 1_271_710)
    assert large.paper_row.memory_gigabytes == 9.8
    assert large.paper_row.macro_f1_percent == 17.8
    assert large.settings["RecallTree"]["b"] == 28


def test_bounds_and_missing_results_are_no_numbers():
    small = PRESETS["wiki-small"].results
    assert small["M-SVM"].train_time == ">4d"
    assert small["M-SVM"].train_seconds is None
    assert small["M-SVM"].accuracy_percent is None
    assert small["RecallTree"].macro_f1_percent is None
    assert small["OVA"].macro_f1_percent == 8.8


def test_presets_cannot_be_changed():
    with pytest.raises(TypeError):
        PRESETS["new"] = PRESETS["dmoz"]
    with pytest.raises(AttributeError):
        PRESETS["dmoz"].adversaries = 30


def test_unknown_preset():
    with pytest.raises(ValueError, match=r"preset must be one of lshtc1, dmoz, .* got 'wiki'"):
        find_preset("wiki")
    with pytest.raises(ValueError, match="preset must be one of"):
        load_preset_files("wiki", "train.txt", "test.txt")


def test_loading_files(tmp_path):
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    train.write_text("40 1:1 5:2\n7, 40 2:1\n")
    test.write_text("7 1:1\n3 8:1\n99,40 1:4\n")
    data = load_preset_files("LSHTC1", train, test)
    assert data.classes.tolist() == [7, 40, 3, 99]
    assert data.y_train.tolist() == [1, 0, 1]
    assert data.y_test.tolist() == [0, 2, 1, 3]
    assert data.X_train.shape == (3, 9)
    assert data.X_test.shape == (4, 9)
    assert data.X_test.toarray()[:, 1].tolist() == [1, 0, 4, 4]
    assert np.array_equal(data.terms, np.arange(9))
    assert data.n_train_classes == 2
    assert data.n_unseen == 2
    assert np.array_equal(load_preset_files(PRESETS["dmoz"], train, test).y_test, data.y_test)


def test_hidden_test_labels_are_an_error(tmp_path):
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    train.write_text("40 1:1\n")
    test.write_text("0 1:1\n0 2:1\n")
    with pytest.raises(DataFormatError, match=r"test.txt: no document has a class .* set aside"):
        load_preset_files("lshtc1", train, test)
