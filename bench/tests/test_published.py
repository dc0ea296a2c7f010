"""`longtail bench published`: data sets of the Extreme Classification Repository, beside papers."""

import gzip
import json
import math

import numpy as np
import pytest
import scipy.sparse as sp
from longtail_bench.baselines import OneVsAll
from longtail_bench.data import find_data_set, find_extreme_files
from longtail_bench.label_set_data import has_label_sets, load_label_sets
from longtail_bench.label_set_measures import measure_label_sets
from longtail_bench.published import COLUMNS, PUBLISHED_SETS, find_published_set
from longtail_bench.report import collect, write_report
from longtail_bench.report_label_sets import repository_table
from longtail_bench.rows import FAILED, Row, read_rows
from longtail_bench.splits import digest_data
from sklearn.svm import LinearSVC
from test_benchmark_commands import bench

from longtail.datasets import DataFormatError

N_LABELS, N_TERMS = 9, 40


def extreme_lines(n, seed, scale):
    """Documents with the terms of their two labels, which are odd numbers; label 16 is for tests.

    The last line has no label.
    """
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        labels = sorted({int(c) for c in rng.choice(8, 2, False)})
        terms = sorted({4 * label + int(t) for label in labels for t in rng.integers(0, 4, 6)})
        names = [2 * label + 1 for label in labels] + ([16] if seed and i == 0 else [])
        pairs = " ".join(f"{term}:{scale * (1 + term % 3):g}" for term in terms)
        lines.append(f"{','.join(map(str, names))} {pairs}")
    return [f"{n + 1} {N_TERMS} 17", *lines, " 1:1"]


def write_extreme(folder, train="train.txt", test="test.txt", scale=1):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / train).write_text("\n".join(extreme_lines(120, 0, scale)) + "\n")
    (folder / test).write_text("\n".join(extreme_lines(30, 1, scale)) + "\n")
    return folder


def test_repository_files_are_data_sets(tmp_path):
    folder = write_extreme(tmp_path / "tiny")
    assert has_label_sets(folder)
    data = load_label_sets(folder)
    assert data.X_train.shape == (120, N_TERMS)
    assert data.X_test.shape == (31, N_TERMS)
    assert (data.n_train_classes, len(data.test.classes)) == (8, N_LABELS)
    # Label 1 is class 0, 3 is class 1, ...; label 16, which training never saw, comes last.
    printed = (folder / "test.txt").read_text().splitlines()[1:31]
    labels = [[int(label) for label in line.split()[0].split(",")] for line in printed]
    ids = [[8 if label == 16 else label // 2 for label in some] for some in labels]
    assert data.test.to_lists() == [*ids, []]  # the papers count documents without label
    assert data.n_unlabelled == 1
    assert not data.has_fractions
    assert load_label_sets(write_extreme(tmp_path / "weights", scale=0.125)).has_fractions


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ("wiki10_train.txt", "wiki10_test.txt"),
        ("Wiki10-31K/train.txt", "Wiki10-31K/test.txt"),
        ("AmazonCat/amazonCat_train.txt", "AmazonCat/amazonCat_test.txt"),
    ],
)
def test_usual_names_of_the_files(tmp_path, train, test):
    for name in (train, test):
        (tmp_path / name).parent.mkdir(exist_ok=True)
    write_extreme(tmp_path, train, test)
    (tmp_path / "readme.txt").touch()
    assert find_extreme_files(tmp_path) == (tmp_path / train, tmp_path / test)
    assert find_data_set(tmp_path, None) == tmp_path
    before = digest_data(tmp_path)
    with (tmp_path / test).open("a") as file:
        file.write("\n")
    assert digest_data(tmp_path) != before  # both files count


def test_compressed_files(tmp_path):
    write_extreme(tmp_path)
    for name in ("train.txt", "test.txt"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        (tmp_path / name).unlink()
    assert load_label_sets(tmp_path).n_train_classes == 8


def test_folders_that_are_not_clear(tmp_path):
    folder = write_extreme(tmp_path / "tiny")
    (folder / "test.txt").rename(folder / "held.txt")
    with pytest.raises(DataFormatError, match=r"NAME_test.txt.*for test there is none"):
        find_data_set(folder, None)
    write_extreme(folder)
    (folder / "old_train.txt").touch()
    with pytest.raises(DataFormatError, match=r"for train there is old_train.txt, train.txt"):
        find_extreme_files(folder)
    (folder / "old_train.txt").unlink()
    lines = (folder / "test.txt").read_text().replace(f" {N_TERMS} ", " 50 ", 1)
    (folder / "test.txt").write_text(lines)
    with pytest.raises(DataFormatError, match=r"50 terms, that of train.txt 40"):
        load_label_sets(folder)


def test_classes_of_the_counts_that_training_never_saw(tmp_path):
    counts = sp.csr_array(np.eye(4, dtype=np.uint16))
    arrays = {"shape": np.array([4, 4, 4, 4])}
    for part, labels in (("train", [0, 2, 3, 0]), ("test", [3, 1, 2, 1])):
        arrays |= {f"{part}_{name}": getattr(counts, name) for name in ("data", "indices")}
        arrays[f"{part}_indptr"] = counts.indptr
        arrays[f"{part}_labels"], arrays[f"{part}_label_indptr"] = labels, np.arange(5)
    np.savez(tmp_path / "counts.npz", **arrays)
    data = load_label_sets(tmp_path)
    assert data.n_train_classes == 3
    assert data.train.to_lists() == [[0], [1], [2], [0]]
    assert data.test.to_lists() == [[2], [3], [1], [3]]  # class 1 of the file has id 3
    # A perfect ranking of what can be known: half the truth, and less of it by propensity.
    ranking = np.array([[2, 0, 1, -1, -1], [0, 1, 2, -1, -1], [1, 0, 2, -1, -1], [0, 1, 2, -1, -1]])
    measures, _ = measure_label_sets(data, ranking)
    sizes = np.array([2, 1, 1, 0])
    weight = 1 + (math.log(4) - 1) * 2.5**0.55 * (sizes + 1.5) ** -0.55
    expected = (weight[2] + weight[1]) / (weight[2] + weight[1] + 2 * weight[3])
    assert measures["PSP@1"] == 1.0
    assert measures["all documents nDCG@5"] == measures["all labels nDCG@5"] == 0.5
    assert measures["all labels PSP@1"] == pytest.approx(expected)
    assert measures["all labels PSP@5"] == pytest.approx(expected)


def test_a_document_without_label_counts_as_0(tmp_path):
    data = load_label_sets(write_extreme(tmp_path))
    ranking = np.full((31, 5), -1)
    for row, labels in zip(ranking, data.test.to_lists(), strict=True):
        row[: len(labels)] = labels
    measures, _ = measure_label_sets(data, ranking)
    assert measures["P@1"] == measures["all documents nDCG@5"] == pytest.approx(30 / 31)
    assert measures["all labels nDCG@5"] == 1.0


def naive_one_vs_all(X, labels, X_test):
    """Score each class by a separator of its own, dense and one after the other."""
    scores = []
    for column in labels.toarray().T:
        solver = LinearSVC(C=1.0, tol=1e-6, dual=True, random_state=0, max_iter=10_000)
        scores.append(solver.fit(X, column).decision_function(X_test))
    return np.array(scores).T


@pytest.mark.parametrize("scale", [1, 0.125])
def test_one_vs_all_is_a_separator_of_each_label(tmp_path, scale):
    data = load_label_sets(write_extreme(tmp_path, scale=scale))
    ones = np.ones(len(data.train.class_ids), np.float32)
    labels = sp.csr_array((ones, data.train.class_ids, data.train.indptr), shape=(120, 8))
    model = OneVsAll(tol=1e-6, threshold=0.0, random_state=0).fit_sets(data.X_train, labels)
    parts = [X.toarray() for X in (data.X_train, data.X_test)]
    if scale == 1:  # counts get the weights of tf-idf, fractions are weights already
        present = np.count_nonzero(parts[0], axis=0)
        idf = np.log((1 + 120) / (1 + present)) + 1
        parts = [np.where(X > 0, 1 + np.log(np.maximum(X, 1)), 0) * idf for X in parts]
    parts = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in parts]
    expected = naive_one_vs_all(parts[0], labels, parts[1])
    class_ids, scores = model.rank(data.X_test, 8)
    assert np.array_equal(class_ids, np.argsort(-expected, axis=1, kind="stable"))
    assert np.allclose(scores, -np.sort(-expected, axis=1), atol=1e-4)


def make_row(system, **fields):
    measures = {name: 0.5 + 0.01 * i for i, name in enumerate(COLUMNS.values())}
    sizes = {"n_train": 1000, "n_test": 200, "n_classes": 90, "n_terms": 70}
    costs = {"fit_cpu_seconds": 2.5, "predict_cpu_seconds": 0.05}
    return Row(system, "eurlex-4k", 0, **{"measures": measures} | sizes | costs | fields)


def test_rows_stand_beside_published_ones():
    published = PUBLISHED_SETS["eurlex-4k"]
    better = dict.fromkeys(COLUMNS.values(), 0.9)
    rows = [
        make_row("longtail", measures=better, fractions=True, n_unlabelled=3),
        make_row("ova"),
        Row("pecos", "eurlex-4k", 0, outcome=FAILED, error="no package."),
    ]
    table = repository_table(published, collect(rows)["eurlex-4k"])
    cells = {row[0]: row[1:] for row in table.rows}
    assert cells["LongTailClassifier"] == (*["90.00"] * 6, "2.5", "250")
    assert cells["OVA"] == ("50.00", "51.00", "52.00", "53.00", "54.00", "55.00", "2.5", "250")
    assert cells["DiSMEC (published) [1]"] == ("83.67", "70.70", "59.14", *["–"] * 5)
    assert cells["PfastreXML (published) [1]"][4:] == ("45.38", "48.08", "–", "–")
    assert len(table.rows) == len(published.rows) + 2
    assert [row[0] for row in table.rows][:: len(table.rows) - 1] == ["LongTailClassifier", "OVA"]
    notes = "\n".join(table.notes)
    for text in (
        "Parabel, WWW 2018, Table 2",
        "not all whole",
        "3 training documents",
        "PECOS XR-Linear: ",
    ):
        assert text in notes
    assert not any("whole" in note for note in repository_table(published, []).notes)


def test_the_report_has_the_published_rows(tmp_path):
    bands = ()
    write_report([make_row("longtail", label_bands=bands)], tmp_path)
    assert "| PPDSparse (published) [1] | 83.83 |" in (tmp_path / "report.md").read_text()


def test_published_sets_are_complete():
    for published in PUBLISHED_SETS.values():
        systems = [row.system for row in published.rows]
        assert {"PfastreXML", "Bonsai", "DiSMEC"} < set(systems)
        assert len(systems) == len(set(systems))
        first = [row.values[0] for row in published.rows]
        assert first == sorted(first, reverse=True)
        for row in published.rows:
            known = [value for value in row.values if not math.isnan(value)]
            assert all(0 < value < 100 for value in known)
            assert row.values[0] > row.values[1] > row.values[2]
            assert row.source
    with pytest.raises(ValueError, match="PRESET must be one of eurlex-4k, wiki10-31k"):
        find_published_set("delicious")


def test_the_command_on_a_folder_of_the_repository(tmp_path):
    folder = write_extreme(tmp_path / "Wiki10", "wiki10_train.txt", "wiki10_test.txt", 0.125)
    out = tmp_path / "rows.jsonl"
    arguments = ("published", "wiki10-31k", "--folder", folder, "--out", out, "--threads", 1)
    result = bench(*arguments, "--systems", "longtail,ova")
    lines = result.stdout.splitlines()
    assert "Wiki10-31K: 120 / 31 documents, 8 classes with training documents" in lines[0]
    assert any("XR-Transformer" in line and "87.95" in line for line in lines)
    assert result.stdout.count("(published)") == len(PUBLISHED_SETS["wiki10-31k"].rows)
    assert any("LongTailClassifier" in line for line in lines)
    assert "values of the files are not all whole numbers" in " ".join(lines)
    assert "1 training documents without a label were left out." in " ".join(lines)
    rows = read_rows(out)
    assert [row.system for row in rows] == ["longtail", "ova"]
    assert all(row.error is None and row.measures["P@1"] > 0.8 for row in rows)
    assert all(row.measures["all labels PSP@5"] < row.measures["PSP@5"] for row in rows)
    printed = json.loads(bench(*arguments, "--systems", "ova", "--json").stdout)
    assert [row["system"] for row in printed["rows"]] == ["ova"]
    assert printed["published"][0]["values"]["P@1"] == 87.95
    assert printed["published"][0]["values"]["nDCG@5"] is None
    assert len(read_rows(out)) == 2  # the second command ran nothing anew


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("delicious",), "PRESET must be one of eurlex-4k, wiki10-31k"),
        (("amazon-670k",), "--folder is missing"),
        (("wiki10-31k", "--folder", "."), "train.txt and test.txt (or NAME_train.txt"),
        (("wiki10-31k", "--folder", "absent"), "no data set absent: looked for"),
    ],
)
def test_mistakes_are_one_line(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    line = bench("published", *arguments, "--out", tmp_path / "rows", code=1).stderr
    assert line.startswith("longtail: ")
    assert message in line
    assert len(line.splitlines()) == 1
