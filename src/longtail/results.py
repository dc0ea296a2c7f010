"""Results of methods: `TopK`, `Threshold`, `Health`, `Explanation`."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from longtail._optional import import_optional
from longtail._words import count
from longtail.sparse import Floats

# What `predict` gives: an array of labels; or label sets, as lists or an indicator matrix. With all
# three in the type every caller would have to tell them apart, though fit has decided which it is.
Predicted = NDArray[Any] | Any

_MAX_SHOWN = 10  # documents that a ranking prints
_MAX_NAMED = 3  # terms that the line of those that most classes share names


@dataclass(frozen=True, eq=False, repr=False)
class TopK:
    """The best classes of each document, best first; unpacks into classes and scores.

    ``top[0]`` are the classes of the first document with their scores, ``top[:10]`` the first ten
    documents; it prints as a list, and as a table in a notebook.

    Attributes
    ----------
    classes : ndarray of shape (n_documents, k)
        Labels; None, "", -1 or NaN, by their type, where there was no candidate.
    scores : ndarray of shape (n_documents, k), float64
        Their scores, -inf where there was no candidate; or probabilities, then 0.
    valid : ndarray of shape (n_documents, k), bool
        Whether there was a candidate.
    none : ndarray of shape (n_documents,), float64, or None
        Probability that no candidate is the class, whether the model has it or not; None where
        `scores` are not probabilities of which one at most is true.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import TopK
    >>> classes = np.array([["ship", "boat"], ["owl", ""]])
    >>> top = TopK(classes, np.array([[0.7, 0.2], [0.9, -np.inf]]))
    >>> top
    TopK(2 documents, k=2)
      0: ship 0.7, boat 0.2
      1: owl 0.9
    >>> top[0]
    [('ship', 0.7), ('boat', 0.2)]
    """

    classes: NDArray[Any]
    scores: Floats
    valid: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    none: Floats | None = None

    def __post_init__(self) -> None:
        """Take every score above -inf for a candidate where nothing else is said."""
        if self.valid.shape != self.scores.shape:
            object.__setattr__(self, "valid", self.scores > -np.inf)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Unpack into classes and scores."""
        return iter((self.classes, self.scores))

    @overload
    def __getitem__(self, document: int) -> list[tuple[Any, float]]: ...

    @overload
    def __getitem__(self, document: slice) -> TopK: ...

    def __getitem__(self, document: int | slice) -> list[tuple[Any, float]] | TopK:
        """Return the classes of a document, each with its score; or those of several documents."""
        if isinstance(document, slice):
            none = None if self.none is None else self.none[document]
            return TopK(self.classes[document], self.scores[document], self.valid[document], none)
        valid = self.valid[document]
        labels, scores = self.classes[document][valid], self.scores[document][valid]
        return list(zip(labels.tolist(), scores.tolist(), strict=True))

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each candidate.

        Its columns are `document` (from 0 on), `rank` (from 1 on), `class` and `score`. A document
        without a candidate has no row.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = import_optional("pandas", "to_pandas", "pandas")
        documents, ranks = np.nonzero(self.valid)
        columns = {
            "document": documents,
            "rank": ranks + 1,
            "class": self.classes[self.valid],
            "score": self.scores[self.valid],
        }
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        n_documents, k = self.scores.shape
        lines = [f"TopK({count(n_documents, 'document')}, k={k})"]
        for document, candidates in self._shown():
            listed = ", ".join(
                f"{_printable(str(label))} {score:.3g}" for label, score in candidates
            )
            lines.append(f"  {document}: {listed or 'no candidate'}")
        return "\n".join([*lines, *self._left_out()])

    def _repr_html_(self) -> str:
        rows: list[tuple[str, ...]] = []
        for document, candidates in self._shown():
            rows += [
                (str(document), str(rank), str(label), f"{score:.3g}")
                for rank, (label, score) in enumerate(candidates, 1)
            ] or [(str(document), "", "no candidate", "")]
        more = "".join(f"<p>{line.strip()}</p>" for line in self._left_out())
        return html_table(rows, ("document", "rank", "class", "score")) + more

    def _shown(self) -> Iterator[tuple[int, list[tuple[Any, float]]]]:
        """Yield the candidates of the documents that are shown."""
        for document in range(min(len(self.scores), _MAX_SHOWN)):
            yield document, self[document]

    def _left_out(self) -> list[str]:
        """Say how many documents are not shown."""
        n_more = len(self.scores) - _MAX_SHOWN
        return [f"  ... {n_more:,} more"] if n_more > 0 else []


@dataclass(frozen=True)
class Threshold:
    """The probability from which on predictions reach a precision, learned on held-out documents.

    Attributes
    ----------
    threshold : float
        Abstain where the top-1 probability is lower; NaN where the precision cannot be reached.
        Never less than half the precision asked for.
    expected_precision : float
        What the held-out documents at or above the threshold reached; NaN likewise.
    coverage : float
        The share of held-out documents at or above it; 0 where it cannot be reached. With several
        labels per document, how many labels a document has at or above it.
    n_documents : int
        How many these are, documents or labels: the standard error of the precision is about
        sqrt(p (1 - p) / n_documents).
    """

    threshold: float
    expected_precision: float
    coverage: float
    n_documents: int

    def keeps(self, top: TopK) -> NDArray[np.bool_]:
        """Return which predictions to keep.

        Parameters
        ----------
        top : TopK
            From `predict_proba_topk`.

        Returns
        -------
        ndarray of shape (n_documents, k), bool
            Whether each class reaches the threshold. With one label per document only the first
            class can, and only where "none of these" is not likelier.

        Examples
        --------
        >>> import numpy as np
        >>> from longtail.results import Threshold, TopK
        >>> classes = np.array([["a", "b"], ["b", "a"]])
        >>> probabilities = np.array([[0.9, 0.1], [0.45, 0.0]])
        >>> top = TopK(classes, probabilities, none=np.array([0.0, 0.55]))
        >>> Threshold(0.4, 0.8, 0.9, 1_000).keeps(top)[:, 0].tolist()
        [True, False]
        """
        kept = top.valid & (top.scores >= self.threshold)
        if top.none is not None:
            kept[:, 1:] = False
            kept &= top.scores >= top.none[:, None]
        return kept

    def as_dict(self) -> dict[str, float | None]:
        """Return the fields by name; None where the precision cannot be reached.

        Examples
        --------
        >>> Threshold(float("nan"), float("nan"), 0.0, 0).as_dict()["threshold"] is None
        True
        """
        values: dict[str, float] = asdict(self)
        return {name: v if math.isfinite(v) else None for name, v in values.items()}

    def __float__(self) -> float:
        """Return the threshold."""
        return self.threshold

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Stand for the threshold where probabilities are compared with it."""
        return np.asarray(self.threshold, dtype)


@dataclass(frozen=True, eq=False)
class NodeAnswers:
    """The deepest sure node of each document.

    Attributes
    ----------
    labels : ndarray of shape (n_documents,)
        Classes or inner nodes; None, "", -1 or NaN, by their type, where no node is sure.
    probabilities : ndarray of shape (n_documents,), float64
        That the class is the node or below it; 0 where there is none.
    depths : ndarray of shape (n_documents,), int64
        How far the node is from the top of the hierarchy; 0 where there is none.
    valid : ndarray of shape (n_documents,), bool
        Whether there is a node.
    """

    labels: NDArray[Any]
    probabilities: Floats
    depths: NDArray[np.int64]
    valid: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.labels)


@dataclass(frozen=True)
class Health:
    """How far a model has moved from what it was when it was fitted; prints as a table.

    Attributes
    ----------
    n_documents, n_labels, n_classes : int
        Of the model as it is now; where documents have several labels, those of the last fit and
        the labels of all.
    n_unrefined : int
        Labels of documents by which what all classes share (number of documents, document
        frequencies, collection model) is behind the sums; `refine` brings it up to date.
    n_stale : int
        Classes whose documents changed since their residuals were learned.
    unseen_terms : float
        Share of the occurrences of terms in the model that are of terms without a learned weight.
    n_outcomes : int
        Documents behind the next three: held out by `fit`, or taught or given to `recalibrate`
        since.
    accuracy : float
        How many of these were correct; NaN where there are none.
    calibration_error : float
        Of the probabilities of the best class, by cross-validation; NaN likewise.
    abstention : float
        Share of these below the threshold of 90 % precision; NaN likewise.
    n_kept : int
        Documents that the model keeps (`memory`).
    will_learn : bool
        Whether `refine()` would learn from these.
    advice : tuple of str
        What to do, most urgent first; empty where all is well.
    commands : tuple of str
        The same for those who use the command line or the page.
    """

    n_documents: int
    n_labels: int
    n_classes: int
    n_unrefined: int
    n_stale: int
    unseen_terms: float
    n_outcomes: int
    accuracy: float
    calibration_error: float
    abstention: float
    n_kept: int
    will_learn: bool
    advice: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    def rows(self, *, commands: bool = False) -> list[tuple[str, str]]:
        """Return the lines of the table; advice in words of Python or of the command line."""

        def share(value: float) -> str:
            return "-" if math.isnan(value) else f"{value:.1%}"

        of_outcomes = f"of the last {self.n_outcomes:,} outcomes"
        counted = "documents" if self.n_labels == self.n_documents else "labels"
        return [
            (f"{counted} since the last refine", f"{self.n_unrefined:,} of {self.n_labels:,}"),
            ("stale classes", f"{self.n_stale:,} of {self.n_classes:,}"),
            ("occurrences of terms without a learned weight", share(self.unseen_terms)),
            (f"correct {of_outcomes}", share(self.accuracy)),
            (
                f"calibration error {of_outcomes}",
                "-" if math.isnan(self.calibration_error) else f"{self.calibration_error:.3f}",
            ),
            (f"below the threshold of 90 % precision {of_outcomes}", share(self.abstention)),
            (f"{counted} kept to learn from", f"{self.n_kept:,}"),
            *(("advice", sentence) for sentence in (self.commands if commands else self.advice)),
        ]

    def __str__(self) -> str:
        rows = self.rows()
        n_columns = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{n_columns}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        return html_table(self.rows())


@dataclass(frozen=True)
class Explanation:
    """Why a document scores as it does for one class; prints as a table, what decides first.

    Attributes
    ----------
    label : object
        The class explained.
    score : float
        Its score for the document.
    features : mapping of str to float
        What each feature contributes; they add up to the score.
    terms : mapping of term to float
        What the most important terms contribute: those first whose contribution differs most from
        that to the runner-up. Terms that most classes share are not among them.
    rest : float
        What all other terms contribute together, `common` among them.
    constant : float
        The share of the class, that no term contributes. Terms + rest + constant add up to the
        score.
    runner_up : object or None
        The best other candidate.
    runner_up_score : float
        Its score; -inf where there is none.
    common : mapping of term to float
        What terms contribute that most classes share: more than half of the classes and a tenth of
        the documents have them. Tables show their sum as one line.
    against : Explanation or None
        The runner-up's score, in the same terms.
    meaning : float or None
        What the embedding of the document adds, where the model ranks by these; then it is a part
        of the score beside terms, rest and constant.
    nearest : tuple of (tuple of terms, float)
        The documents of the class whose embeddings are nearest, where the model keeps any
        (`memory`): the terms that weigh most in each, and the cosine.
    """

    label: Any
    score: float
    features: Mapping[str, float]
    terms: Mapping[Hashable, float]
    rest: float
    constant: float
    runner_up: Any
    runner_up_score: float
    common: Mapping[Hashable, float] = field(default_factory=dict)
    against: Explanation | None = None
    meaning: float | None = None
    nearest: tuple[tuple[tuple[Hashable, ...], float], ...] = ()

    def beside(self, against: Explanation | None = None) -> Explanation:
        """Return the explanation beside that of its runner-up, if there is one."""
        if against is None:
            return self
        return replace(
            self, runner_up=against.label, runner_up_score=against.score, against=against
        )

    def rename_terms(self, rename: Callable[[Any], Hashable]) -> Explanation:
        """Return the explanation with other names of its terms."""
        return replace(
            self,
            terms={rename(term): value for term, value in self.terms.items()},
            common={rename(term): value for term, value in self.common.items()},
            against=self.against and self.against.rename_terms(rename),
            nearest=tuple((tuple(map(rename, terms)), cosine) for terms, cosine in self.nearest),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the parts of the score by name, without the runner-up; terms as text."""
        return {
            "label": self.label.item() if hasattr(self.label, "item") else self.label,
            "score": self.score,
            "features": dict(self.features),
            "terms": {str(term): value for term, value in self.terms.items()},
            "common": {str(term): value for term, value in self.common.items()},
            "rest": self.rest,
            "constant": self.constant,
            **({} if self.meaning is None else {"meaning": self.meaning}),
            **({"nearest": self._list_nearest()} if self.nearest else {}),
        }

    def term_lines(self) -> list[tuple[str, float]]:
        """Return the lines of a table of terms; they add up to the score.

        Terms that most classes share are one line, which names the first of them.
        """
        lines = [(str(term), value) for term, value in self.terms.items()]
        folded = sum(self.common.values())
        if self.common:
            first = ", ".join(map(str, list(self.common)[:_MAX_NAMED]))
            more = ", ..." if len(self.common) > _MAX_NAMED else ""
            lines.append((f"(shared by most classes: {first}{more})", folded))
        lines += [("(other terms)", self.rest - folded), ("(class)", self.constant)]
        return lines if self.meaning is None else [*lines, ("(meaning)", self.meaning)]

    def nearest_lines(self) -> list[tuple[str, float]]:
        """Return the nearest documents of the class as their terms, and the cosines."""
        return [(" ".join(map(str, terms)), cosine) for terms, cosine in self.nearest]

    def _list_nearest(self) -> list[dict[str, Any]]:
        return [{"terms": [*map(str, terms)], "cosine": cosine} for terms, cosine in self.nearest]

    def feature_lines(self) -> list[tuple[str, float]]:
        """Return the lines of a table of features; they add up to the score.

        The cosine and the dampened cosine measure the same and often cancel: they are one line.
        """
        lines = dict(self.features)
        if "dampened_cosine" in lines:
            lines["cosine"] += lines.pop("dampened_cosine")
        return list(lines.items())

    def _rows(self) -> list[tuple[str, ...]]:
        """Return the cells of the table: the parts of the score, beside the runner-up's."""
        mine = [*self.term_lines(), ("score", self.score)]
        if self.against is None:
            return [(name, f"{value:+.4f}") for name, value in mine]
        others = [*self.against.term_lines(), ("score", self.against.score)]
        return [
            (name, f"{value:+.4f}", f"{other:+.4f}", f"{value - other:+.4f}")
            for (name, value), (_, other) in zip(mine, others, strict=True)
        ]

    def _header(self) -> tuple[str, ...]:
        """Return the heads of the columns of numbers."""
        if self.against is None:
            return ("contribution",)
        return ("contribution", "to the runner-up", "difference")

    def __str__(self) -> str:
        rows = [("", *self._header()), *self._rows()]
        rows = [(_printable(name), *cells) for name, *cells in rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in rows
        ]
        title = f"class {_printable(str(self.label))}"
        if self.features.get("name", 0.0) > 0.0:
            title += f", {self.features['name']:+.4f} because of its name"
        if self.runner_up is not None:
            title += f", before {_printable(str(self.runner_up))} ({self.runner_up_score:.4f})"
        near = [f"near ({cosine:.2f}): {_printable(text)}" for text, cosine in self.nearest_lines()]
        return "\n".join([title, *lines, *near])

    def _repr_html_(self) -> str:
        caption = str(self.label)
        if self.runner_up is not None:
            caption += f", runner-up {self.runner_up}"
        return html_table(self._rows(), ("", *self._header()), caption)


def html_table(rows: Iterable[Iterable[str]], header: Iterable[str] = (), caption: str = "") -> str:
    """Return cells of text as a table for a notebook."""

    def row(cells: Iterable[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

    above = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    above += row(header, "th") if header else ""
    return f"<table>{above}{''.join(row(cells, 'td') for cells in rows)}</table>"


def _printable(text: str) -> str:
    """Return a text without characters that steer a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
