"""`longtail bench embeddings`: a model without vectors and with them."""

import json
import lzma
import re

import numpy as np
import pytest
from benchmark_data import write_counts
from longtail_bench import embeddings
from longtail_bench.data import DataFormatError
from typer.testing import CliRunner

from longtail.cli.app import app

N_TRAIN, N_CLASSES, N_CONCEPTS, N_WORDS = 2000, 45, 40, 60  # words of a concept
_rng = np.random.default_rng(0)
CONCEPTS = _rng.normal(size=(N_CONCEPTS, 16))
OWN = _rng.integers(0, N_CONCEPTS, (N_CLASSES, 2))  # what each class is about
NAMES = {f"class {c:02}": f"c{a}x{N_WORDS} c{b}x{N_WORDS}" for c, (a, b) in enumerate(OWN)}


def write(n):
    """Write documents; a concept has several words, so that an encoder knows more."""
    rng = np.random.default_rng(1)
    y = np.minimum(rng.geometric(0.06, n) - 1, N_CLASSES - 1)
    words = [[*OWN[c], *rng.integers(0, N_CONCEPTS, 2)] for c in y]
    texts = [" ".join(f"c{w}x{rng.integers(N_WORDS)}" for w in row) for row in words]
    return texts, [f"class {c:02}" for c in y]


TEXTS, LABELS = write(2600)


def encode(texts):
    found = [re.findall(r"c(\d+)x", text) for text in texts]
    return np.array([sum((CONCEPTS[int(i)] for i in row), np.full(16, 1e-3)) for row in found])


def count(texts):
    X = np.zeros((len(texts), N_CONCEPTS * N_WORDS), np.int64)
    for row, text in zip(X, texts, strict=True):
        found = [[*map(int, word[1:].split("x"))] for word in text.split()]
        np.add.at(row, [concept * N_WORDS + word for concept, word in found], 1)
    return X


def compress(path, lines):
    path.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode()))


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    _, y = np.unique(LABELS, return_inverse=True)
    folder = write_counts(tmp_path_factory.mktemp("sets") / "single", count(TEXTS), y, N_TRAIN)
    rows = [f"{label}\t{text}" for label, text in zip(LABELS, TEXTS, strict=True)]
    compress(folder / "train.tsv.xz", rows[:N_TRAIN])
    compress(folder / "test.tsv.xz", rows[N_TRAIN:])
    return folder


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Documents with one label or two; some classes occur in the dev part alone."""
    new = [40 <= int(c[6:]) < 44 for c in LABELS]
    labels = [
        [c] if is_new else sorted({c, f"class {(int(c[6:]) + 7) % 40:02}"})
        for c, is_new in zip(LABELS, new, strict=True)
    ]
    order = np.argsort(new, kind="stable")
    texts, labels = ([some[i] for i in order] for some in (TEXTS, labels))
    classes = sorted({c for some in labels for c in some})
    n_train = len(labels) - 300
    known = sorted({c for some in labels[:n_train] for c in some})
    classes = known + [c for c in classes if c not in known]
    rows = [[classes.index(c) for c in some] for some in labels]
    arrays = {}
    for part, some in (("train", rows[:n_train]), ("dev", rows[n_train:])):
        kept = [[c for c in row if c < len(known)] for row in some]
        arrays[f"{part}_label_indptr"] = np.cumsum([0, *map(len, kept)])
        arrays[f"{part}_labels"] = np.array([c for row in kept for c in row])
        X = count(texts)[slice(n_train) if part == "train" else slice(n_train, None)]
        indices = [np.flatnonzero(row) for row in X]
        arrays[f"{part}_indptr"] = np.cumsum([0, *map(len, indices)])
        arrays[f"{part}_indices"] = np.concatenate(indices)
        arrays[f"{part}_data"] = X[X > 0]
    folder = tmp_path_factory.mktemp("sets") / "sets"
    folder.mkdir()
    np.savez(
        folder / "counts.npz", shape=[n_train, 300, len(known), N_CONCEPTS * N_WORDS], **arrays
    )
    records = [
        json.dumps({"labels": some, "lang": "de" if i % 2 else "en", "text": text})
        for i, (some, text) in enumerate(zip(labels, texts, strict=True))
    ]
    compress(folder / "train.jsonl.xz", records[:n_train])
    compress(folder / "dev.jsonl.xz", records[n_train:])
    compress(folder / "classes.txt.xz", known)
    compress(
        folder / "terms.txt.xz", [f"c{i}x{j}" for i in range(N_CONCEPTS) for j in range(N_WORDS)]
    )
    compress(folder / "class_names.tsv.xz", [f"{c}\t{NAMES[c]}" for c in classes])
    return folder


def run(*words, code=0):
    named = ["--embedder", "test_vectors:encode", "bench", "embeddings"]
    done = CliRunner().invoke(app, [*named, *map(str, words)])
    assert done.exit_code == code, done.output
    return done.stdout


def test_one_label(single, tmp_path):
    words = (single, "--vectors", tmp_path / "vectors", "--json")
    without, with_vectors = json.loads(run(*words))
    assert with_vectors["measures"]["accuracy"] > without["measures"]["accuracy"]
    assert (without["is_used"], with_vectors["is_used"]) == (False, True)
    assert len(with_vectors["held_out"]) == 2
    files = sorted((tmp_path / "vectors").iterdir())
    assert len(files) == 2  # of each part
    before = [file.stat().st_mtime_ns for file in files]
    again = json.loads(run(*words))
    assert [row["measures"] for row in again] == [without["measures"], with_vectors["measures"]]
    assert [file.stat().st_mtime_ns for file in files] == before
    shown = run(single, "--train", 300, "--test", 50, "--from-text")
    assert "macro F1" in shown
    assert "Vectors are made before anything is timed" in shown


@pytest.mark.parametrize("from_text", [False, True])
def test_label_sets_with_names(sets, from_text):
    options = ["--from-text"] if from_text else []
    without, with_vectors = json.loads(run(sets, "--json", *options))
    assert with_vectors["is_used"]
    names = {"P@1", "P@5 de", "nDCG@5 en", "never seen R@10", "never seen R@50 de"}
    assert names <= with_vectors["measures"].keys()
    assert with_vectors["measures"]["P@1"] > without["measures"]["P@1"]
    assert all(0 <= row["measures"]["never seen R@10"] <= 1 for row in (without, with_vectors))


def test_texts_that_are_not_those_of_the_counts(single, tmp_path):
    compress(single / "test.tsv.xz", ["class 00\tc1x0"])
    with pytest.raises(DataFormatError, match="not one text for each row"):
        embeddings.load_texts(single)


def test_vectors_are_of_the_first_words():
    seen = []
    encoder = embeddings.CachedEncoder(lambda texts: seen.extend(texts) or encode(texts), None, 2)
    encoder.encode_all(["c1x0 c2x0 c3x0", "c4x0"])
    assert sorted(seen) == ["c1x0 c2x0", "c4x0"]
    assert np.array_equal(encoder(["c4x0"]), encode(["c4x0"]).astype(np.float32))
    assert len(seen) == 2  # it remembers
    encoder(["c5x0"])
    assert seen[-1] == "c5x0"
