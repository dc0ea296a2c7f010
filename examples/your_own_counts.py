"""Use counts of your own: any matrix of non-negative numbers will do, and terms need not be words.

Here the terms are hashed pieces of names, and the classes say what a genus is a genus of.
"""

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from longtail import LongTailClassifier, metrics
from longtail.datasets import load_wordnet

wordnet = load_wordnet()
chosen = np.flatnonzero(np.char.find(wordnet.train_labels, " genus [") > 0)
names = [wordnet.train_text[i].split("|")[0] for i in chosen]
labels = wordnet.train_labels[chosen]

pieces = HashingVectorizer(
    analyzer="char_wb", ngram_range=(3, 5), n_features=2**16, norm=None, alternate_sign=False
)
X = pieces.transform(names)
test = np.arange(len(names)) % 5 == 0
classifier = LongTailClassifier(random_state=0, n_jobs=-1).fit(X[~test], labels[~test])
print(f"{np.sum(~test):,} names of {len(classifier.classes_)} classes, {X.shape[1]:,} terms")
for name, predicted in (
    ("from the spelling alone", classifier.predict(X[test])),
    ("always the most frequent class", np.full(test.sum(), "bird genus [n01507175]")),
):
    print(f"{name}: {metrics.accuracy(labels[test], predicted):.0%} right")

why = classifier.explain(pieces.transform(["Tyrannosaurus"]), top_terms=3)[0]
print("Tyrannosaurus:", why.label, "because of terms number", list(why.terms))
