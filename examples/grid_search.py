"""Choose parameters with scikit-learn's grid search, by cross-validation over a whole pipeline.

Nothing needs choosing as a rule; this shows that the estimators are ordinary scikit-learn ones.
"""

from collections import Counter

from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from longtail import LongTailClassifier
from longtail.datasets import load_wordnet
from longtail.text import TextVectorizer

wordnet = load_wordnet()
# Classes with enough documents for every fold to have some.
frequent = {label for label, n in Counter(wordnet.train_labels.tolist()).items() if n >= 60}
pairs = [
    (text, label)
    for text, label in zip(wordnet.train_text, wordnet.train_labels.tolist(), strict=True)
    if label in frequent
]
texts, labels = zip(*pairs[::4], strict=True)
print(f"{len(texts):,} definitions of {len(frequent)} classes")

pipeline = Pipeline(
    [
        ("counts", TextVectorizer()),
        ("classifier", LongTailClassifier(random_state=0)),
    ]
)
search = GridSearchCV(
    pipeline, {"counts__ngram_range": [(1, 1), (1, 2)], "classifier__C": [1.0, 3.0]}, cv=2
)
search.fit(list(texts), list(labels))
for parameters, score in zip(
    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
):
    print(f"{score:.1%} with {parameters}")
print("best:", search.best_params_)
