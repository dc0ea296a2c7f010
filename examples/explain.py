"""Ask a model why it decided as it did: a score is a sum, and its parts are exact.

First term by term, then feature by feature, and for the runner-up as well.
"""

from collections import Counter

import numpy as np

from longtail import TextClassifier
from longtail.datasets import load_wordnet

wordnet = load_wordnet()
sizes = Counter(wordnet.train_labels.tolist())
chosen = np.flatnonzero([sizes[label] >= 30 for label in wordnet.train_labels.tolist()])
classifier = TextClassifier(random_state=0, n_jobs=-1)
classifier.fit([wordnet.train_text[i] for i in chosen], wordnet.train_labels[chosen])

text = "someone who writes poems and plays"
[why] = classifier.explain([text], top_terms=4)
print(f"{text!r}: {why.label}, score {why.score:.2f}")
for term, part in why.terms.items():
    print(f"  {part:+.2f}  {term}")
print(f"  {why.rest:+.2f}  all other terms")
print(f"  {why.constant:+.2f}  the class itself")
print("by feature:", ", ".join(f"{name} {part:+.2f}" for name, part in why.features.items()))

other = why.against
print(f"the runner-up is {other.label}, score {other.score:.2f}")
for term, part in other.terms.items():
    print(f"  {part:+.2f}  {term}")
