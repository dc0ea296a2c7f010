"""Classes with their scorer and its index, which search and learning read.

In: class statistics and shared weights. Out: `ScoredClasses`, and an inverted index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from longtail.model.corpus import Corpus
from longtail.model.scorer import LinearScorer, build_scorer
from longtail.model.statistics import ClassStatistics
from longtail.model.weighting import Profile
from longtail.retrieval.index import AnyIndex, IndexShards, InvertedIndex, build_index
from longtail.retrieval.pruning import QueryPruning
from longtail.sparse import Floats
from longtail.training.shared_weights import SharedWeights


@dataclass(frozen=True, eq=False)
class ScoredClasses:
    """Classes with their scorer; feature weights of shape (6,), or (5, 6) by class size."""

    profile: Profile
    feature_weights: Floats
    scorer: LinearScorer

    def reweight(self, feature_weights: Floats, n_jobs: int | None) -> ScoredClasses:
        """Return the same classes with other feature weights."""
        return ScoredClasses(
            self.profile, feature_weights, build_scorer(self.profile, feature_weights, n_jobs)
        )

    @property
    def n_classes(self) -> int:
        """K."""
        return self.profile.statistics.n_classes

    def build_index(self, n_jobs: int | None) -> InvertedIndex:
        """Return the scorer term by term."""
        return build_index(self.scorer, self.profile.statistics.n_terms, n_jobs)


@dataclass(frozen=True, eq=False)
class ClassNorms:
    """Sums over all class terms that a profile needs."""

    squares: Floats
    masses: Floats


@dataclass(frozen=True, eq=False)
class ScorerWeights:
    """A scorer without its terms, which are those of the statistics."""

    weights: NDArray[Any]
    length_weights: Floats
    biases: Floats


def measure_classes(
    statistics: ClassStatistics, corpus: Corpus, shared: SharedWeights, n_jobs: int | None
) -> ClassNorms:
    """Compute the length and the mass of each class sum."""
    profile = Profile.of(statistics, corpus, shared.collection_model)
    return ClassNorms(profile.squares, profile.masses)


def make_profile(
    statistics: ClassStatistics, corpus: Corpus, shared: SharedWeights, norms: ClassNorms
) -> Profile:
    """Put statistics and their norms together."""
    known = {"squares": norms.squares, "masses": norms.masses}
    return Profile.of(statistics, corpus, shared.collection_model, known)


def collapse(profile: Profile, shared: SharedWeights, n_jobs: int | None) -> ScorerWeights:
    """Collapse statistics and feature weights into a scorer."""
    scorer = build_scorer(profile, shared.feature_weights, n_jobs)
    return ScorerWeights(scorer.weights, scorer.length_weights, scorer.biases)


def score_classes(profile: Profile, shared: SharedWeights, weights: ScorerWeights) -> ScoredClasses:
    """Put classes and the weights of their scorer together."""
    statistics = profile.statistics
    scorer = LinearScorer(
        statistics.indptr,
        statistics.indices,
        weights.weights,
        weights.length_weights,
        weights.biases,
    )
    return ScoredClasses(profile, shared.feature_weights, scorer)


def take_scorer(scored: ScoredClasses) -> LinearScorer:
    """Return the scorer of classes."""
    return scored.scorer


def index_shard(
    scorer: LinearScorer, n_terms: int, bounds: tuple[int, int], n_jobs: int | None
) -> InvertedIndex:
    """Build the inverted index of a range of classes."""
    first, last = bounds
    if (first, last) != (0, len(scorer.biases)):
        scorer = scorer.slice(slice(first, last))
    return build_index(scorer, n_terms, n_jobs)


def join_index(shards: Sequence[InvertedIndex], bounds: list[int]) -> AnyIndex:
    """Return an index of all classes; each shard is opened when it is searched."""
    return shards[0] if len(shards) == 1 else IndexShards(bounds, shards.__getitem__)


def count_classes(statistics: ClassStatistics, n_jobs: int | None) -> QueryPruning:
    """Count the classes of each term, by which queries are pruned; nothing is left out yet."""
    return QueryPruning.of(statistics)


def prune_by(pruning: QueryPruning, n_classes: int, postings_per_class: float) -> QueryPruning:
    """Return the same counts with another budget."""
    return pruning.with_budget(postings_per_class, n_classes)
