"""The report of `evaluate` in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import csv
import json
import os
import random
import shutil

import pytest

from tests.cli.test_models import run

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.slow  # in a browser
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

if CHROMIUM is None and not os.environ.get("LONGTAIL_REQUIRE_BROWSER"):
    pytest.skip(
        "the report is tested with Chromium, which is missing: apt-get install chromium",
        allow_module_level=True,
    )

# The last two classes have the same words, so each is taken for the other.
WORDS = [f"w{i}x w{i}y w{i}z" for i in range(11)]
WORDS.append(WORDS[-1])


def documents(n, first):
    rng = random.Random(first)
    for i in range(first, first + n):
        label = i % len(WORDS)
        yield f"T-{i}", f"class {label:02}", f"{WORDS[label]} the n{rng.randrange(99)}"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports of a model of one label per document, and of one of several."""
    folder = tmp_path_factory.mktemp("report")
    for name, n, first in (("train", 600, 0), ("test", 300, 600)):
        rows = list(documents(n, first))
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("ticket", "label", "text"), *rows])
        with (folder / f"{name}.jsonl").open("w") as file:
            for i, (ticket, label, text) in enumerate(rows):
                labels = [label, "every third"] if i % 3 == 0 else [label]
                text += " third" if i % 3 == 0 else ""
                row = {"ticket": ticket, "labels": labels, "text": text}
                file.write(json.dumps(row) + "\n")
    made = {}
    for kind, ending, label in (("one", "csv", "label"), ("several", "jsonl", "labels")):
        model, page = folder / f"{kind}.longtail", folder / f"{kind}.html"
        run("fit", folder / f"train.{ending}", "--text", "text", "--label", label, "-o", model)
        run("evaluate", model, folder / f"test.{ending}", "--report", page, "--keep", "ticket")
        made[kind] = page
    return made


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_report(browser, pages):
    """Return a function that opens a report; no error may reach its console."""
    errors = []

    def open_one(kind, width=1400, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        page.goto(pages[kind].as_uri())
        return page

    yield open_one
    assert errors == []


@pytest.mark.parametrize("kind", ["one", "several"])
def test_classes_come_worst_first_and_can_be_filtered(open_report, kind):
    page = open_report(kind)
    rows = page.locator("#classes tbody tr")
    shares = [
        float(cell.rstrip("%")) for cell in page.locator("#classes td:last-child").all_inner_texts()
    ]
    assert len(shares) >= 10
    assert shares == sorted(shares)
    assert page.locator("#classes-least").input_value() == "10"
    page.locator("#classes-least").fill("1000")
    assert rows.count() == 0
    page.locator("#classes-least").fill("0")
    page.locator("#classes-filter").fill("class 03")
    assert rows.count() == 1
    assert rows.first.locator("td").first.inner_text() == "class 03"


@pytest.mark.parametrize("kind", ["one", "several"])
def test_a_report_has_one_headline_and_what_to_act_on(open_report, kind):
    page = open_report(kind)
    [headline] = page.locator("h1").all_inner_texts()
    assert " right" in headline
    assert "; " in headline
    costs = page.locator("h2", has_text="What each precision costs")
    assert costs.count() == 1
    asked = page.locator(".beside").first.locator("tbody tr td:first-child").all_inner_texts()
    assert asked == ["90%", "95%", "98%", "99%"]
    assert page.locator("svg[role=img]").count() == 3
    mistakes = page.locator(".mistake").all_inner_texts()
    assert mistakes
    assert all("ticket T-" in mistake for mistake in mistakes)
    assert page.locator("h2", has_text="All measures").count() == 1
    assert page.get_by_text("95 % interval").count() >= 3


def test_classes_that_are_taken_for_each_other_are_one_row(open_report):
    page = open_report("one")
    table = page.locator("h2", has_text="Most confused classes").locator(
        "xpath=following::table[1]"
    )
    first = table.locator("tbody tr").first.locator("td").all_inner_texts()
    assert set(first[:2]) == {"class 10", "class 11"}
    assert first[-1] == "merge?"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("kind", ["one", "several"])
def test_a_report_fits_its_window(open_report, kind, width, scheme):
    page = open_report(kind, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    table, figure = (page.locator(".beside").first.locator(part) for part in ("table", "figure"))
    box = table.bounding_box()
    assert (figure.bounding_box()["y"] < box["y"] + box["height"]) == (width == 1400)
