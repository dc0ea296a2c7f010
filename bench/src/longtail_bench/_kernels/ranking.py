"""Scores of all classes from postings, and the best of them."""

from __future__ import annotations

from longtail._kernels.jit import kernel


@kernel
def rank_postings(
    indptr,
    indices,
    data,
    posting_indptr,
    posting_classes,
    posting_values,
    constants,
    length_values,
    first,
    last,
    class_scores,
    ranked,
    scores,
):
    """Rank the classes of the documents `first` to `last - 1`; ties go to the lower class.

    The score of class c is `constants[c] + length * length_values[c] + sum of data * value` over
    the postings of c among the document's terms; the length is the sum of the document's data.

    indptr, indices, data            documents, CSR
    posting_indptr (n_terms + 1,)    posting_classes, posting_values (n_postings,)
    constants, length_values         (n_classes,) float64
    class_scores                     (n_classes,) float64, scratch
    ranked, scores                   (n_documents, k), filled; k at most n_classes
    """
    n_classes, k = len(constants), ranked.shape[1]
    for document in range(first, last):
        length = 0.0
        for place in range(indptr[document], indptr[document + 1]):
            length += data[place]
        for c in range(n_classes):
            class_scores[c] = constants[c] + length * length_values[c]
        for place in range(indptr[document], indptr[document + 1]):
            term, value = indices[place], data[place]
            for posting in range(posting_indptr[term], posting_indptr[term + 1]):
                class_scores[posting_classes[posting]] += value * posting_values[posting]
        n_kept = 0
        for c in range(n_classes):
            score = class_scores[c]
            if n_kept == k:
                if not score > scores[document, k - 1]:
                    continue
                place = k - 1
            else:
                place = n_kept
                n_kept += 1
            while place > 0 and scores[document, place - 1] < score:
                scores[document, place] = scores[document, place - 1]
                ranked[document, place] = ranked[document, place - 1]
                place -= 1
            scores[document, place] = score
            ranked[document, place] = c
