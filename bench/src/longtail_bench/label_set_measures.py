"""A ranking of documents with label sets -> what tables say of it, and what others published."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longtail import metrics
from longtail._labels import LabelSets
from longtail.metrics import LabelBand, RankedSets
from longtail.metrics.rankings import document_ndcg
from longtail_bench.label_set_data import LabelSetDataset

# F1@5 (mean of the documents' F1) and nDCG on the dev part of tib-subjects, German and English, all
# labels in the truth, as Annif's team published them; their training text was translated and
# partly written by a large language model. The depth of their nDCG is not stated.
PUBLISHED = {
    "tib-subjects": {
        "Annif, MLLM": (0.249, 0.444, 0.230, 0.418),
        "Annif, omikuji Bonsai": (0.323, 0.570, 0.340, 0.598),
        "Annif, XR-Transformer": (0.319, 0.561, 0.312, 0.552),
        "Annif, Bonsai + MLLM": (0.334, 0.592, 0.345, 0.610),
        "Annif, ensemble with LLM reranking": (0.351, 0.626, 0.355, 0.633),
    }
}

_BAND_DEPTH = 5


def measure_label_sets(
    data: LabelSetDataset, ranking: NDArray[np.int64]
) -> tuple[dict[str, float], tuple[LabelBand, ...]]:
    """Compare a ranking with the true labels of the test part.

    Parameters
    ----------
    data : LabelSetDataset
        With the labels that training never saw, which are in the truth for the measures called
        ``all labels`` and out of it for the others.
    ranking : ndarray of shape (n_documents, n_ranked)
        Class ids, best first, -1 where there are fewer.

    Returns
    -------
    measures : dict of str to float
        By name, such as ``P@5``, from 0 to 1; ``all documents nDCG@5`` is ``all labels nDCG@5``
        with 0 for a document without label, as published figures have it; ``never seen
        R@10`` is the share of the labels that training never saw that are among the first ten.
    bands : tuple of LabelBand
        At 5, by class frequency.
    """
    everything = RankedSets(data.test, ranking)
    ranked = RankedSets(
        select_labels(data.test, np.arange(len(data.test.classes)) < data.n_train_classes), ranking
    )
    sizes = np.bincount(data.train.class_ids, minlength=len(data.test.classes))
    propensity = metrics.propensities(sizes, data.X_train.shape[0])
    n_ranked = ranking.shape[1]
    measures = {f"P@{k}": metrics.precision_at_k(ranked, k=k) for k in (1, 3, 5)}
    measures |= {f"nDCG@{k}": metrics.ndcg_at_k(ranked, k=k) for k in (3, 5)}
    measures["R@10"] = metrics.recall_at_k(ranked, k=min(10, n_ranked))
    measures["F1@5"] = metrics.f1_at_k(ranked, k=5)
    measures["F1@5 of means"] = metrics.f1_at_k_of_means(ranked, k=5)
    measures["R-precision"] = metrics.r_precision(ranked)
    for k in (1, 3, 5):
        measures[f"PSP@{k}"] = metrics.psp_at_k(ranked, propensity=propensity, k=k)
    measures["PSnDCG@5"] = metrics.psndcg_at_k(ranked, propensity=propensity, k=5)
    class_sizes: dict[object, int] = dict(enumerate(sizes.tolist()))
    deep = metrics.label_frequency_report(everything, class_sizes, k=min(10, n_ranked))
    measures["never seen R@10"] = deep[0].recall
    for k in (1, 3, 5):
        name = f"all labels PSP@{k}"
        measures[name] = metrics.psp_at_k(everything, propensity=propensity, k=k)
    measures["all documents nDCG@5"] = float(np.mean(document_ndcg(everything, k=5)))
    measures |= _by_language(data, everything)
    return measures, tuple(metrics.label_frequency_report(everything, class_sizes, k=_BAND_DEPTH))


def select_labels(sets: LabelSets, wanted: NDArray[np.bool_]) -> LabelSets:
    """Leave labels of other classes than those wanted out of the sets."""
    kept = wanted[sets.class_ids]
    sizes = np.bincount(sets.document_ids[kept], minlength=len(sets))
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return LabelSets(indptr, sets.class_ids[kept], sets.classes)


def _by_language(data: LabelSetDataset, ranked: RankedSets) -> dict[str, float]:
    """Return F1@5 and nDCG with all labels in the truth, for each language and all together."""
    groups = {"": np.arange(len(data.test))}
    if data.languages is not None:
        found = sorted(set(data.languages.tolist()))
        groups |= {f" {name}": np.flatnonzero(data.languages == name) for name in found}
    measures = {}
    for name, documents in groups.items():
        some = RankedSets(data.test.gather(documents), ranked.ranking[documents])
        measures[f"all labels{name} F1@5"] = metrics.f1_at_k(some, k=5)
        for k in (5, 10, 20):
            if k <= ranked.ranking.shape[1]:
                measures[f"all labels{name} nDCG@{k}"] = metrics.ndcg_at_k(some, k=k)
    return measures
