"""The fit, from documents to a model: the one place that knows the order of its stages.

In: blocks of documents with their labels, and a `FitConfig`. Out: a `LongTailState`.

1. statistics: sum the documents of each class
2. draws: documents to hold out, and (document, label) pairs to learn shared weights on
3. shared weights: what the six features and every term are worth, on hard negatives, each document
   left out of its own class
4. self-check: compare with simpler variants on held-out documents, and see how few terms of a
   document find its candidates
5. calibration: learn the rows of classes without the held-out documents; learn on these how much
   each part of the score counts, and calibrate
6. mining and residuals: find the hard negatives of every document, learn the row of each class:
   residual and separator
7. index: collapse everything into one number for each (class, term), and index it

Each stage is a plain function of arrays that returns a frozen dataclass; it lives where its
arithmetic lives. A runner says where it runs: here, or as a task whose result is a file
(`longtail.distributed`). A fit in memory has one block, and shards of classes that read it where it
is. The bits are the same anywhere:

================= ===================================== ===========================================
stage             pure function of                      why any partitioning gives the same bits
================= ===================================== ===========================================
statistics        one block                             sums of integers
class texts       texts, statistics                     a row for each text, whatever the others
draws             labels of all blocks                  keys are hashes of seed and document id
shared weights    sampled documents, statistics         the sample, in the order of its keys
self-check        held-out documents, statistics        likewise
scorer, index     statistics, shared weights            one value for each (class, term)
mining            one block, scorer and index           a document's candidates are its own
residuals         rows that have a class of the shard   a class sees its documents in their order
calibration       held-out documents, residuals         likewise
================= ===================================== ===========================================
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._labels import LabelSets
from longtail._progress import OnStage
from longtail._validation import cap_candidates, look_up
from longtail.model.corpus import Corpus
from longtail.model.names import ClassNames
from longtail.model.state import LongTailState, build_state
from longtail.model.statistics import ClassStatistics
from longtail.sparse import CountMatrix, Integers, offsets_from_lengths
from longtail.training.calibration import Calibrator
from longtail.training.class_rows import (
    learn_shard,
    mine_block,
    mix_rows,
    score_mined,
    weigh_block,
)
from longtail.training.config import FitConfig
from longtail.training.documents import (
    Documents,
    add_statistics,
    describe_corpus,
    draw_blocks,
    drop_unknown_terms,
    gather_held_out,
    subtract_statistics,
    sum_block,
)
from longtail.training.held_out import (
    VARIANTS_BY_SCORER,
    add_first_texts,
    calibrate_held_out,
    compare_budgets,
    compare_variants,
    find_candidates,
    find_checked,
    make_variant,
    select_texts,
)
from longtail.training.runner import InMemory, Result, Runner
from longtail.training.sampling import Draws
from longtail.training.scored_classes import (
    collapse,
    count_classes,
    index_shard,
    join_index,
    make_profile,
    measure_classes,
    prune_by,
    score_classes,
    take_scorer,
)
from longtail.training.self_check import SelfCheck, list_budgets
from longtail.training.shared_weights import learn_shared_weights

_LOGGER = logging.getLogger("longtail")

# Of the documents: with fewer held out, residuals and separators are not learned a second time.
MAX_LACKING = 0.05


@dataclass(frozen=True, eq=False)
class ClassTexts:
    """Counts of class texts, and which row of them each class has; -1 for none."""

    rows: Result  # CountMatrix
    row_of_class: Result  # ndarray of shape (n_classes,)


def fit_long_tail(
    counts: CountMatrix,
    labels: LabelSets,
    config: FitConfig,
    on_stage: OnStage = lambda *_: None,
    class_texts: tuple[NDArray[Any], CountMatrix] | None = None,
) -> LongTailState:
    """Fit in memory.

    Parameters
    ----------
    counts : CountMatrix
        The documents.
    labels : LabelSets
        The labels of each document; each class has a document or a text.
    config : FitConfig
        Hyperparameters.
    on_stage : callable
        Hears the name of each stage as it begins.
    class_texts : tuple of ndarray and CountMatrix, optional
        Labels that have a text (name, description), sorted, and the counts of each text.

    Returns
    -------
    LongTailState
        The same bits for any `n_jobs`.
    """
    start, run = time.monotonic(), InMemory(config.n_jobs, on_stage)
    blocks = [Documents(counts, labels)]
    texts = None
    if class_texts is not None:
        texts = ClassTexts(class_texts[1], look_up(class_texts[0], labels.classes))
    # Passed unnamed, so that `learn` can free the sums while it needs others in their place.
    state = learn(
        run, blocks, sum_statistics(run, blocks), labels.classes, config, texts, start=start
    )
    return replace(state, label_form=labels.form)


def learn_state(
    counts: CountMatrix,
    labels: LabelSets,
    statistics: ClassStatistics,
    names: ClassNames | None,
    config: FitConfig,
) -> LongTailState:
    """Learn in memory, on documents that are in the sums: all of them, or some."""
    run = InMemory(config.n_jobs)
    blocks = [Documents(counts, labels)]
    return learn(run, blocks, statistics, labels.classes, config, names=names)


def sum_statistics(run: Runner, blocks: Sequence[Result], *, sublinear: bool = True) -> Result:
    """Sum the documents of each class."""
    run.begin("statistics")
    cases = [{"documents": block} for block in blocks]
    parts = run.each("statistics", sum_block, cases, sublinear=sublinear)
    return run.reduce("statistics", add_statistics, parts)


def learn(
    run: Runner,
    blocks: Sequence[Result],
    statistics: Result,
    classes: NDArray[Any],
    config: FitConfig,
    class_texts: ClassTexts | None = None,
    *,
    names: ClassNames | None = None,
    start: float | None = None,
) -> LongTailState:
    """Learn everything that is learned from documents whose sums are known.

    Parameters
    ----------
    run : Runner
        Says where stages run.
    blocks : sequence of Documents
        The documents to learn from, in order.
    statistics : ClassStatistics
        The sums of the documents of each class.
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    config : FitConfig
        Hyperparameters.
    class_texts : ClassTexts, optional
        The texts of classes.
    names : ClassNames, optional
        The same, weighted before.
    start : float, optional
        When the fit began, by `time.monotonic`; now when left out.

    Returns
    -------
    LongTailState
    """
    start = time.monotonic() if start is None else start
    corpus = run.one("statistics", describe_corpus, statistics=statistics)
    have_text: Result = None if names is None else names.named
    texts: Result = names
    if class_texts is not None:
        have_text = run.view(_which_have_text, row_of_class=class_texts.row_of_class)
        texts = run.one(
            "class texts",
            weigh_class_texts,
            rows=class_texts.rows,
            row_of_class=class_texts.row_of_class,
            corpus=corpus,
        )
    drawn = run.one("draws", draw_blocks, blocks=blocks, have_text=have_text, config=config)
    draws: Draws = run.read(drawn)
    config = config.for_labels(draws.candidate_factor, draws.n_documents, len(classes))

    run.begin("shared weights")
    began = time.monotonic()
    shared = run.one(
        "shared weights",
        learn_shared_weights,
        blocks=blocks,
        draws=drawn,
        statistics=statistics,
        corpus=corpus,
        config=config,
    )
    config = _keep_within_budget(config, draws, start, began)

    fit = _Fit(run, blocks, corpus, drawn, texts, config, len(classes))
    check, calibrator = SelfCheck(), Calibrator.identity(marginal=config.multilabel)
    weights: list[Result] | None = None
    learned: list[Result] | None = None
    if len(draws.held_out) and config.calibrate:
        held_out = run.one("self-check", gather_held_out, blocks=blocks, draws=drawn)
        apart = run.one("self-check", sum_block, documents=held_out, sublinear=True)
        rest = run.one("self-check", subtract_statistics, statistics=statistics, apart=apart)
        held_out = run.one("self-check", drop_unknown_terms, documents=held_out, statistics=rest)
        # Sums are exact: what was subtracted can be added again. So statistics, scorer and index
        # are in memory once.
        statistics = statistics if run.keeps_results else None
        found = _check_and_calibrate(fit, held_out, rest, shared)
        check, calibrator = found.check, found.calibrator
        shared, weights = found.shared, found.weights
        if len(draws.held_out) < MAX_LACKING * draws.n_documents:
            learned = found.learned
        del held_out, found
        if statistics is None:
            statistics = run.one("self-check", add_statistics, parts=[rest, apart])
        del rest, apart
    profile = _profile_classes(fit, statistics, shared)
    counted = run.one("scorer", count_classes, statistics=statistics)
    pruning = _prune(fit, counted, check.postings_per_class)
    if learned is None:
        run.begin("mining")
        scored = _score_classes(fit, profile, shared)
        if weights is None:
            weights = _weigh_documents(fit, shared)
        index = _index_classes(fit, statistics, run.view(take_scorer, scored=scored))
        mined = _mine(fit, weights, scored, index, pruning)
        del index
        run.begin("residuals")
        learned = _learn_rows(
            fit, weights, mined, statistics, scored, separators=check.kept_mixture.uses_separators
        )
        del mined, scored
    del weights
    sums: ClassStatistics = run.read(statistics)
    residuals = mix_rows(_drain(run, learned), check.kept_mixture, sums.class_sizes)
    run.begin("index")
    state = build_state(
        classes,
        run.read(profile),
        run.read(shared),
        residuals,
        check,
        calibrator,
        run.read(pruning),
        run.n_jobs,
        run.read(texts),
    )
    return replace(
        state,
        n_fitted_documents=draws.n_documents,
        candidate_factor=draws.candidate_factor,
    )


@dataclass(frozen=True, eq=False)
class _Fit:
    """What all stages of a fit after the shared weights are given."""

    run: Runner
    blocks: Sequence[Result]  # of Documents
    corpus: Result  # Corpus
    draws: Result  # Draws
    class_texts: Result  # ClassNames, or None
    config: FitConfig
    n_classes: int


@dataclass(frozen=True, eq=False)
class _Checked:
    """What the held-out documents have shown, and what was learned for that."""

    check: SelfCheck
    calibrator: Calibrator
    shared: Result  # SharedWeights
    weights: list[Result] | None  # of DocumentWeights, where results are kept
    learned: list[Result]  # of LearnedRows


def weigh_class_texts(
    rows: CountMatrix, row_of_class: Integers, corpus: Corpus, n_jobs: int | None
) -> ClassNames:
    """Weigh the terms of texts by idf, a row for each class."""
    return ClassNames.of(rows, corpus).gather(row_of_class)


def _which_have_text(row_of_class: Integers) -> NDArray[np.bool_]:
    return row_of_class >= 0


def _keep_within_budget(config: FitConfig, draws: Draws, start: float, began: float) -> FitConfig:
    """Leave out the stages that the time budget has no room for."""
    if config.time_budget is None:
        return config
    now = time.monotonic()
    # A document takes less time here than there: 0.3 (cve-product) to 0.6 (wordnet-hypernym) of it.
    seconds_per_label = (now - began) / max(1, len(draws.sample))
    config = config.within_budget(now - start, seconds_per_label * draws.n_labels)
    if not config.calibrate:
        left_out = "calibration" if config.residuals else "calibration and residuals"
        _LOGGER.warning("time_budget=%s: no time for %s", config.time_budget, left_out)
    return config


def _check_and_calibrate(
    fit: _Fit, held_out: Result, statistics: Result, shared: Result
) -> _Checked:
    """Choose the scorer on held-out documents, which the statistics lack; learn rows; calibrate."""
    run, config = fit.run, fit.config
    given = {"held_out": held_out, "corpus": fit.corpus, "config": config}
    run.begin("self-check")
    profile = _profile_classes(fit, statistics, shared)
    counted = run.one("scorer", count_classes, statistics=statistics)
    scorer: Result
    check: Result = SelfCheck()
    index: Result = None
    if config.self_check:
        found: list[Result] = []
        for rows in VARIANTS_BY_SCORER:
            index = scored = scorer = None  # freed before the next are built
            scored = _score_classes(
                fit, profile, run.view(make_variant, learned=shared, row=rows[0])
            )
            scorer = run.view(take_scorer, scored=scored)
            index = _index_classes(fit, statistics, scorer)
            for row in rows:
                variant = run.view(make_variant, learned=shared, row=row)
                found.append(
                    run.one(
                        "self-check",
                        find_checked,
                        shared=variant,
                        scorer=scorer,
                        index=index,
                        pruning=None,
                        **given,
                    )
                )
        measured = {"held_out": held_out, "statistics": statistics, "config": config}
        check = run.one("self-check", compare_variants, found=found, **measured)
        kept = run.read(check).scorer
        shared = run.view(make_variant, learned=shared, row=kept)
        if kept not in rows:
            index = scored = scorer = None
    if index is None:
        scored = _score_classes(fit, profile, shared)
        scorer = run.view(take_scorer, scored=scored)
        index = _index_classes(fit, statistics, scorer)
    search_scorer, search_index, texts = scorer, index, fit.class_texts
    if texts is not None:  # candidates are found by class texts as well
        texts = run.one(
            "class texts",
            select_texts,
            class_texts=texts,
            draws=fit.draws,
            statistics=statistics,
            config=config,
        )
        search_scorer = run.one(
            "scorer", add_first_texts, scorer=scorer, class_texts=texts, statistics=statistics
        )
        search_index = _index_classes(fit, statistics, search_scorer)
    by = {"shared": shared, "scorer": search_scorer, "index": search_index}
    if config.self_check:
        by_budget = [
            run.one("self-check", find_checked, pruning=_prune(fit, counted, n), **by, **given)
            for n in list_budgets(fit.n_classes, config)
        ]
        whole = found[kept]
        if texts is not None:
            whole = run.one("self-check", find_checked, pruning=None, **by, **given)
        check = run.one(
            "self-check", compare_budgets, found=[*by_budget, whole], check=check, **measured
        )
    run.begin("calibration")
    pruning = _prune(fit, counted, run.read(check).postings_per_class)
    candidates = run.one("calibration", find_candidates, pruning=pruning, **by, **given)
    del search_index, by
    weights = _weigh_documents(fit, shared)
    mined = _mine(fit, weights, scored, index, pruning, without=fit.draws)
    del index
    learned = _learn_rows(
        fit, weights, mined, statistics, scored, separators=config.separators, without=fit.draws
    )
    del mined
    # 4 or 8 bytes an entry, where a fit takes the most memory.
    kept_weights = weights if run.keeps_results else None
    del weights
    calibrated = run.read(
        run.one(
            "calibration",
            calibrate_held_out,
            held_out=held_out,
            candidates=candidates,
            scored=scored,
            scorer=search_scorer,
            learned=learned,
            shared=shared,
            class_texts=texts,
            draws=fit.draws,
            check=check,
            config=config,
        )
    )
    return _Checked(calibrated.check, calibrated.calibrator, shared, kept_weights, learned)


def _profile_classes(fit: _Fit, statistics: Result, shared: Result) -> Result:
    """Return statistics as the features read them."""
    given = {"statistics": statistics, "corpus": fit.corpus, "shared": shared}
    norms = fit.run.one("scorer", measure_classes, **given)
    return fit.run.view(make_profile, norms=norms, **given)


def _score_classes(fit: _Fit, profile: Result, shared: Result) -> Result:
    """Collapse features into a scorer."""
    weights = fit.run.one("scorer", collapse, profile=profile, shared=shared)
    return fit.run.view(score_classes, profile=profile, shared=shared, weights=weights)


def _index_classes(fit: _Fit, statistics: Result, scorer: Result) -> Result:
    """Build the inverted index of a scorer."""
    run, config = fit.run, fit.config
    wanted = cap_candidates(max(config.n_mined, config.candidates), fit.n_classes)
    bounds = run.divide_index(statistics, wanted + 1)
    cases = [{"bounds": pair} for pair in pairwise(bounds)]
    n_terms = run.read(statistics).n_terms
    shards = run.each("index", index_shard, cases, scorer=scorer, n_terms=n_terms)
    return run.view(join_index, shards=shards, bounds=bounds)


def _prune(fit: _Fit, counted: Result, postings_per_class: float) -> Result:
    """Return which terms of a document search."""
    given = {"n_classes": fit.n_classes, "postings_per_class": postings_per_class}
    return fit.run.view(prune_by, pruning=counted, **given)


def _weigh_documents(fit: _Fit, shared: Result) -> list[Result]:
    """Weigh all documents."""
    cases = [{"documents": block} for block in fit.blocks]
    given = {"shared": shared, "corpus": fit.corpus, "config": fit.config}
    return fit.run.each("weights", weigh_block, cases, **given)


def _mine(
    fit: _Fit,
    weights: Sequence[Result],
    scored: Result,
    index: Result,
    pruning: Result,
    without: Result = None,
) -> list[Result]:
    """Mine the hard negatives of all documents, but of those held out if told."""
    given = {"scored": scored, "index": index, "pruning": pruning, "config": fit.config}
    return fit.run.each(
        "mining", mine_block, _list_blocks(fit, weights=weights), without=without, **given
    )


def _learn_rows(
    fit: _Fit,
    weights: Sequence[Result],
    mined: Sequence[Result],
    statistics: Result,
    scored: Result,
    *,
    separators: bool,
    without: Result = None,
) -> list[Result]:
    """Learn the row of each class, shard by shard, from mined documents."""
    run, config = fit.run, fit.config
    n_mined = cap_candidates(config.n_mined, fit.n_classes)
    shards = run.divide_classes(fit.blocks, statistics, n_mined)
    given = {"without": without, "separators": separators, "config": config}
    scores = run.each(
        "log odds",
        score_mined,
        _list_blocks(fit, weights=weights, mined=mined),
        scored=scored,
        shards=shards if run.keeps_results else None,  # gathering would copy documents in memory
        **given,
    )
    return run.each(
        "residuals",
        learn_shard,
        [{"shard": i, "bounds": bounds} for i, bounds in enumerate(pairwise(shards))],
        blocks=fit.blocks,
        weights=weights,
        mined=mined,
        scores=scores,
        statistics=statistics,
        **given,
    )


def _drain(run: Runner, results: list[Result]) -> Iterator[Any]:
    """Iterate over results themselves, none of which is held any longer; empties the list."""
    while results:
        yield run.read(results.pop(0))


def _list_blocks(fit: _Fit, **of_blocks: Sequence[Result]) -> list[dict[str, Any]]:
    """Return blocks with the id of their first document, and with what else there is of each."""
    lengths = [block.n_documents for block in fit.blocks]
    starts = offsets_from_lengths(np.array(lengths)).tolist()
    return [
        {"documents": block, "start": start, **{name: of[i] for name, of in of_blocks.items()}}
        for i, (block, start) in enumerate(zip(fit.blocks, starts[:-1], strict=True))
    ]
