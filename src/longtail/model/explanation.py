"""A score taken apart, feature by feature and term by term.

In: one document, one class and the fitted parts. Out: an Explanation whose parts add up to the
score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.model.corpus import Corpus
from longtail.model.features import SIZE, score_features, weigh_by_size
from longtail.model.scorer import LinearScorer
from longtail.model.state import LongTailState
from longtail.model.statistics import ClassStatistics
from longtail.model.weighting import Profile, WeightedDocuments
from longtail.results import Explanation
from longtail.sparse import Floats, Integers
from longtail.training.ranking import score_meaning

NAME = "name"  # the last feature of an explanation where classes have names: what its name adds
MEANING = "meaning"  # the feature of a model that ranks by embeddings

# A term is common where more than this share of the classes has it, and more than this share of the
# documents. The second keeps the topics of a few large classes apart from function words: each of
# twenty newsgroups mentions every topic somewhere. On WordNet both hold for: a, of, the, in.
COMMON_IN_CLASSES = 1 / 2
COMMON_IN_DOCUMENTS = 1 / 10


@dataclass(frozen=True)
class ScoreParts:
    """The contributions of one (document, class) pair before they have names."""

    features: Floats
    terms: NDArray[Any]
    contributions: Floats
    constant: float
    common: NDArray[np.bool_]
    meaning: float | None = None


def find_common_terms(
    terms: NDArray[Any], statistics: ClassStatistics, corpus: Corpus
) -> NDArray[np.bool_]:
    """Return which terms most classes share: function words, and what all documents speak of."""
    n_classes = int(np.count_nonzero(statistics.class_sizes))
    return _are_common(terms, statistics.class_frequencies[terms], n_classes, corpus)


def _are_common(
    terms: NDArray[Any], frequencies: Integers, n_classes: int, corpus: Corpus
) -> NDArray[np.bool_]:
    in_documents = corpus.document_frequencies[terms] > COMMON_IN_DOCUMENTS * corpus.n_documents
    return np.asarray(in_documents & (frequencies > COMMON_IN_CLASSES * n_classes))


def split_linear_scores(
    documents: WeightedDocuments,
    class_ids: Integers,
    state: LongTailState,
    n_jobs: int | None = None,
) -> list[ScoreParts]:
    """Split the score and residual of each document for one class, in base or overlay."""
    overlay, corpus, weights = state.overlay, state.current_corpus, state.ranking_weights
    common = np.zeros(documents.rows.n_terms, np.bool_)
    terms = np.unique(documents.rows.indices)
    n_classes = int(np.count_nonzero(state.class_sizes))
    common[terms] = _are_common(terms, state.class_frequencies[terms], n_classes, corpus)
    tables: list[Any] = [(state, state.statistics)]
    sources = [np.asarray(class_ids, np.int64)]
    if overlay is not None:
        of_all = overlay.document_frequencies
        tables += [
            (tier, replace(tier.statistics, document_frequencies=of_all)) for tier in overlay.tiers
        ]
        sources = overlay.locate(overlay.ids[class_ids])
    parts: list[ScoreParts | None] = [None] * len(class_ids)
    for (table, statistics), rows in zip(tables, sources, strict=True):
        document_ids = np.flatnonzero(rows >= 0)
        found = _split_in_segment(
            documents.gather(document_ids),
            rows[document_ids],
            Profile(statistics, corpus, state.shares),
            weights,
            table,
            common,
            n_jobs,
        )
        for document_id, split in zip(document_ids.tolist(), found, strict=True):
            parts[document_id] = split
    if state.needs_embeddings:
        added = score_meaning(state, documents.rows, np.asarray(class_ids)[:, None], n_jobs)[:, 0]
        return [
            replace(split, meaning=float(value))
            for split, value in zip(parts, added, strict=True)
            if split is not None
        ]
    return [split for split in parts if split is not None]


def _split_in_segment(
    documents: WeightedDocuments,
    class_rows: Integers,
    profile: Profile,
    feature_weights: Floats,
    segment: Any,
    common: NDArray[np.bool_],
    n_jobs: int | None,
) -> list[ScoreParts]:
    """Split the scores of documents for one class of a segment each."""
    n_documents = documents.rows.n_documents
    class_rows = np.ascontiguousarray(class_rows, np.int64)
    # The norms of all classes would take longer than everything else.
    distinct, asked = np.unique(class_rows, return_inverse=True)
    of_few = replace(profile, statistics=profile.statistics.gather(distinct))
    features = score_features(
        documents,
        np.arange(n_documents),
        asked[:, None],
        np.full(n_documents, -1),
        of_few,
        n_jobs,
    )[:, 0]
    of_class = [weigh_by_size(rows, features[:, SIZE]) for rows in feature_weights.T]
    parts = features * np.column_stack(of_class)
    learned = [segment.residuals.as_scorer]
    names = segment.name_scorer
    if names is not None:
        late_bonus = segment.ranking_residuals.biases - segment.residuals.biases
        learned.append(replace(names, biases=names.biases + late_bonus))
    return [
        _split_one(documents, document, int(row), parts[document], segment.scorer, learned, common)
        for document, row in enumerate(class_rows)
    ]


def _split_one(
    documents: WeightedDocuments,
    document: int,
    class_row: int,
    features: Floats,
    scorer: LinearScorer,
    learned: Sequence[LinearScorer],
    common: NDArray[np.bool_],
) -> ScoreParts:
    """Split one score term by term.

    A length weight counts for every term of the document, shared or not; `features` holds what each
    feature adds, to which residual and name, if any, are added as the last.
    """
    entries = slice(*documents.rows.indptr[document : document + 2])
    terms, weights = documents.rows.indices[entries], documents.weights[entries].astype(np.float64)
    residual_inputs = documents.residual_inputs[entries].astype(np.float64)
    contributions = weights * scorer.length_weights[class_row]
    constant = float(scorer.biases[class_row])

    def add_shared(linear: LinearScorer, weights: Floats, sums: Floats) -> Floats:
        row = slice(*linear.indptr[class_row : class_row + 2])
        _, in_document, in_class = np.intersect1d(
            terms, linear.indices[row], assume_unique=True, return_indices=True
        )
        sums[in_document] += weights[in_document] * linear.weights[row][in_class]
        return sums

    add_shared(scorer, weights, contributions)
    # Residuals come first, then names.
    for linear, inputs in zip(learned, (residual_inputs, weights), strict=False):
        added = add_shared(linear, inputs, np.zeros(len(terms)))
        bias = float(linear.biases[class_row])
        features = np.append(features, added.sum() + bias)
        contributions, constant = contributions + added, bias + constant
    return ScoreParts(features, terms, contributions, constant, common[terms])


def name_parts(
    pairs: Sequence[tuple[ScoreParts, ScoreParts | None]],
    labels: NDArray[Any],
    explained: Integers,
    runners_up: Integers,
    top_terms: int,
    term_names: NDArray[Any] | None,
    feature_names: tuple[str, ...],
) -> list[Explanation]:
    """Give the parts of each document's score their names, beside those of its runner-up.

    A runner-up is the class id of the best other candidate, -1 for none, whose parts are None.
    """
    explanations = []
    for (split, other), class_id, runner_up in zip(pairs, explained, runners_up, strict=True):
        sides = [side for side in (split, other) if side is not None]
        terms = split.terms if other is None else np.union1d(split.terms, other.terms)
        contributions, common = np.zeros((2, len(terms))), np.zeros(len(terms), np.bool_)
        for side, row in zip(sides, contributions, strict=False):
            where = np.searchsorted(terms, side.terms)
            row[where], common[where] = side.contributions, side.common
        order = np.lexsort((terms, -np.abs(contributions[0] - contributions[1])))
        shown, folded = order[~common[order]][:top_terms], order[common[order]]
        names = terms if term_names is None else term_names[terms]
        found, *against = (
            _name_part(side, labels[label], row, shown, folded, names, feature_names)
            for side, label, row in zip(sides, (class_id, runner_up), contributions, strict=False)
        )
        explanations.append(found.beside(*against))
    return explanations


def _name_part(
    split: ScoreParts,
    label: Any,
    contributions: Floats,
    shown: Integers,
    folded: Integers,
    names: NDArray[Any],
    feature_names: tuple[str, ...],
) -> Explanation:
    """Name one score's parts: the terms that are shown, those that are folded, the features."""

    def named(ids: Integers) -> dict[Any, float]:
        return dict(zip(names[ids].tolist(), contributions[ids].tolist(), strict=True))

    found = zip([*feature_names, NAME][: len(split.features)], split.features.tolist(), strict=True)
    features, meaning = dict(found), split.meaning
    if meaning is not None:
        features[MEANING] = meaning
    return Explanation(
        label=label,
        score=float(split.contributions.sum() + split.constant + (meaning or 0.0)),
        features=features,
        meaning=meaning,
        terms=named(shown),
        rest=float(np.delete(contributions, shown).sum()),
        constant=split.constant,
        runner_up=None,
        runner_up_score=-np.inf,
        common=named(folded),
    )
