"""What a fit is told."""

from __future__ import annotations

import pytest

from longtail.training.config import FitConfig


@pytest.mark.parametrize(
    ("several", "n_documents", "n_classes", "candidates", "n_mined"),
    [
        (False, 10, 1000, 20, 20),  # one label each: as many as candidates
        (True, 1000, 1000, 40, 80),  # 200 per class would be 200 per document; twice 40 at most
        (True, 10_000, 3_000, 40, 60),
        (True, 100_000, 1_000, 40, 40),  # classes meet 4,000 anyway
        (True, 0, 5, 40, 80),
    ],
)
def test_hard_negatives_of_label_sets(several, n_documents, n_classes, candidates, n_mined):
    config = FitConfig(candidates=20).for_labels(several, n_documents, n_classes)
    assert (config.candidates, config.n_mined) == (candidates, n_mined)
    assert config.several is several
