"""A few random sequences of changes of each kind of model; `make sequences` runs more."""

import pytest

from tests.sequences.steps import KINDS, ORACLES, Runner


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    return Runner(tmp_path_factory.mktemp("models"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [*KINDS, *ORACLES])
def test_whatever_is_done_in_whatever_order(runner, kind):
    for seed in range(2):
        runner.run(kind, runner.steps(kind, seed, 50))


def test_the_same_seed_gives_the_same_steps(runner):
    steps = runner.steps("large", 7, 20)
    assert steps == runner.steps("large", 7, 20) != runner.steps("large", 8, 20)


def test_a_sequence_that_fails_is_shortened(runner, monkeypatch):
    def run(kind, steps):
        assert ("compact",) not in steps or ("refine",) not in steps

    monkeypatch.setattr(runner, "run", run)
    steps = [("teach",), ("refine",), ("undo", 1), ("compact",), ("check",)]
    assert runner.shorten("plain", steps) == [("refine",), ("compact",)]
