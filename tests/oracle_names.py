"""What names of classes add, in plain dicts and loops, importing nothing of ours.

A text is a dict term -> count. The sums of documents never contain it: it is one more row for its
class, and a class that has one needs no document.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tests import oracle_text
from tests.oracle_score import Document, weigh
from tests.oracle_search import Problem, Scorer, single

FIRST_NAME_WEIGHTS = (17.0, -2.0, 1.5)  # of a name, per unit of ln n_c, of a class without document
SEARCH_BONUS = 1.5  # the most that counts when candidates are sought


@dataclass(frozen=True)
class Names:
    """The weights of each class's name, of length 1; which classes have one."""

    rows: list[Document]
    named: list[bool]

    def of_classes(self, kept: Collection[int]) -> Names:
        """The same classes; those that are not kept lose their names."""
        classes = range(len(self.rows))
        return Names(
            [self.rows[c] if c in kept else {} for c in classes],
            [self.named[c] and c in kept for c in classes],
        )

    def of_terms(self, kept: Collection[int]) -> Names:
        """The same names; terms that are not kept count nothing."""
        rows = []
        for row in self.rows:
            left = {t: v if t in kept else 0.0 for t, v in row.items()}
            length = math.sqrt(max(math.fsum(v * v for v in left.values()), 1e-12))
            rows.append({t: single(v / length) for t, v in left.items()})
        return Names(rows, self.named)

    def match(self, x: Document, c: int) -> float:
        """What a weighted document has in common with a name."""
        return math.fsum(v * self.rows[c].get(t, 0.0) for t, v in x.items())

    def without_documents(self, sizes: Sequence[int]) -> list[int]:
        """The classes that are known by name alone."""
        return [c for c, named in enumerate(self.named) if named and sizes[c] == 0]

    def as_scorer(self, sizes: Sequence[int], name_weights: Sequence[float]) -> Scorer:
        """(w_0 + w_1 ln n_c) times the match, and the bonus as far as it seeks candidates."""
        weight, slope, bonus = name_weights
        alone = self.without_documents(sizes)
        rows = []
        for row, size in zip(self.rows, sizes, strict=True):
            factor = single(weight + slope * math.log(max(size, 0.5)))
            rows.append({t: single(v * factor) for t, v in row.items()})
        biases = [min(bonus, SEARCH_BONUS) if c in alone else 0.0 for c in range(len(rows))]
        return Scorer(rows, [0.0] * len(rows), biases)

    def late_bonus(self, sizes: Sequence[int], name_weights: Sequence[float]) -> list[float]:
        """What is left of the bonus once candidates are found."""
        left, alone = max(name_weights[2] - SEARCH_BONUS, 0.0), self.without_documents(sizes)
        return [left if c in alone else 0.0 for c in range(len(self.rows))]


def weigh_names(problem: Problem, texts: Mapping[int, Document]) -> Names:
    """Counts times idf, brought to length 1; terms that no document has count nothing."""
    rows: list[Document] = []
    for c in range(problem.n_classes):
        weighted = {
            t: n * problem.idf[t] if problem.class_frequencies[t] else 0.0
            for t, n in texts.get(c, {}).items()
        }
        length = math.sqrt(max(math.fsum(v * v for v in weighted.values()), 1e-12))
        rows.append({t: single(v / length) for t, v in weighted.items()})
    return Names(rows, [c in texts for c in range(problem.n_classes)])


def add_scorers(first: Scorer, second: Scorer) -> Scorer:
    """The sum of two scorers, its weights in 32 bits."""
    return Scorer(
        [
            {t: single(a.get(t, 0.0) + b.get(t, 0.0)) for t in {*a, *b}}
            for a, b in zip(first.weights, second.weights, strict=True)
        ],
        [a + b for a, b in zip(first.length_weights, second.length_weights, strict=True)],
        [a + b for a, b in zip(first.biases, second.biases, strict=True)],
    )


# ---- from texts to counts


def count_names(
    texts: Sequence[str], vocabulary: Sequence[str], most_similar: int = 20, least: float = 0.3
) -> list[Document]:
    """Each word counts for the terms that look most like it, by the square of the similarity.

    N-grams of words, which have a blank or begin with a tilde, count as in a document.
    """
    is_word = [" " not in term and not term.startswith("~") for term in vocabulary]
    similar_to = {
        word: find_similar(word, vocabulary, is_word, most_similar, least)
        for word in {word for text in texts for word in oracle_text.words(text)}
    }
    rows = []
    for text in texts:
        row: Counter[int] = Counter()
        for word in oracle_text.words(text):
            for t, similarity in similar_to[word].items():
                row[t] += similarity**2
        exact = oracle_text.terms(text)
        for t, term in enumerate(vocabulary):
            if term in exact and not is_word[t]:
                row[t] += exact[term]
        rows.append(dict(row))
    return rows


def find_similar(
    word: str, vocabulary: Sequence[str], is_word: Sequence[bool], most: int, least: float
) -> dict[int, float]:
    """The words of a vocabulary of highest cosine by character 3- to 5-grams; ties to the lower."""
    known = {t: split_word(term) for t, term in enumerate(vocabulary) if is_word[t]}
    frequencies = Counter(piece for pieces in known.values() for piece in pieces)

    def vector(pieces: Mapping[str, float]) -> dict[str, float]:
        ids = dict(enumerate(pieces))
        idf = [math.log((1 + len(known)) / (1 + frequencies[p])) + 1 for p in ids.values()]
        weights = weigh({i: pieces[p] for i, p in ids.items()}, idf)
        return {ids[i]: single(v) for i, v in weights.items()}

    query = vector(split_word(word))
    cosines = {
        t: math.fsum(v * query.get(piece, 0.0) for piece, v in vector(pieces).items())
        for t, pieces in known.items()
    }
    best = sorted(cosines, key=lambda t: (-cosines[t], t))[:most]
    return {t: cosines[t] for t in best if cosines[t] >= least}


def split_word(word: str) -> dict[str, float]:
    """A word's character n-grams, with its edges, and the word itself."""
    return oracle_text.terms(word, (1, 1), (3, 5), ngram_weight=1.0, split_unspaced=False)
