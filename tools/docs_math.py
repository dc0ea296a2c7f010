"""Formulas of the pages, in TeX between dollar signs, as MathML, which browsers draw themselves.

A hook of mkdocs: it changes the text of a page before it becomes HTML, outside of code.
"""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert

_CODE = re.compile(r"(^```.*?^```|^(?:    |\t).*?$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_INLINE = re.compile(r"(?<![\\$\w])\$(?=\S)((?:[^$\n]|\n(?!\n))+?)(?<=\S)\$(?![\w$])")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page with its formulas as MathML."""
    if "$" not in markdown:
        return markdown
    return "".join(
        part if _CODE.fullmatch(part) else convert_formulas(part) for part in _CODE.split(markdown)
    )


def convert_formulas(text: str) -> str:
    """Return a text without code with its formulas as MathML."""
    text = _BLOCK.sub(lambda found: f"\n\n{convert(found[1], display='block')}\n\n", text)
    return _INLINE.sub(convert_inline, text)


def convert_inline(found: re.Match[str]) -> str:
    """Return a formula in a span: a line that begins with <math> would be a paragraph."""
    formula = convert(found[1].replace("\n", " "))
    return f"<span>{formula}</span>"
