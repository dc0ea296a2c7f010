"""SKOS vocabularies, as RDF/XML and as Turtle."""

import contextlib

import pytest

from longtail.exceptions import DataFormatError
from longtail.taxonomy.skos import read_skos

pytest.importorskip("rdflib")

TURTLE = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix : <http://a.org/> .
:p a skos:Concept ; skos:prefLabel "Plants"@en, "Pflanzen"@de ; skos:narrower :t .
:t a skos:Concept ; skos:prefLabel "Trees"@en ; skos:altLabel "Woody\\n plants"@en .
:o a skos:Concept ; skos:prefLabel "Oaks"@en ; skos:broader :t, :p, :o, <http://elsewhere.org/x> .
"""
XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
         xmlns:skos="http://www.w3.org/2004/02/skos/core#">
  <skos:Concept rdf:about="http://a.org/o"><skos:notation>1</skos:notation>
    <skos:broader rdf:resource="http://a.org/t"/></skos:Concept>
  <skos:Concept rdf:about="http://a.org/t"><skos:notation>2</skos:notation></skos:Concept>
</rdf:RDF>"""


def test_turtle(tmp_path):
    path = tmp_path / "plants.ttl"
    path.write_text(TURTLE)
    found = read_skos(path, language="en")
    assert found.parents == {"t": ["p"], "o": ["p", "t"]}
    assert found.texts == {"p": "Plants", "t": "Trees; Woody plants", "o": "Oaks"}
    assert read_skos(path, "name", "en").parents["Oaks"] == ["Plants", "Trees"]
    assert read_skos(path).texts["p"] == "Pflanzen; Plants"
    assert "http://a.org/o" in read_skos(path, "uri").parents


def test_rdf_xml_with_notations(tmp_path):
    path = tmp_path / "plants.rdf"
    path.write_text(XML)
    assert read_skos(path).parents == {"1": ["2"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", TURTLE, "another ending"),
        ("a.ttl", "this is none", "cannot be read"),
        ("a.rdf", TURTLE, "cannot be read"),
        ("a.ttl", "", "no skos:Concept"),
        ("a.ttl", TURTLE.replace(":t a", "<http://b.org/o> skos:broader :p . :t a"), "have one id"),
    ],
)
def test_what_is_refused(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataFormatError, match=message):
        read_skos(path)


def test_an_entity_of_another_file_is_not_read(tmp_path):
    path = tmp_path / "a.rdf"
    (tmp_path / "secret").write_text("swordfish")
    entity = f'<!DOCTYPE a [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]>'
    path.write_text(entity + XML.split("?>", 1)[1].replace(">1<", ">1&e;<"))
    found = ""
    with contextlib.suppress(DataFormatError):
        found = str(read_skos(path))
    assert "swordfish" not in found
