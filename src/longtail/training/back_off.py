"""Back-off: the deepest node of a hierarchy that an answer can be sure of.

In: candidates of documents with their probabilities, and the ranking of held-out documents that the
fit kept. Out: for a precision, the share that a node must have; the probability of a node; a
calibrator of each level. A hierarchy may be set or changed long after the fit: what is calibrated
follows from it and from the held-out ranking, which does not depend on it.

A node's share is the sum of the probabilities of the candidates at or below it, divided by those of
all candidates: a true class that is no candidate is often below the same node. On wordnet-hypernym
answers of 90 % precision are 4.9 levels deep on average, by plain sums 4.6.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._caching import cached_property
from longtail._elementary import exp, log
from longtail._kernels.types import Tree
from longtail.results import Threshold
from longtail.sparse import Floats, Integers
from longtail.taxonomy.hierarchy import Hierarchy
from longtail.taxonomy.sums import contain_ancestors, find_best_by_depth, rank_level
from longtail.training.calibration import (
    LARGEST_LOG_ODDS,
    MIN_DOCUMENTS,
    Calibrator,
    apply_map,
    calibrate_log_odds,
    fit_map,
    share_out,
)
from longtail.training.outcomes import choose_unknown
from longtail.training.short_documents import doubt_short
from longtail.training.thresholds import ASSUMED_ERRORS, MARGIN, MIN_SHARE, find_threshold

MAX_THRESHOLDS = 100  # that are kept; any client of a service may ask for any precision
LEVEL_CANDIDATES = 5  # nodes of a level whose probabilities held-out documents calibrate


class DeepestNodes(NamedTuple):
    """The deepest sure node of each document: ids (-1: none), probabilities, depths."""

    nodes: Integers
    probabilities: Floats
    depths: Integers


@dataclass(frozen=True, eq=False)
class BackOff:
    """A hierarchy over the classes of a model, and what held-out documents show of it."""

    hierarchy: Hierarchy  # as it was set
    # (n_classes,): labels of the model, sorted. Those that are no nodes are roots by themselves.
    classes: NDArray[Any]
    calibrator: Calibrator  # with the ranking of held-out documents
    # (n_base_classes,) int64: the class of each id in that ranking; -1 where it is gone.
    ranked_ids: Integers
    # Share of the documents whose class the model does not have. Such a class is taken to be one
    # more beside those below its parents: these nodes are right, all others are wrong.
    unknown: float = 0.0

    @cached_property
    def nodes(self) -> Integers:
        """The node of each class."""
        found = self.hierarchy.find(self.classes)
        missing = np.flatnonzero(found < 0)
        found[missing] = self.hierarchy.n_nodes + np.arange(len(missing))
        return found

    @cached_property
    def _nodes_of_ids(self) -> Integers:
        """The node of each class, and -1 at the end for the id -1 of no class."""
        return np.append(self.nodes, -1)

    @cached_property
    def _labels(self) -> NDArray[Any]:
        """The labels of the nodes, and of the classes that are none."""
        outside = self.classes[self.nodes >= self.hierarchy.n_nodes]
        return (
            np.concatenate([self.hierarchy.nodes, outside])
            if len(outside)
            else self.hierarchy.nodes
        )

    def labels(self, nodes: Integers, missing: Any) -> NDArray[Any]:
        """Return the labels of nodes, `missing` where there is none."""
        labels = self._labels[nodes]
        labels[nodes < 0] = missing
        return np.asarray(labels)

    @cached_property
    def tree(self) -> Tree:
        """The arrays of the hierarchy, with the classes that it lacks."""
        indptr, parents, depths = self.hierarchy.tree
        n_more = int(np.count_nonzero(self.nodes >= self.hierarchy.n_nodes))
        return Tree(
            np.append(indptr, np.full(n_more, indptr[-1])),
            parents,
            np.append(depths, np.ones(n_more, np.int64)),
        )

    @cached_property
    def n_levels(self) -> int:
        """Number of depths, the top included."""
        return int(self.tree.depths.max()) + 1

    @cached_property
    def _held_out(self) -> tuple[Integers, Floats, Integers]:
        """Nodes and shares of the candidates of held-out documents; nodes of their classes.

        Documents whose class the model no longer has are left out. How those of unknown classes
        look is what some of the others show without their class.
        """
        nodes = self._nodes_of_ids[np.append(self.ranked_ids, -1)]  # -1 stays -1
        truth = nodes[self.calibrator.ranked_truth]
        known = np.flatnonzero(truth >= 0)
        class_ids = self.calibrator.ranked_classes[known]
        shares = self.calibrator.ranked_shares[known].astype(np.float64)
        rows = choose_unknown(len(known), self.unknown)
        if len(rows):
            is_true = class_ids[rows] == self.calibrator.ranked_truth[known[rows]][:, None]
            without = share_out(np.where(is_true, 0.0, shares[rows]))
            shares = np.concatenate([shares, without])
            known = np.concatenate([known, known[rows]])
        return nodes[self.calibrator.ranked_classes[known]], shares, truth[known]

    @property
    def is_calibrated(self) -> bool:
        """Whether there are enough held-out documents; otherwise shares count as probabilities."""
        return len(self._held_out[2]) >= MIN_DOCUMENTS

    @cached_property
    def _staircase(self) -> tuple[Floats, NDArray[np.bool_], Integers]:
        """Best shares of held-out documents by depth, whether they are correct, and their nodes."""
        candidates, shares, truth = self._held_out
        nodes, best = find_best_by_depth(candidates, shares, self.tree, self.n_levels)
        best[:, 0] = 0.0  # the top says nothing
        return best, contain_ancestors(truth, nodes, self.tree), nodes

    @cached_property
    def _node_map(self) -> tuple[Floats, Floats]:
        """From the log odds of the best share at a depth to the probability of the node."""
        best, correct, _ = self._staircase
        counted = best > 0.0
        return fit_map(share_log_odds(best[counted]), correct[counted])

    @cached_property
    def _sweep(self) -> tuple[Floats, Integers, Integers]:
        """Thresholds, falling; answers and correct answers at or above each.

        At a threshold the answer of a document is its deepest node that reaches it. As the
        threshold falls, that node gives way to a deeper one.
        """
        best, correct, _ = self._staircase
        deeper = np.zeros_like(best)  # the highest share below each depth
        deeper[:, :-1] = np.maximum.accumulate(best[:, :0:-1], axis=1)[:, ::-1]
        documents, depths = np.nonzero(best > deeper)
        hits = correct[documents, depths].astype(np.int64)
        # Within a document from the highest node to the deepest; each displaces the one before.
        is_first = np.append(True, documents[1:] != documents[:-1]) if len(documents) else hits > 0
        before = np.append(0, np.arange(len(documents) - 1)) if len(documents) else documents
        gained = hits - np.where(is_first, 0, hits[before])
        order = np.argsort(-best[documents, depths], kind="stable")
        shares = best[documents, depths][order]
        ends = np.flatnonzero(np.diff(shares, append=-1.0) != 0)
        n_answers, n_correct = (np.cumsum(values[order])[ends] for values in (is_first, gained))
        return shares[ends], n_answers, n_correct

    def find_threshold(self, precision: float) -> float:
        """Return the share from which on the deepest nodes reach a precision, on average.

        As for flat predictions, a node must have at least half the share asked for. NaN where the
        precision cannot be reached.
        """
        found = self._thresholds.get(precision)
        if found is None:
            if len(self._thresholds) >= MAX_THRESHOLDS:
                self._thresholds.clear()
            found = self._thresholds[precision] = self._find_threshold(precision)
        return found

    @cached_property
    def _thresholds(self) -> dict[float, float]:
        return {}

    def _find_threshold(self, precision: float) -> float:
        if not self.is_calibrated:
            return precision
        shares, n_answers, n_correct = self._sweep
        reached = n_correct / (n_answers + ASSUMED_ERRORS)
        margin = MARGIN * np.sqrt(precision * (1.0 - precision) / np.maximum(n_answers, 1))
        found = np.flatnonzero((reached >= precision + margin) & (shares >= MIN_SHARE * precision))
        return float(shares[found[-1]]) if len(found) else np.nan

    def answer(
        self,
        class_ids: Integers,
        probabilities: Floats,
        precision: float,
        lengths: Integers,
        n_jobs: int | None = None,
    ) -> DeepestNodes:
        """Return the deepest node of each document whose share reaches the threshold."""
        candidates, shares = self._share(class_ids, probabilities)
        nodes, best = find_best_by_depth(candidates, shares, self.tree, self.n_levels, n_jobs)
        short = lengths, self.calibrator.short_length, self.calibrator.short_slope
        best = doubt_short(best, *short)
        threshold = self.find_threshold(precision)
        with np.errstate(invalid="ignore"):
            is_sure = best >= threshold
        is_sure[:, 0] = False
        is_sure &= nodes >= 0
        depths = (self.n_levels - 1 - is_sure[:, ::-1].argmax(axis=1)) * is_sure.any(axis=1)
        rows = np.arange(len(nodes))
        found = np.where(depths > 0, nodes[rows, depths], -1)
        values = best[rows, depths]
        if self.is_calibrated:
            values = apply_map(share_log_odds(values), *self._node_map)
        return DeepestNodes(found, np.where(depths > 0, values, 0.0), depths)

    def _share(self, class_ids: Integers, probabilities: Floats) -> tuple[Integers, Floats]:
        """Return the nodes of candidates, and what each has of the probability of all of them."""
        shares = share_out(probabilities)
        return self._nodes_of_ids[class_ids], shares

    def rank_level(
        self,
        class_ids: Integers,
        probabilities: Floats,
        level: int,
        k: int,
        lengths: Integers,
        n_jobs: int | None = None,
    ) -> tuple[Integers, Floats]:
        """Return the k best nodes at a depth with their probabilities, and some more if k is small.

        Best first; -1 for none.
        """
        candidates, shares = self._share(class_ids, probabilities)
        k = max(k, LEVEL_CANDIDATES)
        nodes, sums = rank_level(candidates, shares, self.tree, level, k, n_jobs)
        log_odds = np.where(nodes >= 0, share_log_odds(sums), -np.inf)
        return nodes, calibrate_log_odds(log_odds, self.level_calibrator(level), lengths)

    def score_level(
        self, class_ids: Integers, scores: Floats, level: int, k: int
    ) -> tuple[Integers, Floats]:
        """Return the k nodes at a depth with the best candidates, and the scores of these."""
        candidates = self._nodes_of_ids[class_ids]
        above = {node: self._at_level(node, level) for node in np.unique(candidates).tolist()}
        nodes = np.full((len(candidates), k), -1)
        best = np.full(nodes.shape, -np.inf)
        for row, (found, values) in enumerate(zip(candidates.tolist(), scores, strict=True)):
            first: dict[int, float] = {}  # candidates come best first
            for node, score in zip(found, values.tolist(), strict=True):
                for ancestor in above[node]:
                    first.setdefault(ancestor, score)
            n_kept = min(k, len(first))
            nodes[row, :n_kept] = list(first)[:n_kept]
            best[row, :n_kept] = list(first.values())[:n_kept]
        return nodes, best

    def _at_level(self, node: int, level: int) -> list[int]:
        """Return the ancestors of a node at a depth, ascending; itself where it is not as deep."""
        if node < 0:
            return []
        indptr, parents, depths = self.tree
        if depths[node] <= level:
            return [node]
        waiting, seen = [node], {node}
        while waiting:
            current = waiting.pop()
            for parent in parents[indptr[current] : indptr[current + 1]].tolist():
                if parent not in seen and depths[parent] >= level:
                    seen.add(parent)
                    waiting.append(parent)
        return sorted(node for node in seen if depths[node] == level)

    def level_calibrator(self, level: int) -> Calibrator:
        """Return what held-out documents show of the nodes at a depth."""
        if level not in self._level_calibrators:
            self._level_calibrators[level] = self._calibrate_level(level)
        return self._level_calibrators[level]

    def find_level_threshold(
        self, level: int, precision: float, unknown: float = 0.0, *, each: bool = False
    ) -> Threshold:
        """Return the probability from which on nodes at a depth reach a precision.

        `unknown` is the share of documents of unknown classes, where the model was not told.
        """
        calibrator = self.level_calibrator(level)
        if not unknown:
            return find_threshold(calibrator, precision, each=each)
        told = replace(self, unknown=unknown).level_calibrator(level)
        seen = replace(
            calibrator,
            held_out_log_odds=told.held_out_log_odds,
            held_out_correct=told.held_out_correct,
        )
        return find_threshold(seen, precision, each=each, told=told)

    @cached_property
    def _level_calibrators(self) -> dict[int, Calibrator]:
        return {}

    def _calibrate_level(self, level: int) -> Calibrator:
        if not self.is_calibrated:
            return Calibrator.identity()
        candidates, shares, truth = self._held_out
        nodes, sums = rank_level(candidates, shares, self.tree, level, LEVEL_CANDIDATES)
        correct = contain_ancestors(truth, nodes, self.tree)
        log_odds, there = share_log_odds(sums), nodes >= 0
        first = there[:, 0]
        order = np.argsort(-log_odds[first, 0], kind="stable")
        return Calibrator(
            *fit_map(log_odds[first, 0], correct[first, 0]),
            *fit_map(log_odds[:, 1:][there[:, 1:]], correct[:, 1:][there[:, 1:]]),
            held_out_log_odds=log_odds[first, 0][order],
            held_out_correct=correct[first, 0][order],
            short_length=self.calibrator.short_length,
            short_slope=self.calibrator.short_slope,
        )


def share_log_odds(shares: Floats) -> Floats:
    """Return the log odds of shares, finite."""
    least = exp(np.array([-LARGEST_LOG_ODDS]))[0]
    inside = np.clip(shares, least, 1.0)
    odds = np.maximum(1.0 - inside, least)
    return np.asarray(log(inside) - log(odds))
