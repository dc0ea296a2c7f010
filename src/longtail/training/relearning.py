"""Everything that is learned, learned anew on the documents that a model keeps.

In: a `LongTailState` with a memory. Out: the same sums with other weights, residuals and
calibration; where the memory holds every document, those of a fit.
"""

from __future__ import annotations

from dataclasses import replace

from longtail.training.config import FitConfig
from longtail.training.long_tail import LongTailState, learn_state
from longtail.training.long_tail_editing import merge_learned, refresh_corpus
from longtail.training.outcomes import expect_unknown

# Share of the documents that must have changed since everything was learned: a model that is taught
# n documents and refined after every few learns about ln(n) / ln(1.1) times.
SHARE_CHANGED = 0.1
# Documents that can be held out of those kept. With fewer, as on cve-stream 2016 and 2017 (taught
# and refined 34.8 %, learned anew as well 32.2 %), how much residuals count is not learned well.
FEWEST_HELD_OUT = 750


def refine_from_memory(state: LongTailState, config: FitConfig) -> LongTailState:
    """Learn everything anew where enough has changed; else bring up to date what is shared.

    A function of the state alone, so that a journal can be replayed: neither the seed nor the time
    budget of the configuration counts.
    """
    state = merge_learned(state)
    if needs_learning(state, config):
        return relearn(state, replace(config, seed=0, time_budget=None))
    return refresh_corpus(state, config.n_jobs)


def needs_learning(state: LongTailState, config: FitConfig) -> bool:
    """Return whether a model of one segment keeps enough documents, and others than before."""
    memory = state.memory
    if memory is None or len(state.classes) < 2:
        return False
    is_enough = config.held_out_share * memory.n_documents >= FEWEST_HELD_OUT
    return is_enough and memory.n_changed >= SHARE_CHANGED * state.statistics.n_documents


def relearn(state: LongTailState, config: FitConfig) -> LongTailState:
    """Learn weights, residuals, mixture and calibration on the documents that the model keeps.

    Each is left out of its class exactly, as in a fit. A class without any has no residual
    afterwards. Held-out documents are of classes that the model has; where outcomes in use showed
    that others are not, probabilities expect as many of these. The state is of one segment.
    """
    memory = state.memory
    if memory is None:
        return state
    learned = learn_state(
        memory.documents(state.statistics.n_terms),
        memory.labels(state.classes),
        state.statistics,
        state.names,
        config,
    )
    before = state.calibrator
    calibrator = replace(
        expect_unknown(learned.calibrator, before.unknown_share),
        n_outcomes=before.n_outcomes,
        unknown_share=before.unknown_share,
    )
    return replace(
        learned,
        calibrator=calibrator,
        label_form=state.label_form,
        memory=replace(memory, n_changed=0),
    )
