"""Seeds: sound contents of files, from the golden ones, with every part that a file may have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from longtail._constants import EXPECTED, FIGURES, LABEL_FORMS, N_LEARNED, RESIDUALS, SCORERS
from longtail._kernels.sizes import N_BENDS, N_SCORE_FEATURES
from longtail.store import FORMAT_NUMBER, open_model, pack_texts, write_model
from longtail.store.texts import unpack_texts
from tests.fuzz.mutations import Array

GOLDEN = Path(__file__).parents[1] / "persistence" / "golden"
ESTIMATORS = ("long_tail", "double_sampling", "text_long_tail", "text_double_sampling")
# Texts with names of classes, columns, documents that are kept, and today's vectorizer.
NAMED = "text_named"
SETS = "label_sets"  # counts with the columns of a dense matrix as classes
SEEDS = (*ESTIMATORS, NAMED, SETS)
# Parts that the golden files lack; the test suite runs every mutation of them.
MORE_PARTS = {
    NAMED: ("names", "class_texts", "memory", "in_use", "hierarchy", "nodes", "calibrator",
            "statistics/embedding_sums", "check/meaning", "embedder", "values/embedder",
            "values/columns", "estimators",
            "values/label_form", "values/memory"),
    SETS: ("check", "feature_names", "calibrator", "values/check", "values/label_form",
           "values/calibrator", "estimators"),
}  # fmt: skip
# A map with knots: too few documents are held out in the golden files to learn one.
CALIBRATOR = {
    "top_log_odds": np.array([-2.0, 0.0, 1.5]),
    "top_probabilities": np.array([0.1, 0.5, 0.9]),
    "other_log_odds": np.array([-3.0, -1.0]),
    "other_probabilities": np.array([0.0, 0.4]),
    "held_out_log_odds": np.array([3.0, 2.0, 1.0, 1.0, -1.0]),
    "held_out_correct": np.array([True, True, True, False, False]),
    "unknown_log_odds": np.array([2.0, 0.5, -1.0]),
    "pair_probabilities": np.zeros(0),
    "pair_correct": np.zeros(0, np.bool_),
    "ranked_classes": np.zeros((0, 1), np.int32),
    "ranked_shares": np.zeros((0, 1), np.float32),
    "ranked_truth": np.zeros(0, np.int32),
}


@dataclass
class Content:
    """What a file is made of."""

    kind: str
    parameters: dict[str, Any]
    arrays: dict[str, Array]

    def write(self, path: Path) -> None:
        """Write it, with right checksums."""
        arrays = {name: np.asarray(array) for name, array in self.arrays.items()}
        path.unlink(missing_ok=True)
        write_model(path, self.kind, self.parameters, arrays)


@cache
def read_seed(name: str) -> Content:
    """Return the content of a golden file, with a calibrator that has knots, and what it lacks."""
    golden = {NAMED: "text_long_tail", SETS: "long_tail"}.get(name, name)
    file = open_model(GOLDEN / f"format_{FORMAT_NUMBER}_{golden}.longtail")
    arrays = {key: np.array(array) for key, array in file.arrays.items()}
    for key in arrays:
        part, _, attribute = key.partition("/")
        if part == "calibrator":
            arrays[key] = CALIBRATOR[attribute]
    seed = Content(file.kind, file.parameters, arrays)
    return {NAMED: _with_names, SETS: _with_sets}.get(name, lambda seed: seed)(seed)


def copy_seed(name: str) -> Content:
    """Return a copy of a seed that may be changed."""
    seed = read_seed(name)
    return Content(seed.kind, seed.parameters, dict(seed.arrays))


def _with_names(seed: Content) -> Content:
    """Give two of three classes a name of two terms; such a file has no index."""
    arrays, header = seed.arrays, seed.parameters
    n_classes, n_terms = (
        len(arrays[f"statistics/{size}"]) for size in ("class_sizes", "document_frequencies")
    )
    named = np.arange(n_classes) % 3 > 0
    indptr = np.concatenate([[0], np.cumsum(2 * named)])
    indices = np.concatenate([[c % (n_terms - 1), n_terms - 1] for c in np.flatnonzero(named)])
    texts = ["a name" if has_name else "" for has_name in named]
    kept = {key: array for key, array in arrays.items() if not key.startswith("index/")}
    kept |= pack_texts("class_texts", texts) | {
        "names/indptr": indptr.astype(np.int64),
        "names/indices": indices.astype(np.int32),
        "names/weights": np.full(len(indices), 0.7, np.float32),
        "names/named": named,
        "check/name_weights": np.array([14.0, -0.6, 1.5]),
        "in_use/sums": np.array([9.0, 1.0, 4.0, 5.0, 2.0, 30.0]),
        "in_use/weights": np.array([0.4, 0.7]),
        "in_use/outcomes": np.array([[2.0, 0.8, 0.1, 0.0, 5.0], [-1.0, 0.2, 0.3, 3.0, 2.0]]),
        "in_use/added": np.array([1.0, 0.5, 1.0, 0.5, 0.5, 2.0]),
        "bins/edges": np.array([1.5, 20.0, 3.0]),
        "bins/offsets": np.array([0, 2, 3]),
        **_keep_documents(arrays),
        **_make_hierarchy(arrays),
        **_embed(named),
    }
    fields = [["title", "text"], ["price", "number"], ["tags", "categories"], ["year", "number"]]
    more = {
        "TextClassifier": {"fields": fields},
        "LongTailClassifier": {"memory": 2, "adapt": False, "class_weight": "balanced"},
        "TextVectorizer": {"stop_words": ["the"], "char_ngram_range": [3, 4], "fields": fields},
    }
    estimators = {k: given | more.get(k, {}) for k, given in header["estimators"].items()}
    values = header["values"] | {
        "embedder/name": "some.encoder",
        "columns/text": ["title", "body"],
        "columns/label": ["class"],
        "columns/label_separator": ";",
        "columns/format": "csv",
        "columns/header": False,
        "columns/delimiter": "|",
        "columns/quotes": True,
        "columns/encoding": "latin-1",
        "label_form/form": LABEL_FORMS.index("lists"),
        "label_form/n_columns": 0,
        "n_fitted_documents": 12,
        "candidate_factor": 1,
        "memory/per_class": 2,
        "memory/n_changed": 3,
    }
    return Content(seed.kind, {"estimators": estimators, "values": values}, kept)


def _embed(named: Array) -> dict[str, Array]:
    """Give classes sums of embeddings, and those that have a name one of that."""
    random, n_classes = np.random.default_rng(1), len(named)
    of_names = random.integers(-2000, 2000, (n_classes, 5)) * named[:, None]
    return {
        "statistics/embedding_sums": random.integers(-9000, 9000, (n_classes, 5), np.int32),
        "names/embeddings": of_names.astype(np.int16),
        "memory/embeddings": random.integers(-2000, 2000, (n_classes, 5), np.int16),
        "check/meaning": random.normal(size=(N_BENDS + 2, 4)),
        "check/meaning_centers": random.integers(-2000, 2000, (2, 5), np.int16),
        "check/meaning_figures": random.random((2, len(FIGURES))),
        "embedder/probe": np.array([4096, 0, -3, 7, 0], np.int16),
    }


def _make_hierarchy(arrays: dict[str, Array]) -> dict[str, Array]:
    """Put a node above every class, a second one above every third, and rank three documents."""
    labels = unpack_texts(
        "classes.text", arrays["classes.text.offsets"], arrays["classes.text.utf8"]
    )
    nodes = sorted([*labels, "~ all", "~ some"])
    classes = np.array([nodes.index(label) for label in labels])
    parents = [[] for _ in nodes]
    for c in classes.tolist():
        parents[c] = [nodes.index("~ all")] + ([nodes.index("~ some")] if c % 3 == 0 else [])
    lengths = [len(above) for above in parents]
    return pack_texts("nodes.text", nodes) | {
        "hierarchy/indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "hierarchy/parents": np.array([p for above in parents for p in above], np.int64),
        "calibrator/ranked_classes": np.array([[0, 1], [1, -1], [2, 0]], np.int32),
        "calibrator/ranked_shares": np.array([[0.8, 0.2], [1, 0], [0.6, 0.4]], np.float32),
        "calibrator/ranked_truth": np.array([0, 1, -1], np.int32),
    }


def _keep_documents(arrays: dict[str, Array]) -> dict[str, Array]:
    """Let a model keep a document of each class, with one of its terms."""
    starts = arrays["statistics/indptr"][:-1]
    n_classes = len(starts)
    return {
        "memory/indptr": np.arange(n_classes + 1),
        "memory/gaps": arrays["statistics/indices"][starts].astype(np.uint16),
        "memory/data": np.ones(n_classes, np.uint8),
        "memory/class_ids": np.arange(n_classes),
    }


def _with_sets(seed: Content) -> Content:
    """Make the classes columns of a matrix, with marginals and a whole self-check."""
    random, header = np.random.default_rng(0), seed.parameters
    arrays = seed.arrays | {
        "calibrator/pair_probabilities": np.array([0.9, 0.6, 0.6, 0.1]),
        "calibrator/pair_correct": np.array([True, False, True, False]),
        "check/scorer_figures": random.random((len(SCORERS), len(FIGURES))),
        "check/recalls": np.array([0.4, 0.5, 0.6, 0.7]),
        "check/residual_figures": random.random((len(RESIDUALS), len(FIGURES))),
        "check/expected": random.random((len(EXPECTED), 3)),
        "check/mixture": np.array([1.1, 0.9, 0.3, 0.2]),
        "check/mixture_slopes": np.array([0.1, -0.2, 0.1, 0.1]),
        "check/feature_shifts": random.normal(size=(2, N_SCORE_FEATURES)) / 9,
        "check/mixture_bends": random.normal(size=(N_BENDS, N_SCORE_FEATURES + N_LEARNED)) / 9,
    }
    n_terms = len(arrays["statistics/document_frequencies"])
    arrays |= pack_texts("feature_names", [f"term {t}" for t in range(n_terms)])
    more = {"multilabel": "auto", "calibrate": True, "time_budget": 3.5, "memory": 0}
    more["search"] = "auto"
    estimators = {kind: given | more for kind, given in header["estimators"].items()}
    values = header["values"] | {
        "calibrator/marginal": True,
        "calibrator/calibration_error": 0.02,
        "calibrator/n_outcomes": 7,
        "calibrator/unknown_share": 0.25,
        "calibrator/short_length": 3.0,
        "calibrator/short_slope": 1.5,
        "label_form/form": LABEL_FORMS.index("dense indicator"),
        "label_form/n_columns": 30,
        "n_fitted_documents": 12,
        "candidate_factor": 1,
        "check/scorer": 3,
        "check/residuals": 2,
        "check/postings_per_class": 1 / 64,
        "pruning/matching_only": True,
    }
    return Content(seed.kind, {"estimators": estimators, "values": values}, arrays)
