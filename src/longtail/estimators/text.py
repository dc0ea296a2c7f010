"""`TextClassifier`: raw text in, a vectorizer and a classifier of counts behind one estimator."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import clone

from longtail._columns import TableFormat, as_texts
from longtail._labels import Multilabel, read_label_sets
from longtail._validation import PairWeights, read_weights
from longtail.estimators._added_documents import AddedDocuments
from longtail.estimators._base import CountClassifier
from longtail.estimators._text_prediction import TextPrediction
from longtail.estimators._text_state import TextState, check_lengths, fit_state
from longtail.estimators.long_tail import LongTailClassifier
from longtail.sparse import Floats
from longtail.store.journal import saving
from longtail.store.state_io import SavedModel, save_state
from longtail.text import TextVectorizer, Vocabulary
from longtail.text.vectorizer import tokenizer_options


class _FittedAttribute:
    """An attribute of the fitted classifier of counts; it is missing where that lacks it."""

    def __init__(self, name: str, doc: str) -> None:
        self.name, self.__doc__ = name, doc

    def __get__(self, estimator: Any, kind: type | None = None) -> Any:
        if estimator is None:
            return self
        return getattr(estimator._fitted().classifier, self.name)


class TextClassifier(TextPrediction):
    """Classify texts into very many classes, most of them rare.

    Parameters
    ----------
    classifier : LongTailClassifier, DoubleSamplingClassifier or None, default=None
        Unfitted; gets the counts. None is a `LongTailClassifier`.
    vectorizer : TextVectorizer or None, default=None
        Unfitted; makes the counts. None is a `TextVectorizer`.
    random_state : int, RandomState or None, default=None
        For a classifier that has none of its own.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 is every core. For a classifier and a vectorizer that
        have none of their own.
    verbose : int, default=0
        Whether `fit` reports its stages, for a classifier that has 0.
    remember_documents : bool, default=False
        Keep a hash of every document (24 bytes each), so that `forget` and `refine` refuse one that
        was never added. Without, they notice only what does not fit the sums of its class.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted.
    classifier_ : LongTailClassifier or DoubleSamplingClassifier
        The fitted classifier of counts.
    vocabulary_ : Vocabulary
        A mapping from each term to its column.
    statistics_ : ClassStatistics
        The sums of the documents of each class.
    n_documents_ : int
        Documents; of a model of label sets those of the last fit, each counted once.
    weights_ : dict of str to float
        Weight of each feature.
    term_weights_ : ndarray
        Weight of each term, where the classifier of counts learns them.
    self_check_, calibration_error_ : SelfCheck, float
        How the model fared on held-out documents, where the classifier of counts checks itself.

    Examples
    --------
    >>> from longtail import TextClassifier
    >>> texts = ["a brown bear", "bears eat honey", "the red fox", "a fox runs"]
    >>> classifier = TextClassifier(random_state=0).fit(texts, ["bear", "bear", "fox", "fox"])
    >>> classifier.predict(["honey for the bear"]).tolist()
    ['bear']
    >>> classifier.partial_fit(["an owl hoots"], ["owl"]).predict(["it hoots"]).tolist()
    ['owl']

    Parameters of the classifier and the vectorizer are set by name, also where they are None:

    >>> TextClassifier().set_params(classifier__C=0.5, vectorizer__ngram_range=(1, 1)).classifier
    LongTailClassifier(C=0.5)
    """

    _state: TextState

    classes_ = _FittedAttribute("classes_", "Labels of the classes, sorted.")
    statistics_ = _FittedAttribute("statistics_", "The sums of the documents of each class.")
    n_documents_ = _FittedAttribute("n_documents_", "Documents, each counted once.")
    weights_ = _FittedAttribute("weights_", "Weight of each feature.")
    term_weights_ = _FittedAttribute("term_weights_", "Weight of each term.")
    self_check_ = _FittedAttribute("self_check_", "How the model fared on held-out documents.")
    calibration_error_ = _FittedAttribute("calibration_error_", "Calibration error to expect.")

    def __init__(
        self,
        classifier: CountClassifier | None = None,
        vectorizer: TextVectorizer | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        remember_documents: bool = False,
    ) -> None:
        self.classifier = classifier
        self.vectorizer = vectorizer
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.remember_documents = remember_documents

    @property
    def classifier_(self) -> CountClassifier:
        """The fitted classifier of counts."""
        classifier: CountClassifier = self._fitted().classifier
        return classifier

    @property
    def vocabulary_(self) -> Vocabulary:
        """The terms: a mapping from each to its column."""
        vocabulary: Vocabulary = self._fitted().vocabulary
        return vocabulary

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; deep ones also of a classifier or vectorizer that is None.

        Parameters
        ----------
        deep : bool, default=True
            Whether those of the classifier and the vectorizer are wanted as well.

        Returns
        -------
        dict of str to object
        """
        parameters: dict[str, Any] = super().get_params(deep=deep)
        for name, kind in _DEFAULTS.items() if deep else ():
            if parameters[name] is None:
                nested = kind().get_params(deep=True)
                parameters |= {f"{name}__{key}": value for key, value in nested.items()}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; one of a classifier or vectorizer that is None creates it first.

        Parameters
        ----------
        **parameters : object
            By name, such as ``classifier__C=0.5``.

        Returns
        -------
        self
        """
        for name, kind in _DEFAULTS.items():
            is_nested = any(key.startswith(f"{name}__") for key in parameters)
            if is_nested and parameters.get(name, getattr(self, name)) is None:
                parameters[name] = kind()
        return super().set_params(**parameters)  # type: ignore[no-any-return]

    def fit(
        self,
        texts: Any,
        y: Any,
        sample_weight: Any = None,
        class_texts: Mapping[Any, str | None] | None = None,
    ) -> Self:
        """Learn from texts and labels.

        Parameters
        ----------
        texts : sequence of str
            Documents: a list, an array, or a pandas, polars or pyarrow column.
        y : array-like of shape (n_documents,)
            Labels, strings or numbers; or label sets: a list of lists, or an indicator matrix.
        sample_weight : array-like of shape (n_documents,), or in the form of label sets, optional
            As how many documents each counts, such as 0.5 or 2; 0 leaves it out. For label sets
            also a weight of each label, as a list of lists or a matrix like `y`.
        class_texts : mapping of label to str, optional
            Name, synonyms or description: ``{"4190088-1": "Wisent; European bison"}``. A class
            with a text and no document can be predicted, and how much a name counts is learned on
            held-out documents. None and blank texts are as if left out.

        Returns
        -------
        self
        """
        multilabel: Multilabel = getattr(self._new("classifier"), "multilabel", "auto")
        checked, labels = as_texts(texts), read_label_sets(y, multilabel)
        check_lengths(checked, labels, "y")
        weights = read_weights(sample_weight, y, labels)
        return self._fit([(checked, labels)], weights, class_texts)

    def fit_chunks(
        self,
        chunks: Iterable[tuple[Any, ArrayLike]],
        class_texts: Mapping[Any, str | None] | None = None,
    ) -> Self:
        """Learn from texts and labels that come in chunks; the same model as from one `fit`.

        Of each text only the ids of its terms stay in memory.

        Parameters
        ----------
        chunks : iterable of (texts, labels)
            Gone through once.
        class_texts : mapping of label to str, optional
            As in `fit`.

        Returns
        -------
        self
        """
        return self._fit(chunks, None, class_texts)

    def _fit(
        self,
        chunks: Iterable[tuple[Any, Any]],
        weights: Floats | None,
        class_texts: Mapping[Any, str | None] | None,
    ) -> Self:
        """Fit new estimators, and only then swap them in."""
        state = fit_state(
            self._new("vectorizer"),
            self._new("classifier"),
            chunks,
            weights=None if weights is None else PairWeights(weights),
            remember_documents=bool(self.remember_documents),
            class_texts=class_texts,
        )
        with self._lock:
            self._state = state
        return self

    def save(self, path: str | os.PathLike[str], *, discard_changes: bool = False) -> None:
        """Write the fitted model to one file for `longtail.load`; nothing in it can run code.

        Parameters
        ----------
        path : path-like
            The file. It is replaced at once or not at all.
        discard_changes : bool, default=False
            A model whose journal holds changes that `Teacher` made is not replaced, unless this
            says that they may be dropped.
        """
        state = self._fitted()
        vectorizer = self.vectorizer or TextVectorizer()
        if vectorizer.tokenizer is not None:
            raise ValueError(
                "a model with a tokenizer of your own cannot be saved: a file holds no code. Use "
                "token_pattern, or pickle the model."
            )
        _, parameters, inner = state.classifier._saved()
        parts = {
            "vocabulary": state.vocabulary,
            "added": state.added,
            "text": {"n_fitted": state.n_fitted, "is_default": self.classifier is None},
            "columns": state.columns,
        }
        texts = state.class_texts
        named = [texts.get(label, "") for label in inner.classes.tolist()] if texts else None
        kind = type(self).__name__
        parameters = {
            kind: self.get_params(deep=False),
            TextVectorizer.__name__: vectorizer.get_params(deep=False),
            **parameters,
        }
        with saving(path, discard_changes=discard_changes) as target:
            save_state(target, SavedModel(kind, parameters, inner, parts, class_texts=named))

    @classmethod
    def _from_saved(cls, saved: SavedModel, classifier: CountClassifier) -> Self:
        """Build the estimator around a classifier of counts that was read from the same file."""
        text = saved.parts["text"]
        vectorizer = TextVectorizer(**saved.parameters[TextVectorizer.__name__])
        estimator = cls(
            None if text["is_default"] else clone(classifier),
            None if repr(vectorizer) == repr(TextVectorizer()) else vectorizer,
            **saved.parameters[cls.__name__],
        )
        vocabulary = Vocabulary(**saved.parts["vocabulary"], options=tokenizer_options(vectorizer))
        _ = vocabulary.tables  # refuses a term that is there twice
        columns = saved.parts.get("columns")
        if columns is not None:
            names = {name: columns.get(name, ()) for name in ("text", "label")}
            names = {k: (v,) if isinstance(v, str) else tuple(v) for k, v in names.items()}
            columns = TableFormat(**{**columns, **names})
        labels, texts = classifier.classes_.tolist(), saved.class_texts or []
        named = {label: name for label, name in zip(labels, texts, strict=False) if name}
        added = AddedDocuments(**saved.parts["added"])
        estimator._state = TextState(
            vocabulary, classifier, text["n_fitted"], added, columns, named
        )
        return estimator

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the input is text."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _facts(self) -> dict[str, str]:
        facts: dict[str, str] = self._fitted().classifier._facts()
        return facts

    def _classifier_of_counts(self) -> Any:
        """Return the classifier of counts, fitted or not, whose kind decides what there is."""
        if self.__sklearn_is_fitted__():
            return self._state.classifier
        return LongTailClassifier() if self.classifier is None else self.classifier

    def _new(self, name: str) -> Any:
        """Return the classifier or vectorizer to fit, with what this one hands down to it."""
        given = getattr(self, name)
        if given is not None and not isinstance(given, _ACCEPTED[name]):
            raise ValueError(
                f"{name} must be {_NAMES[name]} or None; got {given!r}. "
                "For any other classifier, put a TextVectorizer before it in a Pipeline."
            )
        fresh = _DEFAULTS[name]() if given is None else clone(given)
        parameters = fresh.get_params(deep=False)
        for inherited in ("random_state", "n_jobs", "verbose"):
            if (
                inherited in parameters
                and not parameters[inherited]
                and (parameters[inherited] is None or inherited == "verbose")
            ):
                setattr(fresh, inherited, getattr(self, inherited))
        return fresh


_DEFAULTS: dict[str, Any] = {"classifier": LongTailClassifier, "vectorizer": TextVectorizer}
_ACCEPTED: dict[str, Any] = {"classifier": CountClassifier, "vectorizer": TextVectorizer}
_NAMES = {
    "classifier": "a LongTailClassifier, a DoubleSamplingClassifier",
    "vectorizer": "a TextVectorizer",
}
