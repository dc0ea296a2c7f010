"""`longtail mcp`: the tools by themselves, and a real process that the SDK's client talks to."""

import asyncio
import json
import os
import sys

import pytest

import longtail
from longtail import LongTailClassifier, TextClassifier
from longtail.integrations.mcp import ModelTools
from tests.unit.test_embedder import LABELS as LABELS_OF_MANY
from tests.unit.test_embedder import NEW, encode
from tests.unit.test_embedder import TEXTS as MANY

pytestmark = pytest.mark.filterwarnings("ignore::longtail.exceptions.UncalibratedWarning")
TEXTS = ["a brown bear", "bears eat honey", "the red fox", "a fox runs", "an owl hoots"]
LABELS = ["bear", "bear", "fox", "fox", "owl"]
PARENTS = {"bear": "mammal", "fox": "mammal", "mammal": "animal", "owl": "animal"}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "animals.longtail"
    names = {"bear": "Ursidae"}
    TextClassifier(random_state=0).fit(
        TEXTS, LABELS, class_texts=names, hierarchy=PARENTS
    ).save(path)  # fmt: skip
    return path


def test_tools(path):
    tools = ModelTools(path)
    [found] = tools.classify(["honey for a bear"], k=2)["results"]
    assert found["label"] == "bear"
    assert found["candidates"][0]["path"] == ["animal", "mammal", "bear"]
    assert found["candidates"][0]["name"] == "Ursidae"
    [found] = tools.classify(["honey for a bear"], within=["fox", "owl"])["results"]
    assert {c["label"] for c in found["candidates"]} == {"fox", "owl"}
    [found] = tools.classify(["an owl"], branch="mammal")["results"]
    assert {c["label"] for c in found["candidates"]} == {"fox", "bear"}
    classes = tools.search_classes("ursid")["classes"]
    assert classes[0] == {"label": "bear", "name": "Ursidae", "path": ["animal", "mammal", "bear"]}
    assert tools.search_classes("it hoots", limit=1)["classes"][0]["label"] == "owl"
    explained = tools.explain("honey", "bear")
    assert "honey" in explained["terms"]
    assert explained["label"] == "bear"


def test_teaching_is_kept_and_undone(path):
    tools = ModelTools(path, allow_teaching=True)
    assert tools.teach(["a wolf howls"], ["wolf"])["n_classes"] == 4
    assert tools.classify(["it howls"])["results"][0]["label"] == "wolf"
    assert longtail.load(path).predict(["it howls"]).tolist() == ["wolf"]
    assert tools.undo()["n_classes"] == 3
    assert longtail.load(path).classes_.tolist() == ["bear", "fox", "owl"]


def test_what_was_taught_by_others_is_seen(path):
    longtail.Teacher(path).teach(["a wolf howls"], ["wolf"])
    assert ModelTools(path).classify(["it howls"])["results"][0]["label"] == "wolf"


def test_records_come_as_json(tmp_path):
    path = tmp_path / "orders.longtail"
    fields = {"subject": "text", "brand": "category"}
    orders = [{"subject": "order late", "brand": b} for b in ("acme", "zed")] * 3
    TextClassifier(fields=fields, random_state=0).fit(orders, ["a", "z"] * 3).save(path)
    tools = ModelTools(path, allow_teaching=True)
    asked = [json.dumps({"subject": "late", "brand": b}) for b in ("zed", "acme")]
    assert [r["label"] for r in tools.classify(asked)["results"]] == ["z", "a"]
    assert "brand=zed" in tools.explain(asked[0])["terms"]
    tools.teach([json.dumps({"brand": "new"})], ["n"])
    assert tools.classify([json.dumps({"brand": "new"})])["results"][0]["label"] == "n"


@pytest.mark.parametrize("teaching", [False, True])
def test_a_model_with_an_encoder(tmp_path, teaching):
    path = tmp_path / "model.longtail"
    model = TextClassifier(random_state=0, embedder=encode).fit(MANY, LABELS_OF_MANY)
    model.save(path)
    tools = ModelTools(path, embedder=encode, allow_teaching=teaching)
    found = [result["label"] for result in tools.classify(NEW[:5])["results"]]
    assert found == model.predict(NEW[:5]).tolist()
    assert tools.explain(NEW[0])["meaning"] != 0.0
    if teaching:
        assert tools.teach(NEW[:1], ["owl"])["n_classes"] == len(model.classes_) + 1
    with pytest.raises(ValueError, match=r"open it with that encoder.*longtail --embedder"):
        ModelTools(path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.classify(["a"] * 101), "101 texts; one call takes 100"),
        (lambda t: t.classify(["a" * 100_001]), "100,001 characters"),
        (lambda t: t.classify(["a"], k=0), "k must be from 1 to 100"),
        (lambda t: t.classify(["a"], within=["eel"]), "not among the classes: 'eel'"),
        (lambda t: t.classify(["a"], branch="eel"), "no node 'eel'"),
        (lambda t: t.explain("a", "eel"), "not among the classes: 'eel'"),
        (lambda t: t.search_classes("a", limit=1_000), "limit must be from 1 to 100"),
    ],
)
def test_what_is_refused(path, call, message):
    with pytest.raises(ValueError, match=message):
        call(ModelTools(path))


def test_a_model_of_counts_is_refused(tmp_path):
    LongTailClassifier(random_state=0).fit([[1, 0], [0, 1]], ["a", "b"]).save(tmp_path / "counts")
    with pytest.raises(ValueError, match="which takes counts; the tools need a model that takes"):
        ModelTools(tmp_path / "counts")


@pytest.mark.slow
@pytest.mark.parametrize("teaching", [False, True])
def test_a_real_process_answers_the_sdk(path, teaching):
    mcp = pytest.importorskip("mcp")
    client_of = pytest.importorskip("mcp.client.client").Client
    stdio = pytest.importorskip("mcp.client.stdio")
    arguments = ["-m", "longtail", "mcp", str(path), *(["--allow-teaching"] if teaching else [])]
    parameters = mcp.StdioServerParameters(
        command=sys.executable, args=arguments, env=dict(os.environ)
    )

    async def talk():
        async with client_of(stdio.stdio_client(parameters)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            first = await client.call_tool("classify", {"texts": ["honey"], "k": 2})
            refused = await client.call_tool("classify", {"texts": ["honey"], "within": ["eel"]})
            taught = None
            if teaching:
                await client.call_tool("teach", {"texts": ["a wolf howls"], "labels": ["wolf"]})
                taught = await client.call_tool("classify", {"texts": ["it howls"]})
                await client.call_tool("undo", {})
            return tools, first, refused, taught

    tools, first, refused, taught = asyncio.run(asyncio.wait_for(talk(), 120))
    assert set(tools) == {"classify", "search_classes", "explain"} | (
        {"teach", "undo"} if teaching else set()
    )
    assert "candidate classes" in tools["classify"].description
    assert tools["classify"].input_schema["required"] == ["texts"]
    assert not first.is_error
    assert first.structured_content["results"][0]["label"] == "bear"
    assert refused.is_error
    assert "not among the classes: 'eel'" in refused.content[0].text
    if teaching:
        assert taught.structured_content["results"][0]["label"] == "wolf"
        assert longtail.load(path).classes_.tolist() == ["bear", "fox", "owl"]
