"""Scripts without spaces between words, and several languages in one set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from longtail import TextClassifier
from longtail.text import TextVectorizer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "languages.md"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """What the page about languages computes: 24 texts of four languages, two classes."""
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S):
        exec(compile(block, PAGE.name, "exec"), names)
    return names


def test_each_language_is_understood_in_a_mixed_set(page):
    assert page["classifier"].predict(page["questions"]).tolist() == ["weather", "food"] * 4
    words = page["spaced"].get_feature_names_out().tolist()
    assert words == ["下雨", "今天", "吃", "想", "面条"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("天气很好", ["天气", "很好", "气很"]),
        ("東京タワー", ["ワー", "京タ", "タワ", "東京"]),
        ("ฝนตก", ["ฝน", "ตก", "นต"]),
        ("ເດັກ", None),
        ("iPhone手机 weather", ["iphone", "weather", "手机"]),
    ],
)
def test_runs_become_character_bigrams(text, expected):
    vectorizer = TextVectorizer(ngram_range=(1, 1)).fit([text])
    terms = vectorizer.get_feature_names_out().tolist()
    if expected is None:  # Lao: vowel signs continue the character before them
        assert len(terms) > 1
    else:
        assert sorted(terms) == sorted(expected)


def test_without_bigrams_runs_are_words_that_never_match_again(page):
    whole = TextClassifier(vectorizer=TextVectorizer(split_unspaced=False), random_state=0)
    whole.fit(page["texts"], page["labels"])
    chinese = page["questions"][:2]
    assert not whole.explain(chinese)[0].terms
    assert page["classifier"].explain(chinese)[0].terms


def test_a_tokenizer_of_ones_own(page):
    assert page["segmented"].predict(["我要面条", "下雨"]).tolist() == ["food", "weather"]
    assert "面条" in page["segmented"].vocabulary_
    with pytest.raises(ValueError, match="tokenizer"):
        page["segmented"].save("nowhere.longtail")
