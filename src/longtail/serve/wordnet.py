"""The WordNet model with the page: fitted the first time, kept, and served.

Run as ``python -m longtail.serve.wordnet``; further options are those of ``longtail serve``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def model_path() -> Path:
    """Return where the fitted model is kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "longtail" / "wordnet.longtail"


def fit_wordnet(path: Path) -> None:
    """Fit the embedded WordNet set and save it."""
    from longtail import TextClassifier
    from longtail.datasets import load_wordnet

    wordnet = load_wordnet()
    path.parent.mkdir(parents=True, exist_ok=True)
    classifier = TextClassifier(random_state=0, n_jobs=-1, verbose=1)
    classifier.fit(wordnet.train_text, wordnet.train_labels).save(path)


def main() -> None:
    """Fit where needed, then serve."""
    path = model_path()
    if not path.exists():
        sys.stderr.write(f"longtail: learning 12,582 classes of WordNet; kept in {path}\n")
        fit_wordnet(path)
    os.execv(sys.executable, [sys.executable, "-m", "longtail", "serve", str(path), *sys.argv[1:]])


if __name__ == "__main__":
    main()
