"""Documents with label sets in the bench: data, baselines, measures, rows, tables."""

import json
import lzma
import math

import numpy as np
import pytest
import scipy.sparse as sp
from longtail_bench import subjects, systems
from longtail_bench.baselines import BM25, BM25Names, NearestCentroid, OneVsAll
from longtail_bench.baselines.named import NamedLongTail
from longtail_bench.cli.show import print_label_sets
from longtail_bench.environments import find_environment
from longtail_bench.label_set_data import count_terms, has_label_sets, load_label_sets, tokenize
from longtail_bench.label_set_measures import measure_label_sets
from longtail_bench.report import write_report
from longtail_bench.rows import Row, read_rows
from longtail_bench.run import run
from longtail_bench.turns import predict_in_turns
from longtail_bench.worker import build_system, fit, rank

from longtail.datasets import DataFormatError

N_CLASSES, N_TERMS, N_TRAIN, N_TEST = 8, 40, 120, 30
TERMS = [f"t{i:02}" for i in range(N_TERMS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight classes of five terms each; a document has the terms of its two or three classes.

    The last test document has a label that training never saw and the terms of its name.
    """
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("data") / "letters"
    path.mkdir()
    arrays = {"shape": np.array([N_TRAIN, N_TEST, N_CLASSES, N_TERMS])}
    records = []
    for part, n in (("train", N_TRAIN), ("dev", N_TEST)):
        sets = [sorted(rng.choice(N_CLASSES, rng.integers(1, 4), False)) for _ in range(n)]
        counts = np.zeros((n, N_TERMS), np.uint16)
        for row, labels in zip(counts, sets, strict=True):
            for label in labels:
                np.add.at(row, label * 4 + rng.integers(0, 4, 6), 1)
        if part == "dev":
            counts[-1, 36:] = 2
            records = [
                {"labels": [f"c{i}" for i in s], "lang": "de" if i % 2 else "en"}
                for i, s in enumerate(sets)
            ]
            records[-1]["labels"].append("unseen")
        texts = [" ".join(np.repeat(TERMS, row)) for row in counts]
        if part == "dev":
            records = [record | {"text": text} for record, text in zip(records, texts, strict=True)]
        else:
            train = [{"text": text} for text in texts]
        X = sp.csr_array(counts)
        for name in ("indptr", "indices", "data"):
            arrays[f"{part}_{name}"] = getattr(X, name)
        arrays[f"{part}_label_indptr"] = np.cumsum([0, *map(len, sets)])
        arrays[f"{part}_labels"] = np.concatenate(sets).astype(np.int32)
    np.savez(path / "counts.npz", **arrays)
    terms = TERMS
    texts = {
        "classes.txt.xz": "".join(f"c{i}\n" for i in range(N_CLASSES)),
        "terms.txt.xz": "".join(f"{term}\n" for term in terms),
        "dev.jsonl.xz": "".join(json.dumps(record) + "\n" for record in records),
        "train.jsonl.xz": "".join(json.dumps(record) + "\n" for record in train),
        "class_names.tsv.xz": "".join(
            [
                *(f"c{i}\t{terms[4 * i]} {terms[4 * i + 1]}\n" for i in range(N_CLASSES)),
                "unseen\tT36, T37; t38\n",
            ]
        ),
    }
    for name, text in texts.items():
        (path / name).write_bytes(lzma.compress(text.encode()))
    return path


def test_loading(folder):
    assert has_label_sets(folder)
    data = load_label_sets(folder)
    assert data.n_train_classes == N_CLASSES
    assert data.test.to_lists()[-1][-1] == N_CLASSES  # the label that training never saw
    assert data.names.shape == (N_CLASSES + 1, N_TERMS)
    assert data.names[[N_CLASSES]].indices.tolist() == [36, 37, 38]
    assert data.languages.tolist()[:2] == ["en", "de"]
    assert data.train.class_sizes.min() > 0


def test_tokens_are_those_of_the_counts():
    assert tokenize("Über-Größe, a 3D Café") == ["uber", "grosse", "3d", "cafe"]
    counts = count_terms(["b1 a1 b1", "zz"], np.array(["a1", "b1"]))
    assert counts.toarray().tolist() == [[1, 2], [0, 0]]


def test_damaged_counts_are_told(folder, tmp_path):
    with np.load(folder / "counts.npz") as arrays:
        some = {name: arrays[name] for name in arrays.files}
    np.savez(tmp_path / "counts.npz", **some | {"dev_labels": some["dev_labels"] + 100})
    with pytest.raises(DataFormatError, match="dev_labels must be from 0 to 7"):
        load_label_sets(tmp_path)


def indicator(data):
    train = data.train
    ones = np.ones(len(train.class_ids), np.float32)
    return sp.csr_array((ones, train.class_ids, train.indptr), shape=(N_TRAIN, N_CLASSES))


@pytest.mark.parametrize("baseline", [BM25(), NearestCentroid(sublinear=True), OneVsAll()])
def test_baselines_learn_label_sets(folder, baseline):
    data = load_label_sets(folder)
    fit(baseline, data.X_train, indicator(data), {"names": data.names})
    measures, _ = measure_label_sets(data, rank(baseline, data.X_test, 8))
    assert measures["P@1"] > 0.8  # by chance a quarter
    assert measures["R@10"] == 1.0  # eight classes
    assert measures["never seen R@10"] == 0.0


def test_one_label_each_is_the_same_either_way(folder):
    data = load_label_sets(folder)
    first = data.train.class_ids[data.train.indptr[:-1]]
    ones = np.ones(N_TRAIN, np.float32)
    labels = sp.csr_array((ones, first, np.arange(N_TRAIN + 1)), shape=(N_TRAIN, N_CLASSES))
    for baseline in (BM25(), OneVsAll(random_state=0)):
        one = baseline.fit(data.X_train, first).rank(data.X_test, 3)
        other = baseline.fit_sets(data.X_train, labels).rank(data.X_test, 3)
        assert np.array_equal(one[0], other[0])
        assert np.array_equal(one[1], other[1])


def test_names_find_what_training_never_saw(folder):
    data = load_label_sets(folder)
    model = BM25Names().fit_sets(data.X_train, indicator(data), data.names)
    measures, bands = measure_label_sets(data, rank(model, data.X_test, 9))
    assert measures["never seen R@10"] == 1.0
    assert bands[0].name == "never seen"
    assert bands[0].n_labels == 1
    with pytest.raises(ValueError, match="no names of classes"):
        BM25Names().fit_sets(data.X_train, indicator(data))


def test_names_add_classes_to_the_flagship(folder):
    data = load_label_sets(folder)
    names = {"names": data.names, "texts": data.name_texts, "terms": data.terms.tolist()}
    model = NamedLongTail(random_state=0)
    fit(model, data.X_train, indicator(data), names)
    measures, _ = measure_label_sets(data, rank(model, data.X_test, 9))
    assert measures["P@1"] > 0.8
    assert measures["never seen R@10"] == 1.0
    assert model.model_bytes() > 1000
    with pytest.raises(ValueError, match="no names of classes"):
        NamedLongTail().fit_sets(data.X_train, indicator(data))
    with pytest.raises(ValueError, match="no names of classes"):
        NamedLongTail().fit(data.X_train, np.zeros(N_TRAIN))


def test_raw_text_is_measured_like_counts(folder):
    row = subjects.measure(folder, names=True)
    assert row["measures"]["P@1"] > 0.8
    assert row["measures"]["never seen R@10"] == 1.0
    assert row["n_terms"] > N_TERMS  # bigrams
    plain = subjects.measure(folder, names=False)
    assert plain["measures"]["never seen R@10"] == plain["recall_by_band"]["never seen"] == 0.0


def test_measures_say_which_labels_count(folder):
    data = load_label_sets(folder)
    perfect = np.full((N_TEST, 9), -1)
    for row, labels in zip(perfect, data.test.to_lists(), strict=True):
        row[: len(labels)] = labels
    measures, bands = measure_label_sets(data, perfect)
    seen = [[c for c in labels if c < N_CLASSES] for labels in data.test.to_lists()]
    assert measures["P@5"] == pytest.approx(np.mean([len(labels) / 5 for labels in seen]))
    assert measures["all labels F1@5"] == 1.0
    assert measures["all labels de nDCG@5"] == 1.0
    assert measures["PSP@5"] == 1.0
    assert all(band.recall == 1 for band in bands if band.n_labels)


def test_a_run_gives_rows_and_tables(folder, tmp_path):
    out = tmp_path / "rows.jsonl"
    rows = run([folder], ["centroid", "bm25-names", "knn"], out=out, n_threads=1)
    assert [row.outcome for row in rows] == ["ok", "ok", "failed"]
    assert rows[0].measures["P@1"] > 0.9
    assert rows[0].n_classes == N_CLASSES
    assert math.isnan(rows[0].accuracy)
    assert all(load >= 0 for load in rows[0].machine["load"])
    assert len(rows[0].machine["load"]) == 2
    assert read_rows(out)[0].measures == rows[0].measures
    assert read_rows(out)[0].label_bands[0].n_labels == 1
    assert Row.from_json('{"system": "a", "data": "b", "seed": 0}').measures == {}
    write_report(read_rows(out), tmp_path / "report")
    text = (tmp_path / "report" / "report.md").read_text()
    assert "120 / 30 documents with label sets, 8 classes" in text
    assert "| nearest centroid |" in text
    assert "kNN: " in text
    assert "never seen (1)" in text
    tuned = run([folder], ["centroid"], n_threads=1, tune=2)
    assert "one label each only" in tuned[0].error


def test_a_set_without_unseen_labels_has_no_share_of_them(folder, tmp_path, capsys):
    for name in ("counts.npz", "classes.txt.xz"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    [row] = run([tmp_path], ["centroid"], n_threads=1)
    assert math.isnan(row.measures["never seen R@10"])
    print_label_sets("letters", [row])
    write_report([row], tmp_path / "report")
    for text in (capsys.readouterr().out, (tmp_path / "report" / "report.md").read_text()):
        assert "nan" not in text
        assert "–" in text


@pytest.mark.parametrize("name", ["pecos", "parabel", "plt", "fasttext", "libmultilabel"])
def test_packaged_systems_learn_label_sets(folder, tmp_path, name):
    if find_environment(systems.SYSTEMS[name].environment) is None:
        pytest.skip("its environment was not created")
    [row] = run([folder], [name], n_threads=1)
    assert row.error is None
    # fastText's vectors learn little from so few documents.
    assert row.measures["P@1"] > (0.3 if name == "fasttext" else 0.8)


def test_predictions_in_turns(folder):
    rows = predict_in_turns(folder, ["centroid", "bm25-names"], 3)
    assert [row["system"] for row in rows] == ["centroid", "bm25-names"]
    for row in rows:
        assert row["n_test"] == N_TEST
        assert row["fit_cpu_seconds"] >= 0
        assert len(row["predict_cpu_seconds"]) == 3
    with pytest.raises(ValueError, match="n_turns must be at least 1; got 0"):
        predict_in_turns(folder, ["centroid"], 0)
    with pytest.raises(RuntimeError, match="knn ended without an answer"):
        predict_in_turns(folder, ["knn"], 1)


def test_settings_that_differ_for_label_sets():
    job = {"module": "longtail_bench.baselines", "estimator": "FastText", "seed": 0}
    job |= {"n_threads": 1, "memory_limit": None}
    job["settings"] = systems.LABEL_SET_SETTINGS["fasttext"]
    model = build_system(job)
    assert (model.loss, model.rate) == ("ova", 0.1)  # with 0.5 it diverges at 5,000 classes
    for name, settings in systems.LABEL_SET_SETTINGS.items():
        assert settings
        assert name in systems.SYSTEMS
