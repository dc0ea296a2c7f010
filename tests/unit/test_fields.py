"""Records: fields to one text, and to terms, compared with plain Python."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise

import numpy as np
import pytest

from longtail._records import Fields, plain_text, read_fields, read_record, write_documents
from longtail.text import TextVectorizer
from longtail.text.fields import N_BINS, show_term

FIELDS = {
    "subject": "text",
    "body text": "text",
    "brand": "category",
    "price": "number",
    "tags": "categories",
}
RECORDS = [
    {
        "subject": f"refund {'please' if i % 2 else 'now'}",
        "body text": "my order my toy",
        "brand": "acme co" if i % 3 else None,
        "price": None if i % 7 == 0 else i * 3.5,
        "tags": ["x", "y y"] if i % 2 else "a; b|c",
    }
    for i in range(60)
]


def slow_terms(record: dict, edges: list[float]) -> dict[str, float]:
    """Return the terms of a record and what they count."""
    counts: dict[str, float] = {}

    def add(term: str, weight: float = 1.0) -> None:
        counts[term] = counts.get(term, 0.0) + weight

    def add_words(text: str, prefix: str) -> None:
        words = re.findall(r"[^\W_]+", text.lower())
        for word in words:
            add(prefix + word)
        for first, second in pairwise(words):
            add(f"{prefix}{first} {second}", 0.5)

    texts = [record.get(name) or "" for name in ("subject", "body text")]
    add_words(" ".join(texts), "")
    add_words(texts[0], "subject:")
    add_words(texts[1], "body text:")
    if record.get("brand"):
        add(f"brand={record['brand']}")
    tags = record.get("tags") or []
    for tag in re.split("[;|]", tags) if isinstance(tags, str) else tags:
        add(f"tags={tag.strip()}")
    if record.get("price") is not None:
        at = sum(edge <= record["price"] for edge in edges)
        names = [f"{edge:g}" for edge in edges]
        bins = [f"{a}..{b}" for a, b in zip(["", *names], [*names, ""], strict=True)]
        for i in range(max(at - 1, 0), min(at + 2, len(bins))):
            add(f"price={bins[i]}")
    return counts


def test_the_terms_of_records_are_those_of_plain_python() -> None:
    vectorizer = TextVectorizer(fields=FIELDS, ngram_min_df=1)
    X = vectorizer.fit_transform(RECORDS)
    prices = sorted(r["price"] for r in RECORDS if r["price"] is not None)
    edges = sorted({prices[i * len(prices) // N_BINS] for i in range(1, N_BINS)} - {prices[0]})
    terms = vectorizer.get_feature_names_out()
    for row, record in enumerate(RECORDS):
        found = {terms[j]: X[row, j] for j in X[[row]].indices}
        assert found == slow_terms(record, edges)
    again = vectorizer.transform(RECORDS)
    assert (again != X).nnz == 0
    for i, term in enumerate(terms):
        assert vectorizer.vocabulary_[term] == i


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_chunks_do_not_matter(n_jobs: int) -> None:
    whole = TextVectorizer(fields=FIELDS)
    X = whole.fit_transform(RECORDS)
    chunked = TextVectorizer(fields=FIELDS, n_jobs=n_jobs)
    Y = chunked.fit_chunks([RECORDS[:7], RECORDS[7:8], RECORDS[8:]])
    assert whole.vocabulary_.options == chunked.vocabulary_.options
    assert whole.vocabulary_.terms == chunked.vocabulary_.terms
    assert (X != Y).nnz == 0


def test_a_record_of_one_text_has_the_terms_of_the_text() -> None:
    texts = ["A brown bear", "bears eat honey", "", "the red fox ~ 7f"]
    plain = TextVectorizer(ngram_min_df=1, char_ngram_range=(3, 4))
    fields = TextVectorizer(ngram_min_df=1, char_ngram_range=(3, 4), fields={"text": "text"})
    X, Y = plain.fit_transform(texts), fields.fit_transform([{"text": text} for text in texts])
    assert np.array_equal(plain.vocabulary_.utf8, fields.vocabulary_.utf8)
    assert (X != Y).nnz == 0
    assert (fields.transform(texts) != X).nnz == 0


def test_missing_values_are_no_terms() -> None:
    pd = pytest.importorskip("pandas")
    vectorizer = TextVectorizer(fields=FIELDS).fit(RECORDS)
    nothing = [None, math.nan, np.nan, pd.NA, pd.NaT, "", "  "]
    rows = [dict.fromkeys(FIELDS, value) for value in nothing] + [{"tags": []}, {"brand": None}]
    assert vectorizer.transform(rows).nnz == 0


def test_values_of_fields_do_not_collide_with_words() -> None:
    def split(text: str) -> list[str]:
        return text.split(" ")

    fields = {"a": "text", "b": "text", "c": "category"}
    records = [
        {"a": "c=x a:x ~\x7fc\x7fx a\x7fx", "b": "b:y ~c", "c": "x"},
        {"a": "x", "b": "y", "c": "x y"},
    ]
    vectorizer = TextVectorizer(fields=fields, tokenizer=split, ngram_range=(1, 1))
    X = vectorizer.fit_transform(records)
    utf8, offsets = vectorizer.vocabulary_.utf8.tobytes(), vectorizer.vocabulary_.offsets
    terms = [utf8[a:b].decode() for a, b in pairwise(offsets)]
    assert len(set(terms)) == len(terms)
    assert terms.count("~\x7fc\x7fx") == 1
    assert X[0, terms.index("~\x7fc\x7fx")] == 1
    assert X[1, terms.index("~\x7fc\x7fx")] == 0
    assert X[1, terms.index("a\x7fx")] == 1
    assert X[0, terms.index("a\x7fx")] == 0


def test_names_with_blanks_do_not_collide() -> None:
    records = [{"a": "b c", "a b": "c"}]
    vectorizer = TextVectorizer(fields={"a": "text", "a b": "text"}, ngram_min_df=1)
    vectorizer.fit(records)
    assert sorted(vectorizer.vocabulary_.terms) == [
        "a b:c", "a:b", "a:b c", "a:c", "b", "b c", "c", "c c",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"brand": 7.0}, {"brand": "7"}),
        ({"brand": np.int64(7)}, {"brand": "7"}),
        ({"brand": True}, {"brand": "True"}),
        ({"brand": " acme "}, {"brand": "acme"}),
        ({"subject": 7.5}, {"subject": "7.5"}),
        ({"price": "19.90"}, {"price": 19.9}),
        ({"price": np.float32(2)}, {"price": 2}),
        ({"price": math.inf}, {"price": 2.0**1023}),
        ({"price": 10**400}, {"price": 2.0**1023}),
        ({"tags": {"b", "a"}}, {"tags": ["a", "b"]}),
        ({"tags": np.array(["a", None, "a"], object)}, {"tags": ["a"]}),
        ({"tags": 7}, {"tags": ["7"]}),
        ({"tags": "a;;b"}, {"tags": ["a", "b"]}),
        ({"subject": 'a "b" é {', "more": 1}, {"subject": 'a "b" é {'}),
    ],
)
def test_values_are_written_in_one_form(given: dict, written: dict) -> None:
    fields = read_fields(FIELDS)
    [text] = write_documents([given], fields)
    assert json.loads(text) == written
    assert fields is not None
    assert read_record(text, fields) == written
    assert write_documents([text], fields) == [text]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"price": "cheap"}, r"document 0: field 'price' holds 'cheap'; expected a number"),
        ({"price": [1]}, r"field 'price' holds a list; expected a number"),
        ({"price": 1j}, r"field 'price' holds a complex"),
        ({"brand": ["a"]}, r"field 'brand' holds a list; expected a string or a number"),
        ({"subject": {"a": 1}}, r"field 'subject' holds a dict"),
        ({"tags": [["a"]]}, r"field 'tags' holds a list"),
        ({"subjekt": "a"}, r"there is no field 'subject'; there are 'subjekt'; did you mean"),
        ({}, r"there is no field 'subject'; there are none"),
        (7, r"document 0: it must be a record with .* is of type int"),
        (None, r"document 0: .* it is missing"),
    ],
)
def test_what_is_no_record_is_refused(document: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_documents([document], read_fields(FIELDS))


def test_what_is_no_list_of_records_is_refused() -> None:
    fields = read_fields(FIELDS)
    with pytest.raises(ValueError, match=r"Put a record into a list"):
        write_documents({"subject": "a"}, fields)
    with pytest.raises(ValueError, match=r"got one str"):
        write_documents("a", fields)
    with pytest.raises(ValueError, match=r"fields=\{"):
        write_documents([{"subject": "a"}], None)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_are_records(library: str) -> None:
    module = pytest.importorskip(library)
    columns = {
        "id": [1, 2],
        "subject": ["a", None],
        "body text": ["b", "c"],
        "brand": ["x", None],
        "price": [1.5, None],
        "tags": [["t"], None],
    }
    table = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    fields = read_fields(FIELDS)
    assert write_documents(table, fields) == write_documents(records, fields)
    short = table.drop(columns=["price"]) if library == "pandas" else table.drop(["price"])
    with pytest.raises(ValueError, match=r"there is no field 'price'; there are 'id'"):
        write_documents(short, fields)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("a", "text")], "must be a mapping"),
        ({}, "must be a mapping"),
        ({"a": "string"}, "must be one of text, category, categories, number"),
        ({"a": "categories:"}, "must be one of"),
        ({"a": None}, "must be one of"),
        ({7: "text"}, "must have names"),
        ({"a\x7f": "text"}, "must have names"),
        ({"": "text"}, "must have names"),
    ],
)
def test_fields_that_cannot_be_used_are_refused(given: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TextVectorizer(fields=given).fit(["a text"])  # type: ignore[arg-type]


def test_a_separator_of_categories_can_be_given() -> None:
    fields = read_fields({"tags": "categories:,"})
    assert write_documents([{"tags": "a; b, c"}], fields) == ['{"tags": ["a; b", "c"]}']


def test_text_that_looks_like_json_is_text() -> None:
    fields = Fields((("a", "text"),))
    for text in ('{"b": 1}', "{", "[1]", '{"a"', "{" * 100_000):
        assert read_record(text, fields) is None
        assert plain_text(text, fields) == text
    assert plain_text('{"a": "b"}', fields) == "b"
    assert plain_text('{"a": "b"}', None) == '{"a": "b"}'


def test_terms_are_shown_by_field() -> None:
    assert show_term("~\x7fbrand\x7fa=\x7fb") == "brand=a=\x7fb"
    assert show_term("a\x7fb\x7fx a\x7fb\x7fy") == "a b:x y"
    assert show_term("~ab") == "~ab"
