"""Schemas of requests and answers; the OpenAPI description is made of these."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr

MAX_DOCUMENTS = 1_024  # in one request that is not streamed
MAX_CHARACTERS = 100_000  # of a document
LONGEST_LABEL = 1_000  # characters
ANY_VERSION = "*"  # whatever the version is, as If-Match has it


def _check_label(label: str) -> str:
    """Refuse names that cannot be shown or told apart."""
    if not label.strip():
        raise ValueError("a label needs a character that can be seen")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in label):
        raise ValueError("a label may not have control characters, such as NUL or a new line")
    return label


Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
Record = Annotated[
    dict[str, Any],
    Field(description="By column or field, as `/v1/model` names them, read as in the fit."),
]
TaughtText = Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]
NewName = Annotated[
    StrictStr, Field(min_length=1, max_length=LONGEST_LABEL), AfterValidator(_check_label)
]
Label = NewName | Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
AnyLabel = str | int | float
By = Annotated[str, Field(max_length=100, description="Who says so, beside the token's name.")]
Version = Annotated[
    str,
    Field(
        max_length=100,
        description='The version that the change was made against; "*" accepts any.',
    ),
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PredictRequest(_Request):
    """Texts to classify, or records with the columns of the fit."""

    documents: Annotated[list[Text | Record], Field(min_length=1, max_length=MAX_DOCUMENTS)]
    k: Annotated[int, Field(ge=1, le=100, description="How many candidates of each.")] = 5
    precision: Annotated[
        float | None, Field(gt=0, lt=1, description="Abstain where this is not reached.")
    ] = None
    each: Annotated[
        bool,
        Field(description="Whether each label must be as probable as precision, not all together."),
    ] = False
    new_words: Annotated[bool, Field(description="Also return words that no document had.")] = False
    within: Annotated[
        list[AnyLabel] | None,
        Field(min_length=1, description="Choose among these classes alone; the others are `none`."),
    ] = None
    exclude: Annotated[
        list[AnyLabel] | None, Field(description="Leave out these classes, likewise.")
    ] = None
    branch: Annotated[
        AnyLabel | None,
        Field(description="Choose among the classes at or below this node of the hierarchy."),
    ] = None
    back_off: Annotated[
        float | None,
        Field(
            gt=0,
            lt=1,
            description="Also return the deepest node of the hierarchy at this precision.",
        ),
    ] = None

    @property
    def limits(self) -> dict[str, Any]:
        """`within`, `exclude` and `branch`, as far as they are given."""
        given = {"within": self.within, "exclude": self.exclude, "branch": self.branch}
        return {name: labels for name, labels in given.items() if labels not in (None, [])}


ClassText = Annotated[str, Field(description="What the class is called, or its description.")]


Path = Annotated[
    list[AnyLabel], Field(description="The nodes from a root of the hierarchy to the label.")
]


class Candidate(BaseModel):
    """A class that a text may be in."""

    label: AnyLabel
    text: ClassText | None = None
    path: Path | None = None
    probability: float | None = None
    score: float | None = None


class Node(BaseModel):
    """The deepest node of the hierarchy of which the model is sure enough."""

    label: AnyLabel
    path: Path
    probability: float


class Result(BaseModel):
    """What the model says about one text."""

    labels: Annotated[
        list[AnyLabel],
        Field(description="One label, several for a multi-label model, none after abstaining."),
    ]
    abstained: Annotated[
        bool, Field(description="No label is certain enough, or the text has no known word.")
    ]
    classes: Annotated[
        list[Candidate],
        Field(description="Candidates, best first; none where the text has no known word."),
    ]
    none: Annotated[
        float | None, Field(description="Probability that no candidate is the class.")
    ] = None
    node: Annotated[
        Node | None, Field(description="With `back_off`; none where no node is sure enough.")
    ] = None
    new_words: list[str] | None = None


class ThresholdBody(BaseModel):
    """The probability from which on a precision is reached; null where it cannot be."""

    threshold: float | None
    expected_precision: float | None
    coverage: float
    n_documents: int


class ThresholdResponse(ThresholdBody):
    """The same, and which model it is of."""

    version: str


class PredictResponse(BaseModel):
    """What the model says about texts."""

    version: str
    threshold: ThresholdBody | None = None
    results: list[Result]


class ExplainRequest(_Request):
    """A text, and the class to explain: the predicted one where none is named."""

    text: Text | Record
    label: AnyLabel | None = None
    top_terms: Annotated[int, Field(ge=1, le=100)] = 10


class TermPart(BaseModel):
    """What a term contributes, and where it stands in the text (characters).

    The text of a record is that of its text fields, joined by a blank.
    """

    term: str
    contribution: float
    spans: list[tuple[int, int]]


class NearestDocument(BaseModel):
    """A document of a class by the terms that weigh most, and the cosine of its embedding."""

    terms: list[str]
    cosine: float


class ExplanationBody(BaseModel):
    """A score in parts: terms + rest + constant, or features, add up to it.

    `meaning` is one more part where the model ranks by embeddings; `nearest` are then documents of
    the class that the model keeps.
    So do the lines to show: terms that most classes share (`common`, part of the rest) are one line
    of terms, cosine and dampened cosine one line of features.
    """

    label: AnyLabel
    text: ClassText | None = None
    score: float
    features: dict[str, float]
    feature_lines: list[tuple[str, float]]
    terms: list[TermPart]
    term_lines: list[tuple[str, float]]
    common: dict[str, float]
    rest: float
    constant: float
    meaning: float | None = None
    nearest: list[NearestDocument] = []


class ExplainResponse(BaseModel):
    """Why a text gets a class, beside the best other one; both name the same terms."""

    version: str
    explanation: ExplanationBody
    runner_up: ExplanationBody | None


class TaughtDocument(_Request):
    """A text with its label, or its labels for a multi-label model."""

    text: TaughtText | Record
    label: Label | None = None
    labels: Annotated[list[Label] | None, Field(min_length=1, max_length=100)] = None


class ChangeRequest(_Request):
    """Against which version a change is made, and who says so."""

    version: Version
    by: By | None = None


class TeachRequest(ChangeRequest):
    """Documents to add, or to forget: all of them or none."""

    documents: Annotated[list[TaughtDocument], Field(min_length=1, max_length=MAX_DOCUMENTS)]


class UndoRequest(ChangeRequest):
    """The last changes, or those with some numbers."""

    n: Annotated[int, Field(ge=1, le=1_000)] = 1
    changes: Annotated[
        list[Annotated[int, Field(ge=1, lt=2**53)]] | None, Field(min_length=1, max_length=1_000)
    ] = None


class ClassChange(ChangeRequest):
    """One of: a new name, a class to merge into, a text, or that it be removed."""

    rename: Label | None = None
    merge_into: Label | None = None
    text: Text | None = None
    remove: Literal[True] | None = None


class ChangeResponse(BaseModel):
    """The number of a change, and the version that the model has now."""

    change: int
    version: str


class ClassSummary(BaseModel):
    """A class in a list."""

    id: str
    label: AnyLabel
    text: ClassText | None = None
    size: Annotated[
        int | float, Field(description="Documents; fractions where some count as less than one.")
    ]
    match: Literal["prefix", "fuzzy", "score"] | None = None


class ClassList(BaseModel):
    """Classes, and how many there are."""

    version: str
    total: int
    classes: list[ClassSummary]


class HierarchyChange(ChangeRequest):
    """One of: pairs of a child and a parent, what separates the levels of paths, none at all."""

    pairs: Annotated[
        list[tuple[Label, Label]] | None, Field(min_length=1, description="Of child and parent.")
    ] = None
    path_separator: Annotated[str | None, Field(min_length=1, max_length=100)] = None
    remove: Literal[True] | None = None


class NodeChange(ChangeRequest):
    """The parents that a node has from now on; none at all make it a root."""

    parents: Annotated[list[Label], Field(max_length=1_000)]


class NodeSummary(BaseModel):
    """A node of the hierarchy: a class, or one that only has others below it."""

    id: str
    label: AnyLabel
    text: ClassText | None = None
    size: Annotated[int | float | None, Field(description="Documents; null where it is no class.")]
    n_children: int


class NodeList(BaseModel):
    """The children of a node, or the nodes that have no parent, in the order of labels."""

    version: str
    total: int
    path: Path | None = None
    nodes: list[NodeSummary]


class TermWeight(BaseModel):
    """A term of a class."""

    term: str
    weight: float


class Neighbour(BaseModel):
    """A class that is easily taken for another."""

    id: str
    label: AnyLabel
    text: ClassText | None = None
    score: float


class Parent(BaseModel):
    """A node above another."""

    id: str
    label: AnyLabel


class ClassDetails(BaseModel):
    """What is known of a class."""

    version: str
    id: str
    label: AnyLabel
    text: ClassText | None = None
    path: Path | None = None
    parents: Annotated[
        list[Parent] | None, Field(description="In the hierarchy, where the class has its place.")
    ] = None
    size: Annotated[
        int | float, Field(description="Documents; fractions where some count as less than one.")
    ]
    terms: list[TermWeight]
    neighbours: list[Neighbour]


class ChangeEntry(BaseModel):
    """A change in the journal; texts are shortened."""

    number: int
    time: str
    by: str | None
    action: str
    in_effect: bool
    n_documents: int
    content: dict[str, Any]


class ChangeList(BaseModel):
    """Changes, newest first."""

    version: str
    total: int
    changes: list[ChangeEntry]


class ColumnsBody(BaseModel):
    """The columns of the tables that the model was fitted on."""

    text: Annotated[list[str], Field(description="Joined by a blank.")]
    label: list[str]
    label_separator: Annotated[
        str | None, Field(description="Of the labels in a column; empty where they are whole.")
    ]


class ModelInfo(BaseModel):
    """What a service serves."""

    name: Annotated[str, Field(description="Of the model file, without its ending.")]
    version: str
    multilabel: bool
    probabilities: bool
    n_classes: int
    n_documents: Annotated[
        int, Field(description="Of a multi-label model those of the last fit, each counted once.")
    ]
    n_labels: Annotated[int, Field(description="Of all documents, with what was taught since.")]
    class_texts: Annotated[bool, Field(description="Whether any class has a text.")]
    hierarchy: Annotated[bool, Field(description="Whether classes have parents.")]
    may_describe: Annotated[bool, Field(description="Whether classes can be given a text.")]
    columns: Annotated[ColumnsBody | None, Field(description="null where nothing was said.")]
    fields: Annotated[
        dict[str, str] | None,
        Field(description="Of records, with their kinds; null where documents are texts."),
    ]
    read_only: bool
    may_teach: bool
    library: str


class Example(BaseModel):
    """A text of words that speak for a class, which is the first one predicted for it."""

    label: AnyLabel
    text: str
    name: ClassText | None = None


class ExampleList(BaseModel):
    """Texts to begin with."""

    version: str
    examples: list[Example]


class QualityFigure(BaseModel):
    """A measure of `longtail evaluate`, estimated on held-out documents."""

    measure: str
    name: Annotated[str, Field(description="For people.")]
    value: float
    low: Annotated[float | None, Field(description="95 % interval; 90 % for calibration errors.")]
    high: float | None


class QualityBand(BaseModel):
    """Accuracy for classes of some sizes; of label sets, recall in the first five classes."""

    band: str
    smallest: int
    largest: int | None
    value: float | None
    low: Annotated[float | None, Field(description="95 % interval.")]
    high: float | None


class QualityPoint(BaseModel):
    """What is reached by keeping predictions at or above a probability."""

    threshold: float
    precision: float
    coverage: Annotated[
        float,
        Field(description="Share of the documents; labels a document for a multi-label model."),
    ]


class QualityBin(BaseModel):
    """Held-out documents whose best candidate has about one probability; cross-validated."""

    promised: float
    measured: float
    n_documents: int


class HealthBody(BaseModel):
    """How far the model has moved from what was learned."""

    n_documents: int
    n_labels: int
    n_unrefined: Annotated[int, Field(description="Labels of documents since the last refine.")]
    n_stale: Annotated[int, Field(description="Classes that changed since they were learned.")]
    unseen_terms: Annotated[
        float | None, Field(description="Share of occurrences of terms without a learned weight.")
    ]
    n_outcomes: Annotated[
        int, Field(description="Documents held out or taught, behind the next three.")
    ]
    accuracy: Annotated[float | None, Field(description="Share of them that was right.")]
    calibration_error: float | None
    abstention: Annotated[
        float | None, Field(description="Share of them below the threshold of 90 % precision.")
    ]
    advice: Annotated[list[str], Field(description="What to do, most urgent first.")]


class QualityHour(BaseModel):
    """What was predicted in an hour; null where nothing was counted."""

    start: Annotated[int, Field(description="Seconds since 1970.")]
    n_documents: int
    abstained: Annotated[
        float | None, Field(description="Share of documents without a label at 90 % precision.")
    ]
    mean_probability: Annotated[
        float | None, Field(description="Of the first class, where there is one.")
    ]
    without_known_word: Annotated[float | None, Field(description="Share of the documents.")]
    unknown_words: Annotated[
        float | None, Field(description="Share of the distinct words of one document in 16.")
    ]


class QualityResponse(BaseModel):
    """What held-out documents showed when the model was fitted, and what was asked since."""

    version: str
    n_held_out: int
    figures: list[QualityFigure]
    by_frequency: list[QualityBand]
    curve: list[QualityPoint]
    bins: list[QualityBin]
    health: HealthBody | None
    hours: Annotated[
        list[QualityHour], Field(description="The last week of this process, oldest first.")
    ]


class ReloadResponse(BaseModel):
    """Whether another model, or changes of others, were taken in."""

    version: str
    changed: bool
