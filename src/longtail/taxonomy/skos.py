"""SKOS vocabularies: hierarchy, names and synonyms of concepts, from RDF/XML or Turtle.

In: a file. Out: the parents of each concept, and its labels as a text of the class. Read by rdflib,
an optional dependency.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from longtail._optional import import_optional
from longtail.exceptions import DataFormatError

KeyedBy = Literal["auto", "notation", "id", "uri", "name"]
_FORMATS = {
    ".ttl": "turtle", ".n3": "n3", ".nt": "nt", ".rdf": "xml", ".xml": "xml", ".owl": "xml",
    ".jsonld": "json-ld",
}  # fmt: skip
_LARGEST_FILE = 2 << 30  # bytes; rdflib takes about ten times as much memory


class SkosVocabulary(NamedTuple):
    """The concepts of a vocabulary: parents and texts."""

    parents: dict[str, list[str]]  # the broader concepts of each concept that has any
    # Preferred and alternative labels of each concept, separated by semicolons.
    texts: dict[str, str]


def read_skos(
    path: str | os.PathLike[str], keyed_by: KeyedBy = "auto", language: str | None = None
) -> SkosVocabulary:
    """Read a SKOS vocabulary.

    Parameters
    ----------
    path : path-like
        RDF/XML (.rdf, .xml, .owl), Turtle (.ttl), N-Triples (.nt) or JSON-LD (.jsonld).
    keyed_by : {"auto", "notation", "id", "uri", "name"}, default="auto"
        What the labels of the classes are: the notation of a concept, the last part of its URI, the
        URI, or the preferred label. "auto" is the notation where all concepts have one of their
        own, else the last part.
    language : str, optional
        Take labels of this language, such as "en", and those without one; all when left out.

    Raises
    ------
    ImportError
        If rdflib is not installed.
    longtail.exceptions.DataFormatError
        If the file cannot be read, has no concept, or two concepts have one label.
    """
    graph, skos = _parse(Path(path))
    concepts = sorted(set(_subjects(graph, skos)), key=str)
    if not concepts:
        raise DataFormatError(path, "has no skos:Concept; is it a SKOS vocabulary?")
    keys = _choose_keys(path, graph, skos, concepts, keyed_by, language)
    parents: dict[str, set[str]] = {}
    for concept in concepts:
        broader = [*graph.objects(concept, skos.broader), *graph.subjects(skos.narrower, concept)]
        above = {keys[one] for one in broader if one in keys and one != concept}
        if above:
            parents[keys[concept]] = above
    texts = {}
    for concept in concepts:
        named = [
            label
            for kind in (skos.prefLabel, skos.altLabel)
            for label in sorted(_texts(graph.objects(concept, kind), language))
        ]
        if named:
            texts[keys[concept]] = "; ".join(dict.fromkeys(named))
    return SkosVocabulary({child: sorted(above) for child, above in parents.items()}, texts)


def _parse(path: Path) -> tuple[Any, Any]:
    rdflib = import_optional("rdflib", "reading a vocabulary", "'longtail[skos]'")
    if path.suffix.lower() not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise DataFormatError(path, f"has another ending than those of vocabularies: {known}.")
    if path.stat().st_size > _LARGEST_FILE:
        raise DataFormatError(path, f"is larger than {_LARGEST_FILE >> 30} GiB; give a part of it.")
    graph = rdflib.Graph()
    try:
        graph.parse(path, format=_FORMATS[path.suffix.lower()])
    except Exception as error:  # each parser has errors of its own
        raise DataFormatError(path, f"cannot be read: {str(error)[:300]}") from None
    return graph, rdflib.SKOS


def _subjects(graph: Any, skos: Any) -> Iterable[Any]:
    """Yield the concepts: what is said to be one, or has a broader or a preferred label."""
    import rdflib

    yield from graph.subjects(rdflib.RDF.type, skos.Concept)
    yield from graph.subjects(skos.broader, None)


def _texts(values: Iterable[Any], language: str | None) -> Iterable[str]:
    """Yield labels of a language, without line breaks."""
    for value in values:
        spoken = getattr(value, "language", None)
        if language is None or spoken is None or spoken.split("-")[0] == language:
            text = " ".join(str(value).split())
            if text:
                yield text


def _choose_keys(
    path: str | os.PathLike[str],
    graph: Any,
    skos: Any,
    concepts: list[Any],
    keyed_by: KeyedBy,
    language: str | None,
) -> dict[Any, str]:
    """Return the label of the class of each concept."""

    def first(values: Iterable[str]) -> str:
        return min(values, default="")

    def notation(concept: Any) -> str:
        return first(str(value) for value in graph.objects(concept, skos.notation))

    choices: dict[str, Callable[[Any], str]] = {
        "notation": notation,
        "id": lambda concept: re.split(r"[/#:]", str(concept).rstrip("/#"))[-1],
        "uri": str,
        "name": lambda concept: first(_texts(graph.objects(concept, skos.prefLabel), language)),
    }
    if keyed_by == "auto":
        notations = {notation(concept) for concept in concepts}
        keyed_by = "notation" if len(notations - {""}) == len(concepts) else "id"
    keys: dict[Any, str] = {}
    concept_of: dict[str, Any] = {}
    for concept in concepts:
        key = choices[keyed_by](concept)
        if not key:
            raise DataFormatError(path, f"{concept} has no {keyed_by}; choose another key.")
        if key in concept_of:
            raise DataFormatError(
                path,
                f"{concept} and {concept_of[key]} have one {keyed_by}, {key!r}; choose another "
                "key.",
            )
        keys[concept], concept_of[key] = key, concept
    return keys
