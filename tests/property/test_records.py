"""Records of any content: written and read back, split into terms that never collide."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from longtail._records import Fields, plain_text, read_fields, read_record, write_record
from longtail.text import TextVectorizer
from longtail.text.fields import show_term, spell_term
from tests.conftest import examples

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
KINDS = st.sampled_from(["text", "category", "categories", "number"])
VALUES = {
    "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    "category": st.text(max_size=6) | st.integers() | st.floats(allow_nan=True),
    "categories": st.lists(st.text(max_size=4), max_size=3) | st.text("ab;| ", max_size=6),
    "number": st.integers() | st.floats(allow_nan=True, allow_infinity=True),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return fields and some records of them."""
    fields = draw(st.dictionaries(NAMES, KINDS, min_size=1, max_size=4))
    record = st.fixed_dictionaries({n: st.none() | VALUES[k] for n, k in fields.items()})
    return fields, draw(st.lists(record, min_size=1, max_size=6))


@examples(60)
@given(tables())
def test_a_record_is_read_as_it_was_written(
    table: tuple[dict[str, str], list[dict[str, Any]]],
) -> None:
    fields = read_fields(table[0])
    assert fields is not None
    for record in table[1]:
        text = write_record(record, fields)
        values = read_record(text, fields)
        assert (values is None) == (text == "")
        if values is not None:
            assert write_record(values, fields) == text
            texts = [record[name] for name in fields.texts if name in values]
            assert plain_text(text, fields) == " ".join(texts)


@examples(40)
@given(tables())
def test_terms_of_records_do_not_collide(
    table: tuple[dict[str, str], list[dict[str, Any]]],
) -> None:
    fields, records = table
    vectorizer = TextVectorizer(fields=fields, ngram_min_df=1)
    X = vectorizer.fit_transform([*records, "plain"])
    assert (vectorizer.transform([*records, "plain"]) != X).nnz == 0
    known = vectorizer.vocabulary_
    utf8, offsets = known.utf8.tobytes(), known.offsets.tolist()
    spelled = [utf8[a:b].decode() for a, b in pairwise(offsets)]
    learned: Fields = known.options.fields
    assert len(set(spelled)) == len(spelled)
    for term in spelled:
        assert term in spell_term(show_term(term), learned)
