"""The page in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from longtail import TextClassifier, load
from longtail.exceptions import HierarchyWarning
from tests.estimator.test_records import FIELDS, LABELS, RECORDS
from tests.serve.conftest import CLASSES, FURRY, Running

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = Path(__file__).parent / "axe" / "axe.min.js"
pytestmark = pytest.mark.slow
HOSTILE = "<img src=x onerror=alert(1)> \u202egnorw"

if CHROMIUM is None and not os.environ.get("LONGTAIL_REQUIRE_BROWSER"):
    pytest.skip(
        "the page is tested with Chromium, which is missing: apt-get install chromium",
        allow_module_level=True,
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def service(
    fitted_file: Path, start: Callable[..., Running], tmp_path_factory: pytest.TempPathFactory
) -> Running:
    """One service for all tests here: each teaches words and classes of its own."""
    path = tmp_path_factory.mktemp("page") / "animals.longtail"
    shutil.copy(fitted_file, path)
    return start(path)


@pytest.fixture(scope="module")
def sets_service(
    sets_file: Path, start: Callable[..., Running], tmp_path_factory: pytest.TempPathFactory
) -> Running:
    """A service of a model of label sets with names."""
    path = tmp_path_factory.mktemp("page") / "sets.longtail"
    shutil.copy(sets_file, path)
    return start(path)


@pytest.fixture(scope="module")
def records_service(
    start: Callable[..., Running], tmp_path_factory: pytest.TempPathFactory
) -> Running:
    """A service of a model of records."""
    path = tmp_path_factory.mktemp("page") / "orders.longtail"
    TextClassifier(fields=FIELDS, random_state=0).fit(RECORDS, LABELS).save(path)
    return start(path)


@pytest.fixture
def records_page(browser: Any, records_service: Running) -> Iterator[Callable[..., Any]]:
    """Return a function that opens the page of records."""
    yield from _open_pages(browser, records_service)


@pytest.fixture(scope="module")
def tree_service(
    fitted_file: Path, start: Callable[..., Running], tmp_path_factory: pytest.TempPathFactory
) -> Running:
    """A service of a model with a hierarchy of 100,000 nodes."""
    path = tmp_path_factory.mktemp("page") / "tree.longtail"
    parents = {animal: "mammal" if animal in FURRY else "bird" for animal in CLASSES}
    parents |= {"mammal": "animal", "bird": "animal", "toad": "amphibian", "newt": "amphibian"}
    parents |= {"amphibian": "animal", "beetle": "animal", "seal": "mammal"}
    parents |= {f"beetle {i:05d}": "beetle" for i in range(100_000)}
    with pytest.warns(HierarchyWarning, match="without children"):
        load(fitted_file).set_hierarchy(parents).save(path)
    return start(path)


@pytest.fixture
def tree_page(browser: Any, tree_service: Running) -> Iterator[Callable[..., Any]]:
    """Return a function that opens the page of a model with a hierarchy."""
    yield from _open_pages(browser, tree_service)


@pytest.fixture
def open_page(browser: Any, service: Running) -> Iterator[Callable[..., Any]]:
    """Return a function that opens the page; no error may reach its console."""
    yield from _open_pages(browser, service)


@pytest.fixture
def sets_page(browser: Any, sets_service: Running) -> Iterator[Callable[..., Any]]:
    """Return a function that opens the page of label sets."""
    yield from _open_pages(browser, sets_service)


def _open_pages(browser: Any, service: Running) -> Iterator[Callable[..., Any]]:
    contexts, errors = [], []

    def open_one(token: bool = True, **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if _is_fault(m) else None)
        page.goto(service.address + (f"#token={service.token}" if token else ""))
        says(page, "#model", "documents")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert errors == []


def _is_fault(message: Any) -> bool:
    # The browser reports every 409 and 401 by itself; the page tells the reader.
    return message.type == "error" and "Failed to load resource" not in message.text


def says(page: Any, where: str, text: str) -> None:
    """Wait until an element has a text in it."""
    from playwright.sync_api import expect

    expect(page.locator(where)).to_contain_text(text, timeout=30_000)


def wait_for_top(page: Any, label: str) -> None:
    from playwright.sync_api import expect

    first = page.locator("#candidates .candidate bdi").first
    expect(first).to_have_text(label, timeout=30_000)


def write(page: Any, text: str) -> None:
    page.fill("#text", text)
    page.wait_for_selector("#highlighted, #no-known-word")


def choose_new(page: Any, label: str, shown: str | None = None) -> None:
    """Choose a class that is to be created; nothing is called so, so it is the first suggestion."""
    page.get_by_role("combobox").first.fill(label)
    says(page, "#teach [role=option] >> nth=0", f"Create class {shown or label}")
    page.get_by_role("option").first.click()


def teach(page: Any, label: str, shown: str | None = None) -> None:
    choose_new(page, label, shown)
    page.get_by_role("button", name="Teach", exact=True).click()


def test_type_explain_teach_undo(open_page: Callable[..., Any]) -> None:
    page = open_page()
    assert "#token" not in page.url
    write(page, "whiskers and Honey in the den")
    wait_for_top(page, "bear")
    assert "Honey" in page.locator("#highlighted mark").all_text_contents()
    page.locator("#candidates button").nth(1).click()
    second = page.locator("#candidates button bdi").nth(1).text_content()
    says(page, "#reasons h2 bdi >> nth=0", str(second))
    before = str(page.locator("#candidates").text_content())
    page.fill("#text", "stripes whiskers purring")
    teach(page, "tiger")
    wait_for_top(page, "tiger")
    says(page, "#status", "taught as tiger")
    says(page, "#candidates .change.up", "▲")  # what the teaching changed
    page.wait_for_selector("#reasons .swatch.of-1")  # beside the runner-up
    page.get_by_role("button", name="Undo the last change").click()
    says(page, "#status", "undone")
    page.fill("#text", "whiskers and Honey in the den")
    wait_for_top(page, "bear")
    says(page, "#candidates", before)


def test_without_a_token_nothing_can_be_taught(open_page: Callable[..., Any]) -> None:
    page = open_page(token=False)
    write(page, "honey")
    page.locator("#candidates button").first.click()
    assert page.get_by_role("button", name="Teach", exact=True).is_disabled()
    page.click("#sign-in")
    page.fill("#token", "not-the-secret-0123456789")
    page.get_by_role("button", name="Use it").click()
    says(page, "#alert", "not known")


def test_hostile_names_and_texts_are_text(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.on("dialog", lambda dialog: pytest.fail("something in a text ran"))
    shown = HOSTILE.replace("\u202e", "\\u202e")
    text = f"zyx {HOSTILE} <script>alert(2)</script> \x1b[31m" + " qz" * 30_000
    write(page, text)
    teach(page, HOSTILE, shown)
    wait_for_top(page, shown)
    assert page.locator("#highlighted img, #highlighted script, #candidates img").count() == 0
    assert "\\u202e" in page.locator("#highlighted").inner_text()
    page.click("#tab-classes")
    page.fill("#class-query", "onerror")
    page.get_by_role("button", name="<img src=x").first.click()
    page.wait_for_selector("#class-details h3")
    assert page.locator("main img").count() == 0


def test_two_browsers_teach_at_once(open_page: Callable[..., Any]) -> None:
    first, second = open_page(), open_page()
    for page in (first, second):
        write(page, "glowing plumage zig")
    choose_new(second, "firebird")
    teach(first, "phoenix")
    wait_for_top(first, "phoenix")
    # The second still shows what was before; its change is refused, and it shows what is now.
    second.get_by_role("button", name="Teach", exact=True).click()
    says(second, "#alert", "Someone")
    wait_for_top(second, "phoenix")
    teach(second, "firebird")
    says(second, "#status", "firebird")
    first.click("#tab-classes")
    first.wait_for_selector("#history td:has-text('phoenix')")
    first.wait_for_selector("#history td:has-text('firebird')")


def test_a_precision_on_average_or_of_each_answer(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.fill("#text", "zzzqq")
    says(page, "#candidates", "no known word, so no class")
    says(page, "#none", "100 %")
    assert page.locator("#verdict").count() == 0
    page.click("#tab-quality")
    page.locator("#precision").fill("50")
    says(page, "#operating-point", "With 50 % on average, the model decides")
    says(page, "#operating-point", "those from 25 % probability on")  # however good the model is
    page.locator("#precision").fill("60")
    page.get_by_role("radio", name="each answer at least 60 %").check()
    says(page, "#operating-point", "With each answer at least 60 %, the model decides")
    says(page, "#operating-point", "those from 60 % probability on")
    page.reload()
    says(page, "#operating-point", "With each answer at least 60 %")
    says(page, "#asked", "in the last week")
    page.click("#asked summary")
    assert "%" in page.locator("#asked tbody tr").first.inner_text()
    assert page.locator("#queue-of-each").is_checked()
    page.click("#tab-try")
    page.fill("#text", "the large animal lives near honey den claws bear")
    says(page, "#verdict", "At least 60 % probable.")
    page.fill("#text", "a")
    says(page, "#verdict", "Less than 60 % probable: a person should look.")


def test_the_reference_asks_with_the_token_of_the_tab(
    open_page: Callable[..., Any], service: Running
) -> None:
    page = open_page()
    page.get_by_role("link", name="API").click()
    page.click("#operations-default-ready_health_ready_get .opblock-summary-control")
    page.get_by_role("button", name="Try it out").click()
    with page.expect_request("**/health/ready") as asked:
        page.get_by_role("button", name="Execute").click()
    assert asked.value.headers["authorization"] == f"Bearer {service.token}"
    says(page, ".live-responses-table", '"status": "ok"')


def test_queue(open_page: Callable[..., Any], tmp_path: Path) -> None:
    page = open_page()
    page.click("#tab-queue")
    # As long as the documents of the fit: shorter texts are less certain than any precision says.
    traits = ["honey den claws bear", "hoots night owl feathers", "howls pack wolf grey"]
    rows = [*(f"the large animal lives near {words}" for words in traits), "quux"]
    table = tmp_path / "new.csv"
    table.write_text("id,text\n" + "".join(f'{i},"{t}, ""y"""\n' for i, t in enumerate(rows)))
    page.set_input_files("#queue-file", str(table))
    page.wait_for_selector("#queue-text")
    assert page.locator("#queue-text").text_content() == 'quux, "y"'  # the least certain
    says(page, "#queue-item .candidates", "no known word")
    page.keyboard.press("s")
    says(page, "#queue-progress", "3 w")
    page.keyboard.press("a")
    says(page, "#queue-progress", "1 of")
    says(page, "#status", "accepted")
    page.fill("#queue-precision", "60")
    page.click("#queue-accept-all")
    says(page, "#status", "precision")
    page.click("#queue-audit-start")
    page.get_by_role("button", name="Yes").click()
    page.wait_for_selector("#audit-figures")
    assert "1 of 1" in page.locator("#audit-figures").inner_text()
    assert "promised" in page.locator("#audit-figures").inner_text()
    with page.expect_download() as saved:
        page.click("#save-jsonl")
    records = [json.loads(line) for line in Path(saved.value.path()).read_text().splitlines()]
    assert [record["id"] for record in records] == ["0", "1", "2", "3"]
    assert [record["label"] for record in records] == ["bear", "owl", "wolf", None]
    assert {record["how"] for record in records} == {"accepted", "by precision", None}


def test_a_queue_is_kept_until_it_is_closed(open_page: Callable[..., Any], tmp_path: Path) -> None:
    page = open_page()
    page.click("#tab-queue")
    table = tmp_path / "new.csv"
    table.write_text("id,text\n1,grey owl feathers\n2,honey den claws bear\n3,quux\n")
    page.set_input_files("#queue-file", str(table))
    says(page, "#queue-text", "quux")
    page.keyboard.press("s")
    says(page, "#queue-text", "grey owl feathers")
    page.keyboard.press("/")
    page.keyboard.type("griffin")
    page.keyboard.press("Enter")
    says(page, "#status", "corrected, griffin")
    page.reload()
    says(page, "#queue-progress", "1 of 3 texts labelled, 1 waiting")
    says(page, "#queue-text", "honey den claws bear")
    page.click("#queue-back")
    says(page, "#status", "is undone")  # what was taught before the reload
    says(page, "#queue-text", "grey owl feathers")
    page.reload()
    says(page, "#queue-progress", "0 of 3 texts labelled, 2 waiting")
    with page.expect_navigation():  # as soon as it looks closed; it is, however slow the disk
        page.evaluate(
            """() => {
              const { clear } = IDBObjectStore.prototype;
              IDBObjectStore.prototype.clear = function () {
                for (let i = 0; i < 5000; i++) this.count();
                return clear.call(this);
              };
              const closing = document.getElementById("queue-close");
              new MutationObserver(() => closing.checkVisibility() || location.reload())
                .observe(document.body, { subtree: true, attributes: true });
              closing.click();
            }"""
        )
    page.click("#tab-queue")
    page.wait_for_selector("#queue-examples")
    assert page.locator("#queue-progress").is_hidden()


def test_files_that_are_no_texts_are_refused(open_page: Callable[..., Any], tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    page = open_page()
    page.click("#tab-queue")
    table = tmp_path / "new.parquet"
    pq.write_table(pa.table({"text": ["honey den", "pond"]}), table)
    page.set_input_files("#queue-file", str(table))
    says(page, "#alert", "new.parquet is a Parquet file; Queue reads CSV and JSON Lines.")
    latin = tmp_path / "latin.csv"
    latin.write_bytes("text\nB\xe4r\n".encode("latin-1"))
    page.set_input_files("#queue-file", str(latin))
    says(page, "#alert", "latin.csv is not in UTF-8")
    assert page.locator("#queue-text").count() == 0


def test_what_is_none_of_the_classes_is_not_accepted_first(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    page = open_page()
    page.click("#tab-queue")
    page.click("#queue-examples")
    page.wait_for_selector("#queue-accept.primary")
    says(page, "#queue-progress", "of 3 texts")
    page.on("dialog", lambda dialog: dialog.accept())
    table = tmp_path / "new.csv"
    table.write_text("text\nquux\nquuz\n")
    page.set_input_files("#queue-file", str(table))
    says(page, "#queue-text", "quu")
    assert page.locator("#queue-item button.primary").inner_text() == "Name its class"
    page.click("#queue-name")
    assert page.evaluate("document.activeElement.role") == "combobox"


def test_who_opens_the_page_sees_what_it_is_of(
    open_page: Callable[..., Any], sets_page: Callable[..., Any]
) -> None:
    page = open_page()
    says(page, "#model-name", "animals")
    assert page.title() == "animals · longtail"
    says(page, "#rights", "teaching is allowed")
    assert page.locator("#sign-in").inner_text() == "Token"
    page.locator("#examples button").nth(2).click()
    page.wait_for_selector("#highlighted mark")
    assert page.locator("#features table").is_hidden()
    page.click("#features summary")
    assert page.locator("#features table").is_visible()
    several = sets_page(token=False)
    says(several, "#rights", "no token")
    several.locator("#examples button").first.click()
    says(several, "#candidates .about-none", "need not add up to 100 %")


def test_the_curve_of_precision_begins_where_it_says_something(
    open_page: Callable[..., Any],
) -> None:
    page = open_page()
    page.click("#tab-quality")
    curve = page.get_by_role("img", name="Precision against coverage")
    bottom = int(curve.locator("text").nth(0).text_content().split()[0])  # its lowest tick
    page.click("text=Figures of the curve")
    shown = page.locator("table", has=page.get_by_role("columnheader", name="coverage"))
    cells = shown.locator("tbody td:nth-child(2)").all_inner_texts()
    precisions = [float(cell.split()[0]) for cell in cells]
    assert 0 < bottom <= min(precisions) < bottom + 21
    path = curve.locator("path").get_attribute("d")
    assert max(float(point.split()[1]) for point in path[1:].split("L")) < 220  # above the axis


def test_a_queue_reads_the_columns_of_the_fit(
    browser: Any, columns_file: Path, start: Callable[..., Running], tmp_path: Path
) -> None:
    path = shutil.copy(columns_file, tmp_path / "columns.longtail")
    service = start(Path(path))
    for open_one in _open_pages(browser, service):
        page = open_one()
        page.click("#tab-queue")
        table = tmp_path / "mail.csv"
        table.write_text('id,body,subject\n1,"the large animal lives near a den",honey claws\n')
        page.set_input_files("#queue-file", str(table))
        says(page, "#queue-text", "honey claws the large animal lives near a den")
        assert page.locator("#queue-column").input_value() == "subject + body"
        page.keyboard.press("a")
        says(page, "#status", "accepted")
        changes = httpx.get(
            f"{service.address.rstrip('/')}/v1/changes",
            headers={"Authorization": f"Bearer {service.token}"},
        ).json()["changes"]
        assert changes[0]["content"]["documents"] == [
            "honey claws the large animal lives near a den"
        ]
        page.select_option("#queue-column", "body")
        says(page, "#queue-text", "the large animal")
        page.on("dialog", lambda dialog: dialog.accept())  # gives up the labels of the first
        other = tmp_path / "other.csv"
        other.write_text("id,body\n1,a den\n2,a pond\n")
        page.set_input_files("#queue-file", str(other))
        says(page, "#alert", "fitted on subject and body; this file has no column subject")


def test_a_queue_goes_back_and_undoes(open_page: Callable[..., Any], tmp_path: Path) -> None:
    page = open_page()
    page.click("#tab-queue")
    table = tmp_path / "new.jsonl"
    table.write_text('"zebra stripes"\n{"text": "honey den claws bear"}\n')
    page.set_input_files("#queue-file", str(table))
    says(page, "#queue-text", "zebra")
    page.keyboard.press("/")
    page.keyboard.type("zebra")
    says(page, "#queue-item [role=option][aria-selected=true]", "Create class zebra")
    page.keyboard.press("Enter")
    says(page, "#status", "corrected, zebra")
    says(page, "#queue-progress", "1 of 2 texts labelled")
    page.keyboard.press("u")
    says(page, "#status", "is undone")
    says(page, "#queue-text", "zebra")
    says(page, "#queue-progress", "0 of 2 texts labelled")
    assert "zebra" not in page.locator("#queue-item .candidates").inner_text()


def test_label_sets_are_ticked_taught_and_saved(
    sets_page: Callable[..., Any], tmp_path: Path
) -> None:
    page = sets_page()
    write(page, "honey den claws bear")
    wait_for_top(page, "the bear")
    boxes = page.locator("#candidates input[type=checkbox]")
    assert page.get_by_label("the bear is a label").first.is_checked()
    assert page.get_by_label("furry animals is a label").first.is_checked()
    page.fill("#text", "whiskers purring")
    page.wait_for_timeout(500)
    for i in range(boxes.count()):
        boxes.nth(i).uncheck()
    choose_new(page, "id-cat")
    says(page, "#teach .chips", "id-cat")
    page.get_by_role("combobox").first.fill("furry")
    page.locator("#teach [role=option]").first.click()
    page.get_by_role("button", name="Teach", exact=True).click()
    says(page, "#status", "taught as id-cat, furry animals")
    says(page, "#candidates", "id-cat")
    page.click("#tab-queue")
    table = tmp_path / "new.jsonl"
    table.write_text('"honey den claws bear"\n"hoots night owl feathers"\n')
    page.set_input_files("#queue-file", str(table))
    page.wait_for_selector("#queue-text")
    page.select_option("#queue-order", "file")
    first = page.locator("#queue-item input[type=checkbox]:checked").count()
    page.keyboard.press("1")
    assert page.locator("#queue-item input[type=checkbox]:checked").count() == first - 1
    page.keyboard.press("1")
    page.keyboard.press("a")
    says(page, "#queue-progress", "1 of 2")
    page.fill("#queue-precision", "60")
    page.click("#queue-accept-all")
    says(page, "#queue-progress", "2 of 2")
    with page.expect_download() as saved:
        page.click("#save-jsonl")
    records = [json.loads(line) for line in Path(saved.value.path()).read_text().splitlines()]
    assert set(records[0]["label"]) == {"id-00", "id-fur"}
    assert "id-02" in records[1]["label"]
    assert [record["how"] for record in records] == ["accepted", "by precision"]


def test_keyboard_only(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.focus("#text")
    page.keyboard.type("scales fire")
    page.wait_for_selector("#no-known-word")
    search = page.get_by_role("combobox").first
    for _ in range(20):
        page.keyboard.press("Tab")
        if search.evaluate("element => element === document.activeElement"):
            break
    page.keyboard.type("dragon")
    page.keyboard.press("Enter")  # before the suggestions are there: they are waited for
    page.wait_for_selector("#teach button.primary:enabled")
    page.keyboard.press("Enter")
    wait_for_top(page, "dragon")
    page.fill("#text", "tusks trunk")
    search.fill("elephant")
    search.press("Control+Enter")
    wait_for_top(page, "elephant")
    search.fill("drag")
    says(page, "#teach [role=option] >> nth=1", "Create class drag")
    search.press("Enter")  # the class whose name begins so
    assert search.input_value() == "dragon"
    page.focus("#tab-try")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#operating-point:not(:empty)")
    page.focus("#precision")
    before = page.locator("#operating-point").inner_text()
    page.keyboard.press("Home")
    says(page, "#operating-point", "With 50 % on average")
    assert page.locator("#operating-point").inner_text() != before


def test_classes_are_renamed_and_changes_undone(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.click("#tab-classes")
    page.fill("#class-query", "hrae")
    page.get_by_role("button", name="hare", exact=True).click()
    page.fill("#new-name", "brown hare")
    page.get_by_role("button", name="Rename").click()
    page.wait_for_selector("#class-details h2 bdi:text-is('brown hare')")
    renamed = page.locator("#history tr", has_text="renamed hare")
    renamed.get_by_role("button").click()
    page.wait_for_selector("#history tr.undone:has-text('renamed hare')")


def test_an_answer_is_a_path_and_one_click_corrects_it(tree_page: Callable[..., Any]) -> None:
    page = tree_page()
    write(page, "the large animal lives near honey den claws bear")
    wait_for_top(page, "bear")
    says(page, "#candidates .path >> nth=0", "animal › mammal")
    says(page, "#node", "animal › mammal")
    beside = page.locator("#siblings button")
    beside.first.wait_for()
    names = beside.all_inner_texts()
    assert sorted(names) == ["fox", "hare", "lynx", "mole", "seal", "wolf"]
    ranked = page.locator("#candidates .name bdi").all_inner_texts()
    likely = [name for name in ranked if name in names]
    assert names[: len(likely)] == likely
    page.get_by_role("button", name="Teach as seal").click()
    says(page, "#status", "taught as seal")
    page.get_by_role("button", name="Undo the last change").click()
    says(page, "#status", "undone")
    reader = tree_page(token=False)
    write(reader, "the large animal lives near honey den claws bear")
    says(reader, "#node", "mammal")
    assert reader.locator("#siblings").count() == 0


def test_classes_are_looked_for_below_a_node(tree_page: Callable[..., Any]) -> None:
    page = tree_page()
    write(page, "the large animal lives near honey den claws bear")
    wait_for_top(page, "bear")
    page.click("#tab-classes")
    page.select_option("#class-sort", "tree")
    page.get_by_role("button", name="Below animal: 4").click()
    page.get_by_role("button", name="Look here, below amphibian").click()
    says(page, "#within", "Only classes below amphibian.")
    page.wait_for_selector("#candidates .name bdi:text-is('newt')")
    page.wait_for_selector("#candidates .name bdi:text-is('bear')", state="detached")
    names = page.locator("#candidates .name bdi").all_inner_texts()
    assert set(names) <= {"newt", "frog", "toad"}
    says(page, "#none", "none of these")
    page.get_by_role("button", name="Look everywhere").click()
    wait_for_top(page, "bear")
    page.locator("#candidates button.candidate").first.click()
    page.locator("#within").get_by_role("button", name="mammal").click()
    says(page, "#within", "Only classes below mammal.")
    wait_for_top(page, "bear")


def test_a_tree_of_100000_nodes_is_read_where_it_is_opened(tree_page: Callable[..., Any]) -> None:
    page = tree_page()
    page.click("#tab-classes")
    page.select_option("#class-sort", "tree")
    page.get_by_role("button", name="Below animal: 4").click()
    page.get_by_role("button", name="Below beetle: 100,000").click()
    below = page.locator("#class-tree .tree .tree > li")
    says(page, "#class-tree", "beetle 00049")
    assert below.count() == 51  # 50 nodes, and a button for more
    page.get_by_role("button", name="More of 100,000").click()
    says(page, "#class-tree", "beetle 00099")
    assert below.count() == 101
    page.get_by_role("button", name="Below amphibian: 2").click()
    page.locator("#class-tree").get_by_role("button", name="newt").click()
    says(page, "#class-details .path", "animal › amphibian")
    page.fill("#class-parents", "mammal\nbeetle 00007")
    page.get_by_role("button", name="Move", exact=True).click()
    says(page, "#status", "moved")
    says(page, "#class-details .path", "beetle 00007")
    moved = page.locator("#history tr", has_text="moved newt below mammal, beetle 00007")
    moved.get_by_role("button").click()
    page.wait_for_selector("#history tr.undone:has-text('moved newt')")
    says(page, "#class-details .path", "animal › amphibian")
    page.fill("#class-parents", "newt")
    page.get_by_role("button", name="Move", exact=True).click()
    says(page, "#alert", "cannot be its own parent")


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_hierarchy_is_accessible(
    tree_page: Callable[..., Any], scheme: str, width: int, tmp_path: Path
) -> None:
    page = tree_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    write(page, "the large animal lives near honey den claws bear")
    page.locator("#siblings button").first.wait_for()
    _is_accessible(page, width, tmp_path / f"try-{scheme}-{width}.png")
    page.click("#tab-classes")
    page.select_option("#class-sort", "tree")
    page.get_by_role("button", name="Below animal: 4").click()
    page.get_by_role("button", name="Below mammal: 7").click()
    page.locator("#class-tree").get_by_role("button", name="bear").click()
    page.wait_for_selector("#class-parents")
    _is_accessible(page, width, tmp_path / f"classes-{scheme}-{width}.png")


def _is_accessible(page: Any, width: int, picture: Path | None = None) -> None:
    """Compare what is shown with the rules of axe, and its width with that of the window."""
    page.wait_for_timeout(400)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if picture is not None and "LONGTAIL_PICTURES" in os.environ:
        page.screenshot(path=Path(os.environ["LONGTAIL_PICTURES"]) / picture.name, full_page=True)
    page.evaluate(AXE.read_text() + "; 0")
    found = page.evaluate("axe.run().then(r => r.violations.map(v => [v.id, v.impact, "
                          "v.nodes.map(n => n.html.slice(0, 200))]))")  # fmt: skip
    assert [entry for entry in found if entry[1] in ("serious", "critical")] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible_on_a_phone_and_without_errors(
    sets_page: Callable[..., Any], open_page: Callable[..., Any], scheme: str, tmp_path: Path
) -> None:
    opened = sets_page if scheme == "light" else open_page
    page = opened(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    write(page, "honey den")
    table = tmp_path / "new.csv"
    table.write_text("text\nhoots night owl feathers\nhoney den claws bear\nquux\n")
    for tab in ("try", "queue", "classes", "quality"):
        page.click(f"#tab-{tab}")
        if tab == "queue":
            page.set_input_files("#queue-file", str(table))
            page.wait_for_selector("#queue-text")
            page.fill("#queue-precision", "50")
            page.click("#queue-accept-all")
            says(page, "#status", "precision")
            page.click("#queue-audit-start")
            page.get_by_role("button", name="Yes").click()
        if tab == "classes":
            page.locator("#class-list td button").first.click()
            page.wait_for_selector("#class-details h3")
        _is_accessible(page, 360)
    # Quality shows what `evaluate` measures for this kind of model.
    measures = page.locator("#view-quality dl").first.inner_text()
    assert ("mean F1 of the documents' label sets" in measures) == (scheme == "light")
    assert ("accuracy" in measures) == (scheme == "dark")
    assert " to " in measures


def test_a_record_is_a_form_and_a_row_of_a_file(
    records_page: Callable[..., Any], tmp_path: Path
) -> None:
    page = records_page()
    assert not page.locator("#text").is_visible()
    for label, value in (("subject", "broken order"), ("brand", "zed co"), ("price", "150")):
        page.get_by_label(label, exact=True).fill(value)
    wait_for_top(page, "broken/zed co/dear")
    says(page, "#highlighted", "broken order")
    says(page, "#reasons", "brand=zed co")
    page.get_by_label("brand", exact=True).fill("acme")
    wait_for_top(page, "broken/acme/dear")
    path = tmp_path / "orders.csv"
    path.write_text("id,subject,brand,price\n1,late order,acme,7\n2,broken order,zed co,150\n")
    page.get_by_role("tab", name="Queue").click()
    page.set_input_files("#queue-file", path)
    says(page, "#queue-text", "brand: ")
    says(page, "#view-queue", "/acme/cheap" if "late" in page.inner_text("#queue-text") else "dear")
