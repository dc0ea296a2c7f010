"""What a fit is told."""

from __future__ import annotations

import pytest

from longtail.training.config import FitConfig, candidate_factor


@pytest.mark.parametrize(
    ("factor", "n_documents", "n_classes", "candidates", "n_mined"),
    [
        (1, 10, 1000, 20, 20),  # one label each: as many as candidates
        (2, 1000, 1000, 40, 80),  # 200 per class would be 200 per document; twice 40 at most
        (3, 10_000, 3_000, 60, 60),
        (10, 100_000, 1_000, 200, 40),  # classes meet 4,000 anyway
        (2, 0, 5, 40, 80),
    ],
)
def test_hard_negatives_of_label_sets(factor, n_documents, n_classes, candidates, n_mined):
    config = FitConfig(candidates=20).for_labels(factor, n_documents, n_classes)
    assert (config.candidates, config.n_mined) == (candidates, n_mined)
    assert config.multilabel is (factor > 1)


@pytest.mark.parametrize(
    ("several", "n_labels", "n_documents", "factor"),
    [
        (False, 7, 7, 1),
        (True, 7, 7, 2),  # some documents have none, others two
        (True, 29, 10, 2),
        (True, 53, 10, 5),
        (True, 190, 10, 10),
        (True, 0, 0, 2),
    ],
)
def test_candidates_grow_with_the_labels_of_a_document(several, n_labels, n_documents, factor):
    assert candidate_factor(several, n_labels, n_documents) == factor
