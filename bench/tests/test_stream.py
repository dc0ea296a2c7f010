"""`bench stream`: what is seen, recent and correct is counted as a slow reader would count it."""

from __future__ import annotations

import json
import lzma
import time
from contextlib import closing

import numpy as np
import pytest
from longtail_bench import stream_learners, stream_systems, stream_taught
from longtail_bench.baselines.centroid import NearestCentroid
from longtail_bench.environments import find_environment
from longtail_bench.stream import (
    ALL,
    Stream,
    read_rows,
    read_stream,
    run_stream,
    run_systems,
    summarize,
)
from longtail_bench.stream_baselines import RefittedBaseline
from longtail_bench.stream_learners import RowsSeen, StochasticGradient
from longtail_bench.stream_report import period_table, plot_stream, summary_table
from longtail_bench.systems import SYSTEMS
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

WORDS = ["bear", "fox", "wolf", "owl", "lynx", "hare", "mole", "stoat"]


def draw_stream(n=240, seed=0):
    """Classes appear one after the other; a document names its class twice."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for i in range(n):
        word = WORDS[rng.integers(0, 2 + i * (len(WORDS) - 2) // n)]
        noise = " ".join(f"w{rng.integers(0, 30)}" for _ in range(4))
        texts.append(f"the {word} and a {word} {noise}")
        labels.append(word)
    return Stream(texts, np.array(labels), 2000 + np.arange(n) // 60)


class Recorder:
    """Predicts the class of the last document learned, and notes the calls."""

    def __init__(self):
        self.calls = []
        self.n_learned = 0

    def start(self, texts, labels):
        self.n_learned, self.last = len(texts), labels[-1]

    def predict(self, texts):
        self.calls.append(("predict", self.n_learned, len(texts)))
        return np.array([self.last] * len(texts)), np.full(len(texts), 0.25)

    def learn(self, texts, labels, *, new_period):
        self.calls.append(("learn", len(texts), new_period))
        self.n_learned += len(texts)
        self.last = labels[-1]


def test_a_batch_is_predicted_before_it_is_learned():
    stream, system = draw_stream(200), Recorder()
    predictions = run_stream(stream, system, 2001, 50)
    assert system.calls == [
        *(("predict", 60, 50), ("learn", 50, False)),
        *(("predict", 110, 50), ("learn", 50, True)),
        *(("predict", 160, 40), ("learn", 40, True)),
    ]
    expected = np.repeat(stream.labels[[59, 109, 159]], [50, 50, 40])
    assert np.array_equal(predictions.labels, expected)


def test_rows_agree_with_a_slow_count():
    stream, batch = draw_stream(), 7
    predictions = run_stream(stream, Recorder(), 2001, batch)
    rows = {row.period: row for row in summarize(stream, predictions, batch, "it")}
    assert list(rows) == ["2001", "2002", "2003", ALL]
    hits, seen, recent = {}, {}, {}
    for i in range(60, len(stream.texts)):
        begin = 60 + (i - 60) // batch * batch
        earlier = [j for j in range(begin) if stream.labels[j] == stream.labels[i]]
        for key in (str(stream.periods[i]), ALL):
            hit = predictions.labels[i - 60] == stream.labels[i]
            hits.setdefault(key, []).append(hit)
            seen.setdefault(key, []).append(bool(earlier))
            if earlier and i - earlier[0] <= 30 / 365 * 60:
                recent.setdefault(key, []).append(hit)
    for key, row in rows.items():
        assert row.n_documents == len(hits[key])
        assert row.accuracy == pytest.approx(np.mean(hits[key]))
        assert row.seen == pytest.approx(np.mean(seen[key]))
        known = [hit for hit, was in zip(hits[key], seen[key], strict=True) if was]
        assert row.accuracy_seen == pytest.approx(np.mean(known))
        assert row.n_recent == len(recent.get(key, []))
        assert row.calibration_error == pytest.approx(abs(0.25 - np.mean(hits[key])))


@pytest.mark.parametrize("batch", [1, 7, 90])
def test_rows_are_reported_when_their_period_ends(batch):
    stream, reported = draw_stream(), []
    system = Recorder()

    def note(rows):
        reported.append((system.n_learned, rows))

    rows = run_systems(stream, {"it": lambda: system}, 2001, batch, on_rows=note)
    assert repr([row for _, some in reported for row in some]) == repr(rows)  # NaN is not NaN
    assert [row.period for row in rows] == ["2001", "2002", "2003", ALL]
    for n_learned, some in reported:
        for row in some:
            end = 240 if row.period == ALL else (int(row.period) - 1999) * 60
            assert end <= n_learned <= min(end + batch, 240)


def test_a_system_that_did_not_come_to_its_end_is_run_again(tmp_path):
    stream, out = draw_stream(), tmp_path / "rows.jsonl"
    rows = run_systems(stream, {"it": Recorder}, 2001, 20)
    lines = [json.dumps({"batch": 20} | vars(row)) for row in rows]
    out.write_text("\n".join(lines[:2]), "utf-8")
    assert read_rows(out, {"batch": 20}) == {}
    out.write_text("\n".join(lines[:2] + lines), "utf-8")
    assert repr(read_rows(out, {"batch": 20})) == repr({"it": rows})
    assert read_rows(out, {"batch": 21}) == {}


def test_systems_learn_what_they_are_taught():
    stream = draw_stream()
    systems = stream_systems.make_systems(len(WORDS), 60)
    ours = [name for name in systems if name.startswith("longtail")]
    names = [*ours, "nearest centroid", "nearest documents", *list(systems)[-2:]]
    rows = run_systems(stream, {name: systems[name] for name in names}, 2001, 20)
    accuracy = {row.system: row.accuracy for row in rows if row.period == ALL}
    assert accuracy["longtail, frozen"] < 0.6
    for name in names[1:-2]:  # words tell the classes: only new ones are missed
        assert accuracy[name] > accuracy["longtail, frozen"]
    assert accuracy["longtail, taught"] > 0.8
    assert accuracy["nearest documents"] > 0.8
    assert max(accuracy[name] for name in names[-2:]) < 0.5
    text = summary_table(rows, "t").to_markdown()
    assert all(f"\n| {name} |" in text for name in names)
    assert len(period_table(rows).rows) == len(names)
    axes = plot_stream(rows).axes[0]
    assert len(axes.lines) == len(names) + 1


def slow_cosines(texts, owners, n_stored, queries):
    """Cosines of queries with documents or classes; document frequencies are of the first texts."""
    hashing = HashingVectorizer(n_features=1 << 20, ngram_range=(1, 2), alternate_sign=False)
    used = np.unique(hashing.transform([*texts, *queries]).indices)
    X, Q = (hashing.transform(some).tocsc()[:, used].toarray() for some in (texts, queries))
    idf = np.log((1 + n_stored) / (1 + (X[:n_stored] > 0).sum(axis=0))) + 1
    names = list(dict.fromkeys(owners))
    rows = [sum(x for x, owner in zip(X, owners, strict=True) if owner == name) for name in names]
    rows, Q = (M * idf / np.linalg.norm(M * idf, axis=1, keepdims=True) for M in (rows, Q))
    return Q @ rows.T


@pytest.mark.parametrize("by_class", [True, False])
@pytest.mark.parametrize("batch", [1, 7, 40])
def test_rows_seen_are_compared_exactly(monkeypatch, by_class, batch):
    monkeypatch.setattr(stream_learners, "INDEX_EVERY", 30)
    stream = draw_stream(120)
    texts, labels = stream.texts, stream.labels
    system = RowsSeen(by_class=by_class)
    system.start(texts[:20], labels[:20])
    n_stored = 20
    for begin in range(20, 120, batch):
        queries = texts[begin : begin + batch]
        found = system._cosines(system._documents.weigh(system._documents.count(queries)))
        owners = labels[:begin] if by_class else np.arange(begin)
        expected = slow_cosines(texts[:begin], owners, n_stored, queries)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        nearest = expected.argmax(axis=1)
        if by_class:
            classes = np.array(list(dict.fromkeys(labels[:begin])))
            assert system.predict(queries)[0].tolist() == classes[nearest].tolist()
        system.learn(queries, labels[begin : begin + batch], new_period=False)
        n_learned = begin + len(queries)
        n_stored = n_learned if n_learned - n_stored >= 30 else n_stored


@pytest.mark.parametrize(
    ("labels", "batch", "n_last", "share"),
    [
        ("aabbc", 1, 5, 3 / 5),
        ("aabbc", 2, 4, 1 / 2),  # a|ab|bc: the classes a, and then b, are known by then
        ("aabbc", 2, 2, 1 / 2),
        ("aaaa", 2, 2, 0.0),
        ("ab", 5, 1000, 1.0),
    ],
)
def test_share_of_new_classes(labels, batch, n_last, share):
    assert stream_taught.share_of_new_classes(list(labels), batch, n_last) == share


@pytest.mark.parametrize(
    ("name", "package"),
    [("vowpal wabbit, recall tree", "vowpalwabbit"), ("river, nearest", "river")],
)
def test_online_learners(name, package):
    pytest.importorskip(package)
    stream = draw_stream()
    systems, missing = stream_systems.choose_systems(len(WORDS), 60, name)
    assert not missing
    rows = run_systems(stream, systems, 2001, 20)
    assert rows[-1].accuracy > 0.3


def test_one_pass_of_stochastic_gradients():
    stream = draw_stream()
    systems, _ = stream_systems.choose_systems(len(WORDS), 60, "scikit-learn")
    rows = run_systems(stream, systems, 2001, 20)
    assert rows[-1].accuracy > 0.3
    unlearned = StochasticGradient(4)
    unlearned.start(["a bear"], np.array(["bear"]))
    assert unlearned.predict(["a bear", "a fox"])[0].tolist() == ["bear", "bear"]


def test_a_baseline_learns_when_a_period_ends():
    """Between two ends it says what nearest centroid, fitted at the first of them, says."""
    stream = draw_stream(180)
    with closing(RefittedBaseline("centroid")) as system:
        predictions = run_stream(stream, system, 2001, 20)
    for first, last in ((60, 120), (120, 180)):
        vectorizer = CountVectorizer(ngram_range=(1, 2), min_df=2)
        X = vectorizer.fit_transform(stream.texts[:first])
        fitted = NearestCentroid(sublinear=True).fit(X, stream.labels[:first])
        expected = fitted.predict(vectorizer.transform(stream.texts[first:last]))
        assert predictions.labels[first - 60 : last - 60].tolist() == expected.tolist()
    assert system.cpu_seconds() > time.process_time()  # what the other process did is counted


@pytest.mark.parametrize("system", stream_systems.REFITTED)
def test_baselines_in_environments_of_their_own(system):
    if find_environment(SYSTEMS[system].environment) is None:
        pytest.skip(f"no environment for {system}")
    stream = draw_stream()
    systems, missing = stream_systems.choose_systems(len(WORDS), 60, SYSTEMS[system].title)
    assert not missing
    rows = run_systems(stream, systems, 2001, 20)
    assert rows[-1].accuracy > 0.5
    assert rows[-1].learn_cpu_seconds > 0


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(stream_systems, "find_spec", lambda _: None)
    monkeypatch.setattr(stream_systems, "find_environment", lambda _: None)
    systems, missing = stream_systems.choose_systems(8, 60, "river; class of; PECOS; omikuji, B")
    assert list(systems) == ["class of the last document"]
    assert list(missing.values()) == [
        "pip install river",
        "longtail bench environments pecos",
        "longtail bench environments omikuji",
    ]
    with pytest.raises(ValueError, match="no system begins with 'pecos'"):
        stream_systems.choose_systems(8, 60, "pecos")


def write_stream(folder, stream):
    folder.mkdir()
    rows = zip(stream.periods, stream.labels, stream.texts, strict=True)
    text = "".join(f"{period}\t{label}\t{text}\n" for period, label, text in rows)
    (folder / "stream.tsv.xz").write_bytes(lzma.compress(text.encode()))


def test_streams_are_read_with_years_or_in_the_order_of_files(tmp_path):
    stream = draw_stream(60)
    write_stream(tmp_path / "years", stream)
    read = read_stream(tmp_path / "years")
    assert read.texts == stream.texts
    assert np.array_equal(read.periods, stream.periods)
    for name, rows in (("train", slice(0, 40)), ("test", slice(40, 60))):
        lines = zip(stream.labels[rows], stream.texts[rows], strict=True)
        text = "".join(f"{label}\t{text}\n" for label, text in lines)
        (tmp_path / f"{name}.tsv.xz").write_bytes(lzma.compress(text.encode()))
    read = read_stream(tmp_path)
    assert read.texts == stream.texts
    assert np.array_equal(read.periods, np.repeat(np.arange(1, 11), 6))
    assert len(read.until(3).texts) == 18
    with pytest.raises(ValueError, match="holds neither"):
        read_stream(tmp_path / "nothing")
    with pytest.raises(ValueError, match="start must be a period"):
        run_stream(stream, Recorder(), 2000, 5)


def test_the_command_writes_rows_table_and_figure(tmp_path):
    from longtail_bench.cli.app import bench
    from typer.testing import CliRunner

    write_stream(tmp_path / "animals", draw_stream(120))
    out, table, figure = (tmp_path / name for name in ("rows.jsonl", "table.md", "stream.svg"))
    arguments = ["stream", "animals", "--folder", str(tmp_path), "--from", "2001", "--batch", "9"]
    arguments += ["--systems", "nearest centroid; class of the last", "--out", str(out)]
    result = CliRunner().invoke(bench, [*arguments, "--table", str(table), "--figure", str(figure)])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["period"] for row in rows] == ["2001", "all"] * 2
    assert rows[1]["calibration_error"] is None
    assert "| nearest centroid |" in table.read_text()
    assert figure.read_text().startswith("<?xml")
    # What the file has is not run again, but for another batch.
    arguments[arguments.index("nearest centroid; class of the last")] = "nearest centroid; most"
    result = CliRunner().invoke(bench, [*arguments, "--table", str(table)])
    assert result.exit_code == 0, result.output
    again = [json.loads(line) for line in out.read_text().splitlines()]
    assert again[:4] == rows
    assert [row["system"] for row in again[4:]] == ["most frequent of the last 1,000"] * 2
    assert "| nearest centroid |" in table.read_text()
    assert "| class of" not in table.read_text()
    arguments[arguments.index("9")] = "10"
    assert CliRunner().invoke(bench, arguments).exit_code == 0
    assert len(out.read_text().splitlines()) == 10


def test_a_whole_name_is_no_beginning():
    for beginnings, n_systems in (("longtail, taught", 1), ("longtail, taught and", 4)):
        systems, _ = stream_systems.choose_systems(8, 60, beginnings)
        assert len(systems) == n_systems
