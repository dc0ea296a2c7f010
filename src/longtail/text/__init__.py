"""Raw text -> sparse counts of terms.

In: texts. Out: a `Vocabulary` and a CSR matrix of counts for the classifiers.

A text is lower-cased and its accents are folded; what Unicode calls a letter or a number makes
words, everything else parts them. Terms are the words, the pairs of neighbours and, where asked
for, the character n-grams inside words. The vocabulary is sorted, so it depends on the set of
documents alone: not on their order, on chunks or on threads.

============ ===========================================================
`tokenizer`    texts to bytes, bytes to terms
`table`      terms to numbers: hash tables that grow
`vocabulary` terms to numbers and counts: `Vocabulary`, `VocabularyBuilder`
`vectorizer` `TextVectorizer`, the same as a scikit-learn transformer
============ ===========================================================
"""

from longtail.text.tokenizer import TokenizerOptions
from longtail.text.vectorizer import TextVectorizer
from longtail.text.vocabulary import Vocabulary, VocabularyBuilder

__all__ = ["TextVectorizer", "TokenizerOptions", "Vocabulary", "VocabularyBuilder"]
