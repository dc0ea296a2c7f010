"""What pages say works: examples in docstrings, blocks of Python, commands and options."""

import contextlib
import csv
import doctest
import importlib.util
import io
import pkgutil
import re
import shlex
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import longtail
from longtail import datasets
from longtail.cli.app import app
from longtail.exceptions import NoKnownTermWarning

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PYTHON = re.compile(r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:[ \t]+(?:\$ )?|\$ )(?:[^|#\n]*\| )?(longtail [a-z-].*)$", re.MULTILINE)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)#:\s]+)(?:#[^)]*)?\)")
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(longtail.__path__, "longtail.")
    if "__main__" not in module.name
)


def name_page(page):
    return str(page.relative_to(ROOT).with_suffix("")).removeprefix("docs/")


def has_examples(name):
    return ">>> " in Path(importlib.util.find_spec(name).origin).read_text()


def python_blocks(page):
    """Return the blocks of a page, each with what it prints according to the page, if that is said.

    Without those whose first line says why they are not run.
    """
    return [
        (code, printed)
        for code, printed in PYTHON.findall(page.read_text())
        if not code.startswith("# not run by the tests: ")
    ]


def commands(page):
    """Return the commands of a page as lists of words, without what the shell does with them."""
    found = []
    for line in COMMAND.findall(page.read_text()):
        words = shlex.split(line, comments=True)
        ends = [words.index(word) for word in ("|", ">", "&&") if word in words]
        found.append(words[1 : min(ends, default=len(words))])
    return found


@pytest.mark.parametrize("name", [name for name in MODULES if has_examples(name)])
def test_examples_of_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.filterwarnings("ignore::longtail.exceptions.NoKnownTermWarning")
@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=name_page)
def test_blocks_of_python(page, tmp_path, monkeypatch):
    """Every block runs, one after the other, in an empty folder, and prints what the page says."""
    monkeypatch.chdir(tmp_path)
    if page.stem == "choosing-parameters":  # the same on fewer documents
        monkeypatch.setattr(datasets, "load_wordnet", lambda: shorten(whole_set()))
        # One gloss has no term of so few documents; all of them know a term of each.
        warnings.simplefilter("ignore", NoKnownTermWarning)
    names = {"__name__": name_page(page)}
    for block, printed in python_blocks(page):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(block, page.name, "exec"), names)
        if printed:
            assert output.getvalue() == printed
    check_names(page.stem, names)


whole_set = datasets.load_wordnet


def shorten(wordnet):
    return replace(
        wordnet,
        train_text=wordnet.train_text[:5_000],
        train_labels=wordnet.train_labels[:5_000],
        test_text=wordnet.test_text[:500],
        test_labels=wordnet.test_labels[:500],
    )


def check_names(page, names):
    """Check what a page says about the values of its names."""
    if page == "quick-start":
        why = names["why"]
        assert sum(why.terms.values()) + why.rest + why.constant == pytest.approx(why.score)
        assert names["threshold"].coverage > 0
        assert len(names["classifier"].classes_) == 8027
    if page == "teaching":
        assert names["teacher"].model.predict(["it hoots"]).tolist() == ["tawny owl"]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name_page)
def test_commands_exist_with_their_options(page):
    for words in commands(page):
        parse(typer.main.get_command(app), "longtail", words)


def parse(command, name, words):
    """Parse as the command line does, down to the last subcommand; nothing is run."""
    if hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"{name} has no command {words[0]}"
        return parse(command.commands[words[0]], f"{name} {words[0]}", words[1:])
    return command.make_context(name, list(words))


def test_a_mistake_in_a_command_is_noticed():
    command = typer.main.get_command(app)
    with pytest.raises(AssertionError, match="no command fitt"):
        parse(command, "longtail", ["fitt"])
    with pytest.raises(Exception, match="No such option"):
        parse(command, "longtail", ["fit", "a.csv", "--txt", "body"])
    with pytest.raises(Exception, match="Missing"):
        parse(command, "longtail", ["explain"])


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_readme_is_short():
    """Count the words of all of it, and the numbers outside of code and its output."""
    readme = (ROOT / "README.md").read_text()
    assert len(readme.split()) <= 900
    assert len(re.findall(r"\b\d[\d,.]*\b", FENCED.sub("", readme))) <= 60


def test_the_parts_of_the_readme():
    parts = re.findall(r"^## (.*)$", FENCED.sub("", (ROOT / "README.md").read_text()), re.MULTILINE)
    assert parts == [
        "Start",
        "When to use it",
        "Accuracy and cost",
        "When classes change",
        "Limits",
        "Further",
    ]


def test_commands_of_the_readme_print_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    wordnet = datasets.load_wordnet()
    train = zip(wordnet.train_text[:20_000], wordnet.train_labels[:20_000], strict=True)
    test = zip(wordnet.test_text[:2_000], wordnet.test_labels[:2_000], strict=True)
    new = [("a river in France", ""), ("a sweet red wine", "")]
    for name, rows in (("train", train), ("test", test), ("new", new)):
        with open(f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("definition", "term"), *rows])
    [shown] = [
        text for kind, text in FENCED.findall((ROOT / "README.md").read_text()) if kind == "console"
    ]
    for block in re.split(r"^\$ longtail ", shown, flags=re.MULTILINE)[1:]:
        command, *lines = block.splitlines()
        done = CliRunner().invoke(app, shlex.split(command))
        assert done.exit_code == 0, done.output
        printed = [without_costs(line) for line in done.stdout.splitlines()]
        for line in lines:
            assert line == "..." or without_costs(line) in printed, done.stdout


def without_costs(line):
    return re.sub(r"[\d.]+ (s|MB)\b", r"# \1", line)


def test_entries_of_the_changelog_take_one_line():
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    assert not [line for line in lines if line.startswith(" ") or len(line) > 130]


def has_test(path, name):
    """Tell whether a file, below `tests` unless it says `bench`, has a test of this name."""
    folder = ROOT if path.startswith("bench/") else ROOT / "tests"
    return re.search(rf"^def {name}\(", (folder / path).read_text(), re.MULTILINE)


def test_tests_that_hold_promises_exist():
    page = (ROOT / "docs" / "security.md").read_text()
    rows = [line.split("|")[2] for line in page.splitlines() if "::test_" in line]
    assert len(rows) > 20
    for row in rows:
        path = None
        for name in re.findall(r"`([^`]+)`", row):
            path = name.split("::")[0] if "::" in name else path
            assert has_test(path, name.split("::")[-1]), name


def rows_of_the_paper():
    """Return item, functions, tests and commands of each row of the page that leads to the code."""
    page = (ROOT / "docs" / "paper-to-code.md").read_text()
    rows = [
        re.split(r" ?(?<!\\)\| ?", line)[1:-1] for line in page.splitlines() if line[:2] == "| "
    ]
    rows = [row for row in rows if row[0] != "paper"]
    return [(row[0], *(re.findall(r"`([^`]+)`", cell) for cell in [*row, ""][2:5])) for row in rows]


def test_every_item_of_the_paper_has_a_row():
    items = [row[0] for row in rows_of_the_paper()]
    expected = {
        *(f"Algorithm {i}" for i in (1, 2)),
        *(f"Equation {i}" for i in range(1, 8)),
        *(f"Table {i}" for i in range(1, 5)),
        *(f"Figure {i}" for i in range(1, 4)),
        *(f"Lemma {i}" for i in range(1, 6)),
        *("Definition 1", "Theorem 1", "Theorem 2(a)", "Theorem 2(b)", "MaF1", "π", "κ"),
    }
    assert expected <= set(items)
    assert len(items) == len(set(items))


@pytest.mark.parametrize(
    ("functions", "tests", "lines"),
    [row[1:] for row in rows_of_the_paper()],
    ids=[row[0] for row in rows_of_the_paper()],
)
def test_the_paper_leads_to_what_exists(functions, tests, lines):
    assert bool(functions) == bool(tests)
    for name in functions:
        path = name if name.startswith("longtail_bench.") else f"longtail.{name}"
        assert pkgutil.resolve_name(path) is not None
    for name in tests:
        assert has_test(*name.split("::")), name
    for line in lines:
        _, group, command = line.split()
        assert command in typer.main.get_command(app).commands[group].commands


def test_names_of_the_glossary_exist():
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    table = (ROOT / "docs" / "glossary.md").read_text().split("|---|---|---|\n")[1]
    for row in table.splitlines():
        for name in re.findall(r"`([^`]+)`", row.split(" | ")[-1]):
            if "/" in name or name.endswith(".py"):
                assert (ROOT / "src" / "longtail" / name).exists(), name
            else:
                last = re.findall(r"\w+", name.split("=")[0])[-1]
                assert re.search(rf"\b{last}\b", source), name
