"""An encoder over partitions: the same bits as from one fit, and predictions by every worker."""

from __future__ import annotations

import functools
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from longtail import DoubleSamplingClassifier, TextClassifier, load
from longtail.datasets.records import Chunk
from longtail.distributed import (
    MemoryLimitError,
    fit_partitions,
    memory_plan,
    predict_partitions,
)
from longtail.distributed.memory_plan import count_vector_characters
from longtail.distributed.partitions import group_chunks
from longtail.estimators.embedder import Embedder
from tests.distributed import data
from tests.unit.test_embedder import LABELS, NAMES, NEW, NEW_LABELS, TEXTS, encode, ranking


def part(first: int, last: int) -> tuple[list[str], list[str]]:
    """Return some of the documents."""
    return TEXTS[first:last], LABELS[first:last]


def new() -> tuple[list[str], list[str]]:
    """Return documents to predict."""
    return NEW, NEW_LABELS


PARTS = [functools.partial(part, *bounds) for bounds in ((0, 300), (300, 1900), (1900, 2200))]


@pytest.mark.parametrize("pool", [False, True])
def test_partitions_give_the_same_bits(tmp_path: Path, pool: bool) -> None:
    plain = TextClassifier(random_state=0, embedder=encode)
    plain.fit(TEXTS, LABELS, class_texts=NAMES)
    assert plain.state_.needs_embeddings
    model = TextClassifier(random_state=0, embedder=encode)
    settings = {"scratch": tmp_path / "scratch", "class_texts": NAMES}
    if not pool:
        fit_partitions(model, PARTS, memory_limit="2GB", **settings)
        assert data.checksum(model, tmp_path) == data.checksum(plain, tmp_path)
        assert ranking(model) == ranking(plain)
        return
    path = tmp_path / "model.longtail"
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as workers:
        fit_partitions(model, PARTS, client=workers, **settings)
        assert data.checksum(model, tmp_path) == data.checksum(plain, tmp_path)
        files = predict_partitions(path, [new] * 2, tmp_path, client=workers, embedder=encode)
        with pytest.raises(ValueError, match="open it with that encoder"):
            predict_partitions(path, [new], tmp_path / "none", client=workers)
        one_of_here = TextClassifier(embedder=lambda texts: encode(texts))
        with pytest.raises(ValueError, match=r"cannot be sent .* top level of a module"):
            fit_partitions(one_of_here, PARTS, scratch=tmp_path, client=workers)
        with pytest.raises(ValueError, match="cannot be sent to other processes"):
            predict_partitions(path, [new], tmp_path, client=workers, embedder=one_of_here.embedder)
    for file in files:
        rows = [json.loads(line) for line in Path(file).read_text().splitlines()]
        assert [row["classes"][0] for row in rows] == plain.predict(NEW).tolist()
    assert ranking(load(path, embedder=encode)) == ranking(plain)


def test_another_encoder_reads_anew(tmp_path: Path) -> None:
    first, second = (
        fit_partitions(TextClassifier(random_state=0, embedder=used), PARTS[:1], scratch=tmp_path)
        for used in (encode, lambda texts: encode(texts)[:, ::-1])
    )
    sums = first.statistics_.embedding_sums
    assert np.array_equal(second.statistics_.embedding_sums, sums[:, ::-1])


def test_the_papers_classifier_takes_none(tmp_path: Path) -> None:
    model = TextClassifier(DoubleSamplingClassifier(), embedder=encode)
    with pytest.raises(ValueError, match="DoubleSamplingClassifier takes no embeddings"):
        fit_partitions(model, PARTS, scratch=tmp_path)


def test_vectors_count_in_blocks_and_in_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = Embedder.of(lambda texts: np.ones((len(texts), 4000)))
    assert count_vector_characters(None) == 0
    assert count_vector_characters(wide) == 1000
    chunks = (Chunk(["ab"], np.array(["x"]), [i]) for i in range(5))
    assert [*map(len, group_chunks(chunks, 2004, 1000))] == [2, 2, 1]
    monkeypatch.setattr(memory_plan, "CLASS_VECTOR_BYTES", 10**6)
    model = TextClassifier(random_state=0, embedder=encode)
    with pytest.raises(MemoryLimitError, match="too low for 45 classes"):
        fit_partitions(model, PARTS, scratch=tmp_path, memory_limit="600MB")
