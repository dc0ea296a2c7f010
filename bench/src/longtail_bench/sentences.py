"""Which article is a sentence of: a set of more than 200,000 real classes, made of smaller sets.

In: data sets with texts, and a seed. Out: a CountDataset. Each text is an article and a class of
its own; its documents are its sentences. From each article that has enough one sentence is held
out, which must find the article by the others (known-item search). A sentence that several articles
have tells none of them from the rest and is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

from longtail.datasets import CountDataset
from longtail_bench.measure import Progress

MIN_WORDS = 4  # of a sentence: fewer are headings and remains of abbreviations
MIN_SENTENCES = 3  # of an article of which one is held out: two are left
MIN_DOCUMENTS = 2  # training documents that have a term

# A point behind a capital letter belongs to an initial or an abbreviated genus.
_BETWEEN_SENTENCES = re.compile(r"""(?<=[^A-Z\s][.!?])["')\]]*\s+(?=["'(\[]*[A-Z])""")


def split_sentences(text: str) -> list[str]:
    """Split a text where a sentence ends and a capital letter follows; leaves short ones out.

    Examples
    --------
    >>> split_sentences("It was found by C. L. Koch in 1841. Seven species are known. See also it.")
    ['It was found by C. L. Koch in 1841.', 'Seven species are known.']
    """
    sentences = _BETWEEN_SENTENCES.split(text.strip())
    return [sentence for sentence in sentences if len(sentence.split()) >= MIN_WORDS]


def make_sentence_set(
    texts_of: Mapping[str, Sequence[str]],
    seed: int = 0,
    progress: Progress = lambda *_: None,
) -> CountDataset:
    """Make classes of texts and documents of their sentences.

    Parameters
    ----------
    texts_of : mapping of str to sequence of str
        The texts of each set; one that a set has twice is one article.
    seed : int, default=0
        Decides which sentence of an article is held out.
    progress : callable, optional
        Called with what is being done, how many steps are done, and how many there are.

    Returns
    -------
    CountDataset
        Terms are runs of two or more of a-z and 0-9, lower-cased, accents folded. Classes are
        called by their set and the number of their text in it, from 0.

    Raises
    ------
    ValueError
        If no article has enough sentences.

    Examples
    --------
    >>> texts = ["Red pandas eat green bamboo. Pandas live in tall trees. Pandas eat in trees.",
    ...          "Blue whales eat small krill. Whales live in the sea."]
    >>> data = make_sentence_set({"animals": texts})
    >>> data.X_train.shape[0], data.X_test.shape[0], data.classes.tolist()
    (4, 1, ['animals 0', 'animals 1'])
    """
    progress("sentences", 0, 3)
    articles: list[list[str]] = []
    names: list[str] = []
    for name, texts in texts_of.items():
        first: dict[str, int] = {}
        for i, text in enumerate(texts):
            first.setdefault(text, i)
        articles += [list(dict.fromkeys(split_sentences(text))) for text in first]
        names += [f"{name} {i}" for i in first.values()]
    n_articles = Counter(sentence.casefold() for article in articles for sentence in article)
    rng = np.random.default_rng(seed)
    train: list[str] = []
    test: list[str] = []
    y_train: list[int] = []
    y_test: list[int] = []
    classes: list[str] = []
    for name, article in zip(names, articles, strict=True):
        kept = [sentence for sentence in article if n_articles[sentence.casefold()] == 1]
        if not kept:
            continue
        if len(kept) >= MIN_SENTENCES:
            test.append(kept.pop(int(rng.integers(len(kept)))))
            y_test.append(len(classes))
        train += kept
        y_train += [len(classes)] * len(kept)
        classes.append(name)
    if not test:
        raise ValueError(f"no text has {MIN_SENTENCES} sentences that no other text has.")
    progress("counts of training documents", 1, 3)
    vectorizer = CountVectorizer(
        strip_accents="unicode",
        token_pattern="[a-z0-9]{2,}",
        min_df=MIN_DOCUMENTS,
        dtype=np.float32,
    )
    X_train = vectorizer.fit_transform(train)
    progress("counts of test documents", 2, 3)
    return CountDataset(
        csr_array(X_train),
        np.array(y_train),
        csr_array(vectorizer.transform(test)),
        np.array(y_test),
        np.array(classes),
        vectorizer.get_feature_names_out(),
    )
