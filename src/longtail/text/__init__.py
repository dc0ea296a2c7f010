"""Raw text -> sparse counts of terms.

In: texts. Out: a `Vocabulary` and a CSR matrix of counts for the classifiers.

Case is folded and accents go; what Unicode calls a letter or a number makes words, everything else
separates them, and runs of characters of scripts without spaces become bigrams of characters. Terms
are the words, n-grams of words and, where asked for, character n-grams inside words. The vocabulary
is sorted, so it depends on the set of documents alone: not on their order, on chunks or on threads.

============ ===========================================================
`options`    how texts become terms
`fields`     what the fields of records become
`tokenizer`  texts to bytes, bytes to tokens
`interning`  tokens to term ids: hash tables that grow
`vocabulary` `Vocabulary`: terms to ids, texts to counts
`builder`    `VocabularyBuilder`: a vocabulary from texts that come in chunks
`vectorizer` `TextVectorizer`, the same as a scikit-learn transformer
============ ===========================================================
"""

from longtail.text.builder import TermSelection, VocabularyBuilder, extend_vocabulary
from longtail.text.options import TokenizerOptions
from longtail.text.vectorizer import TextVectorizer
from longtail.text.vocabulary import Vocabulary

__all__ = [
    "TermSelection",
    "TextVectorizer",
    "TokenizerOptions",
    "Vocabulary",
    "VocabularyBuilder",
    "extend_vocabulary",
]
