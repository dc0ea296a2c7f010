"""`TextClassifier`: raw text in, a vectorizer and a classifier of counts behind one estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from longtail._columns import TableFormat, as_labels
from longtail._labels import Labels, Multilabel, flat_labels, join_sets, read_label_sets, replicate
from longtail._progress import OnStage, StageReporter
from longtail._records import Fields, read_fields, write_documents
from longtail._validation import PairWeights, check_among, check_share, read_weights, weigh_rows
from longtail.candidates import Candidates
from longtail.estimators.added_documents import AddedDocuments
from longtail.estimators.base import CountClassifier, if_classifier_has
from longtail.estimators.class_texts import check_class_texts
from longtail.estimators.embedder import Embedder
from longtail.estimators.evidence import make_candidates
from longtail.estimators.hierarchies import TakesHierarchy
from longtail.estimators.long_tail import LongTailClassifier, expect_unknown
from longtail.estimators.text_state import (
    TextState,
    check_lengths,
    count_for_refining,
    describe,
    forget,
    teach,
)
from longtail.model.edits import Edit, Recalibrate, Refine
from longtail.model.embeddings import Embeddings, FixedEmbeddings, GivenDocuments
from longtail.model.entry import Changes
from longtail.results import Explanation, Health, NodeAnswers, Predicted, Threshold, TopK
from longtail.sparse import CountMatrix, Floats
from longtail.store.state_io import SavedModel
from longtail.text import TextVectorizer, Vocabulary
from longtail.text.fields import pack_edges, unpack_edges
from longtail.text.vectorizer import tokenizer_options
from longtail.training.name_rows import count_names


class _FittedAttribute:
    """An attribute of the fitted classifier of counts; it is missing where that lacks it."""

    def __init__(self, name: str, doc: str) -> None:
        self.name, self.__doc__ = name, doc

    def __get__(self, estimator: Any, kind: type | None = None) -> Any:
        if estimator is None:
            return self
        return getattr(estimator._fitted().classifier, self.name)


class TextClassifier(TakesHierarchy):
    """Classify texts into very many classes, most of them rare.

    Methods take texts (a list, an array, or a column of pandas, polars or pyarrow; with `fields`
    records) where those of `LongTailClassifier` take counts. What else they take, and what they
    return, is described there; those that the classifier of counts lacks are missing here as well.

    Parameters
    ----------
    classifier : LongTailClassifier, DoubleSamplingClassifier or None, default=None
        Unfitted; gets the counts. None is a `LongTailClassifier`.
    vectorizer : TextVectorizer or None, default=None
        Unfitted; makes the counts. None is a `TextVectorizer`.
    random_state : int, RandomState or None, default=None
        For a classifier that has none.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 is every core. For a classifier and a vectorizer that
        have none.
    verbose : int, default=0
        Whether `fit` reports its stages, for a classifier that has 0.
    fields : mapping of str to str, or None, default=None
        The fields of documents that are records, each with its kind, for a vectorizer that has
        none: ``{"subject": "text", "body": "text", "brand": "category", "price": "number"}``. See
        `TextVectorizer`. Documents are then dicts or a table of pandas, polars or pyarrow.
    remember_documents : bool, default=False
        Keep a hash of every document (24 bytes each), so that `forget` and `refine` refuse one that
        was never added. Without, they notice only what does not fit the sums of its class.
    embedder : callable or None, default=None
        An encoder: takes a list of texts, returns an array of shape (n_texts, n_dimensions), as
        ``SentenceTransformer.encode`` does. The vectors of documents are summed up by class, and
        those of class texts compared, where held-out documents fare better with them. A file keeps
        its name; `load` is given it again.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted.
    classifier_ : LongTailClassifier or DoubleSamplingClassifier
        The fitted classifier of counts.
    vocabulary_ : Vocabulary
        A mapping from each term to its column.
    fields_ : dict of str to str, or None
        The fields of documents, with their kinds.
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

    Documents of several fields are dicts, or the rows of a table:

    >>> toys = [{"title": "a brown bear", "price": 9.5}, {"title": "a red fox", "price": 20}]
    >>> classifier = TextClassifier(fields={"title": "text", "price": "number"}, random_state=0)
    >>> classifier.fit(toys, ["bear", "fox"]).predict([{"title": "brown", "price": None}]).tolist()
    ['bear']

    Parameters of the classifier and the vectorizer are set by name, also where they are None:

    >>> TextClassifier().set_params(classifier__C=0.5, vectorizer__ngram_range=(1, 1)).classifier
    LongTailClassifier(C=0.5)
    """

    takes_texts = True
    _state: TextState

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
        fields: Mapping[str, str] | None = None,
        embedder: Any = None,
    ) -> None:
        self.classifier = classifier
        self.vectorizer = vectorizer
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.remember_documents = remember_documents
        self.fields = fields
        self.embedder = embedder

    @property
    def classifier_(self) -> CountClassifier:
        """The fitted classifier of counts."""
        classifier: CountClassifier = self._fitted().classifier
        return classifier

    def set_threads(self, n_jobs: int | None) -> Self:
        """Set the number of threads, as every classifier does."""
        super().set_threads(n_jobs)
        if self.__sklearn_is_fitted__():
            template = clone(self._state.template).set_params(n_jobs=n_jobs)
            self._swap(lambda state: replace(state, template=template))
        return self

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
        hierarchy: Any = None,
    ) -> Self:
        """Learn from texts and labels.

        Parameters
        ----------
        texts : sequence of str, or of records
            Documents: a list, an array, or a pandas, polars or pyarrow column; with `fields` a
            list of dicts, or a table.
        y : array-like of shape (n_documents,)
            Labels, strings or numbers; or label sets: a list of lists, or an indicator matrix.
        sample_weight : array-like of shape (n_documents,), or in the form of label sets, optional
            As how many documents each counts, such as 0.5 or 2; 0 leaves it out. For label sets
            also a weight of each label, as a list of lists or a matrix like `y`.
        class_texts : mapping of label to str, optional
            Name, synonyms or description: ``{"4190088-1": "Wisent; European bison"}``. A class
            with a text and no document can be predicted, and how much a name counts is learned on
            held-out documents. None and blank texts are as if left out.
        hierarchy : mapping, pairs, table of two columns or str, optional
            The parents of classes and inner nodes; see `set_hierarchy`.
        """
        texts, labels, weights = self._read(texts, y, sample_weight, is_fit=True)
        return self._fit([(texts, labels)], weights, class_texts, hierarchy)

    def fit_chunks(
        self,
        chunks: Iterable[tuple[Any, ArrayLike]],
        class_texts: Mapping[Any, str | None] | None = None,
        hierarchy: Any = None,
    ) -> Self:
        """Learn from texts and labels that come in chunks; the same model as from one `fit`.

        Of each text only the ids of its terms stay in memory.

        Parameters
        ----------
        chunks : iterable of (texts, labels)
            Gone through once.
        class_texts : mapping of label to str, optional
            As in `fit`.
        hierarchy : mapping, pairs, table of two columns or str, optional
            As in `fit`.
        """
        return self._fit(chunks, None, class_texts, hierarchy)

    def _fit(
        self,
        chunks: Iterable[tuple[Any, Any]],
        weights: Floats | None,
        class_texts: Mapping[Any, str | None] | None,
        hierarchy: Any = None,
    ) -> Self:
        """Fit new estimators, and only then swap them in."""
        vectorizer, classifier = self._new("vectorizer"), self._new("classifier")
        embedder = None if self.embedder is None else Embedder.of(self.embedder)
        named = check_class_texts(class_texts)
        on_stage = StageReporter(classifier.verbose)
        on_stage("reading texts")
        labels: list[Labels] = []
        embeddings: list[Embeddings] = []
        multilabel: Multilabel = getattr(classifier, "multilabel", "auto")
        fields = read_fields(vectorizer.fields)
        read = _check_chunks(chunks, labels, multilabel, fields, on_stage)
        if embedder is not None:
            read = _embed_chunks(read, embedder, fields, embeddings)
        X = vectorizer.fit_chunks(read)
        y, more = join_sets(labels), dict[str, Any]()
        if embedder is not None:
            more["embeddings"] = FixedEmbeddings(np.concatenate(embeddings))
        if named:
            on_stage("class texts", 0, 0)
            texts = list(named.values())
            rows: Any = count_names(vectorizer.vocabulary_, texts, classifier.n_jobs)
            if embedder is not None:
                rows = GivenDocuments(rows, embedder.embed(texts)).to_counts()
            more["class_texts"] = (list(named), rows)
        classifier.fit(X, y, PairWeights(weights), hierarchy=hierarchy, **more)
        added = AddedDocuments.empty(complete=bool(self.remember_documents))
        if added.complete:  # else only documents with late terms, of which a fit has none
            X, flat, _ = weigh_rows(*replicate(X, y), weights)
            class_ids = np.searchsorted(classifier.classes_, flat)
            added = added.add(X, class_ids, vectorizer.vocabulary_.n_terms)
        state = TextState.of(
            vectorizer.vocabulary_, classifier, added, base_texts=named, embedder=embedder
        )
        with self._lock:
            self._state = state
        return self

    def predict(self, texts: Any, **options: Any) -> Predicted:
        """Return the best class of each text, or its label set, as `LongTailClassifier.predict`.

        Labels are in the form that `fit` was given.
        """
        classifier, counts = self._counted(texts)
        return classifier.predict(counts, **options)

    def score(self, texts: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy; for label sets, the mean F1 of the documents' sets."""
        classifier, counts = self._counted(texts)
        return classifier.score(counts, y, sample_weight)

    def predict_topk(self, texts: Any, k: int = 5, **options: Any) -> TopK:
        """Return the k best classes of each text with their scores."""
        classifier, counts = self._counted(texts)
        return classifier.predict_topk(counts, k, **options)

    @if_classifier_has("predict_proba_topk")
    def predict_proba_topk(self, texts: Any, k: int = 5, **options: Any) -> TopK:
        """Return the k best classes of each text with calibrated probabilities."""
        classifier, counts = self._counted(texts)
        return classifier.predict_proba_topk(counts, k, **options)

    @if_classifier_has("predict_nodes")
    def predict_nodes(self, texts: Any, precision: float = 0.9, **options: Any) -> NodeAnswers:
        """Return the deepest node of the hierarchy that each text is surely at or below."""
        classifier, counts = self._counted(texts)
        return classifier.predict_nodes(counts, precision, **options)

    @if_classifier_has("list_candidates")
    def candidates(
        self, texts: Any, k: int = 20, *, within: Any = None, exclude: Any = None
    ) -> list[Candidates]:
        """Return the k best classes of each text as records, for a person or a language model.

        As `LongTailClassifier.list_candidates`; the records have names and texts as well, and terms
        as the vocabulary has them.
        """
        state = self._fitted()
        counts = state.count(texts, self.n_jobs)
        classifier = state.classifier
        top = classifier.predict_proba_topk(counts, k, within=within, exclude=exclude)
        documents = write_documents(texts, state.vocabulary.options.fields)
        found = make_candidates(
            state.model, counts, top, classifier._split_scores, state.vocabulary.term
        )
        return [
            replace(
                some,
                candidates=tuple(
                    replace(one, name=state.class_texts.get(one.label, one.name)) for one in some
                ),
                document=text,
            )
            for some, text in zip(found, documents, strict=True)
        ]

    @if_classifier_has("predict_proba")
    def predict_proba(self, texts: Any) -> Any:
        """Return the calibrated probabilities of each text's candidates."""
        classifier, counts = self._counted(texts)
        return classifier.predict_proba(counts)

    @if_classifier_has("decision_function")
    def decision_function(self, texts: Any) -> Any:
        """Return the scores of each text's candidates."""
        classifier, counts = self._counted(texts)
        return classifier.decision_function(counts)

    @if_classifier_has("threshold_for")
    def threshold_for(
        self,
        precision: float,
        unknown: float = 0.0,
        *,
        each: bool = False,
        level: int | None = None,
    ) -> Threshold:
        """Return the top-1 probability from which on predictions reach a precision."""
        classifier = self._fitted().classifier
        threshold: Threshold = classifier.threshold_for(precision, unknown, each=each, level=level)
        return threshold

    def explain(
        self, texts: Any, classes: ArrayLike | None = None, top_terms: int = 10
    ) -> list[Explanation]:
        """Split the score of one class for each text into terms and features.

        Terms are those of the vocabulary.
        """
        state = self._fitted()
        counts = state.count(texts, self.n_jobs)
        term = state.vocabulary.term
        return [
            explanation.rename_terms(lambda name: term(int(name)))
            for explanation in state.classifier.explain(counts, classes, top_terms)
        ]

    def partial_fit(
        self,
        texts: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Add documents of known or new classes, and their new terms; on an unfitted one, fit."""
        texts, labels, weights = self._read(texts, y, sample_weight)
        if not self.__sklearn_is_fitted__():
            if classes is not None:
                check_among(flat_labels(labels), as_labels(classes))
            return self._fit([(texts, labels)], weights, None)

        def taught(state: TextState) -> TextState:
            edit, vocabulary = teach(
                state, texts, labels, classes=classes, weights=weights, n_jobs=self.n_jobs
            )
            if edit is None:
                return state
            entry = edit.entry(state.template, state.model, state.next_number)
            after = state.take_in(Changes.of(entry), vocabulary)
            model = state.classifier._refresh(after.model)
            return after if model is after.model else after.over(model)

        return self._swap(taught)

    def forget(self, texts: Any, y: Any, sample_weight: Any = None) -> Self:
        """Subtract documents that were added before; a class with none left disappears.

        A document is counted as it was when it was added: one of the fit with the terms of the
        fit, a later one with those that it brought as well. A document that was never added is
        noticed for certain with `remember_documents`; without, where a term, a count or the number
        of documents is more than its class has, which in a large class may not be so.

        Raises
        ------
        ValueError
            If a document was never added, or none would be left; the model then stays as it is.
        """
        self._fitted()
        texts, labels, weights = self._read(texts, y, sample_weight)

        def forgotten(state: TextState) -> TextState:
            edit = forget(state, texts, labels, self.n_jobs, weights)
            return state if edit is None else state.apply(edit)

        return self._swap(forgotten)

    @if_classifier_has("refine")
    def refine(self, texts: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Bring what all classes share up to date; with documents, relearn residuals as well."""
        self._fitted()
        if texts is None and y is None:
            return self._apply(Refine())
        texts, labels, weights = self._read(texts, y, sample_weight)

        def refined(state: TextState) -> TextState:
            given = count_for_refining(state, texts, labels, self.n_jobs)
            X, sets = state.classifier._check_input(given.X, labels, reset=False)
            return state.apply(Refine(replace(given, X=X).to_counts(), sets, weights))

        return self._swap(refined)

    @if_classifier_has("expect_unknown")
    def expect_unknown(self, share: float) -> Self:
        """Tell the model how many of the texts to come have a class that it does not have."""
        check_share("share", share)
        return self._change_arrays(lambda model: expect_unknown(model, share))

    @if_classifier_has("recalibrate")
    def recalibrate(self, texts: Any, y: Any) -> Self:
        """Correct the probabilities by texts that the model has not been taught yet."""
        self._fitted()
        texts, labels, _ = self._read(texts, y)

        def recalibrated(state: TextState) -> TextState:
            X = state.vocabulary.count(texts, self.n_jobs)
            checked_X, checked = state.classifier._check_input(X, labels, reset=False)
            given = GivenDocuments(checked_X, state.embed(texts))
            return state.apply(Recalibrate(given.to_counts(), checked))

        return self._swap(recalibrated)

    @if_classifier_has("health")
    def health(self) -> Health:
        """Return how far the model has moved from what was learned, and what to do about it."""
        found: Health = self._fitted().classifier.health()
        return found

    @if_classifier_has("set_class_text")
    def set_class_text(self, label: Any, text: str | None) -> Self:
        """Give a class another name, synonyms or description; its documents stay as they are.

        The text, a string, is compared with the vocabulary as it is now. None or a blank text takes
        it away; a class that has no document either then disappears.

        Raises
        ------
        ValueError
            If the text is no string, or the label is of another kind than the classes; the model
            then stays as it is.
        """
        return self._swap(lambda state: state.apply(describe(state, label, text, self.n_jobs)))

    @property
    def class_texts_(self) -> dict[Any, str]:
        """Names, synonyms or descriptions of the classes that have any."""
        return dict(self._fitted().class_texts)

    @property
    def columns_(self) -> TableFormat | None:
        """Columns of tables that hold text and labels, if they were given; a file keeps them."""
        columns: TableFormat | None = self._fitted().columns
        return columns

    def set_columns(
        self,
        text: Sequence[str],
        label: str | Sequence[str],
        label_separator: str | None = None,
        **reading: Any,
    ) -> Self:
        """Say how tables hold texts and labels; commands, the service and the page go by it.

        Parameters
        ----------
        text : sequence of str
            Names of the columns that make up the text, joined by a blank.
        label : str or sequence of str
            Name of the column with the class, or of several that hold the labels of a document.
        label_separator : str, optional
            What separates the labels in a column; an empty one says that labels are whole.
        **reading : object
            How files are written: `format`, and of this format `header`, `delimiter`, `quotes` and
            `encoding`, as in `longtail.datasets.Table`.
        """
        labels = (label,) if isinstance(label, str) else tuple(label)
        columns = TableFormat(tuple(text), labels, label_separator, **reading)
        return self._swap(lambda state: replace(state, columns=columns))

    def _saved(self) -> SavedModel:
        state = self._fitted()
        vectorizer = self.vectorizer or TextVectorizer()
        if vectorizer.tokenizer is not None:
            raise ValueError(
                "a model with a tokenizer of your own cannot be saved: a file holds no code. Use "
                "token_pattern, or pickle the model."
            )
        counts = state.classifier._saved()
        parts = {
            "vocabulary": state.vocabulary,
            "added": state.added.settle(state.model.overlay),
            "bins": pack_edges(state.vocabulary.options.fields),
            "text": {"n_fitted": state.n_fitted, "is_default": self.classifier is None},
            "columns": state.columns,
            "embedder": state.embedder,
        }
        texts = state.class_texts
        classes = counts.state.classes.tolist()
        named = [texts.get(label, "") for label in classes] if texts else None
        kind = type(self).__name__
        parameters = {
            kind: self.get_params(deep=False),
            TextVectorizer.__name__: vectorizer.get_params(deep=False),
            **counts.parameters,
        }
        return SavedModel(kind, parameters, counts.state, parts, class_texts=named)

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
        options = tokenizer_options(estimator._new("vectorizer"))
        options = replace(options, fields=unpack_edges(options.fields, saved.parts.get("bins")))
        vocabulary = Vocabulary(**saved.parts["vocabulary"], options=options)
        _ = vocabulary.tables  # refuses a term that is there twice
        columns = saved.parts.get("columns")
        if columns is not None:
            names = {name: columns.get(name, ()) for name in ("text", "label")}
            names = {k: (v,) if isinstance(v, str) else tuple(v) for k, v in names.items()}
            columns = TableFormat(**{**columns, **names})
        labels, texts = classifier.classes_.tolist(), saved.class_texts or []
        named = {label: name for label, name in zip(labels, texts, strict=False) if name}
        added = AddedDocuments(**saved.parts["added"])
        estimator._state = TextState.of(
            vocabulary,
            classifier,
            added,
            n_fitted=text["n_fitted"],
            columns=columns,
            base_texts=named,
            embedder=Embedder(**saved.parts["embedder"]) if "embedder" in saved.parts else None,
        )
        return estimator

    @property
    def _needs_encoder(self) -> bool:
        embedder = self._fitted().embedder
        return embedder is None or embedder.encode is None

    def _use_embedder(self, encode: Any) -> None:
        """Take the encoder of a model that was opened without it."""
        state = self._fitted()
        if state.embedder is None:
            raise ValueError("this model was fitted without an encoder; open it without embedder=.")
        given = state.embedder.with_encoder(encode)
        self.embedder = encode
        self._swap(lambda state: replace(state, embedder=given))

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
            return self._state.template
        return LongTailClassifier() if self.classifier is None else self.classifier

    def count(self, documents: Any) -> CountMatrix:
        """Return documents as counts of the model's terms.

        Parameters
        ----------
        documents : sequence of str
            Texts.
        """
        counts: CountMatrix = self._fitted().count(documents, self.n_jobs)
        return counts

    def _counted(self, texts: Any) -> tuple[LongTailClassifier, CountMatrix]:
        """Return the classifier of counts (usually of this kind) and counts, of one state."""
        state = self._fitted()
        return state.classifier, state.count(texts, self.n_jobs)

    @property
    def fields_(self) -> dict[str, str] | None:
        """The fields of documents with their kinds; None where documents are texts."""
        fields = self._fitted().vocabulary.options.fields
        return None if fields is None else dict(fields.kinds)

    def _fields(self, is_fit: bool = False) -> Fields | None:
        """Return the fields of documents, fitted or to fit."""
        if is_fit or not self.__sklearn_is_fitted__():
            return read_fields(self._new("vectorizer").fields)
        fields: Fields | None = self._state.vocabulary.options.fields
        return fields

    def _read(
        self, texts: Any, y: Any, sample_weight: Any = None, is_fit: bool = False
    ) -> tuple[list[str], Labels, Floats | None]:
        """Return texts, labels or label sets, and weights, one for each text."""
        classifier = self._new("classifier") if is_fit else self._classifier_of_counts()
        multilabel: Multilabel = getattr(classifier, "multilabel", "auto")
        checked = write_documents(texts, self._fields(is_fit))
        labels = read_label_sets(y, multilabel)
        check_lengths(checked, labels, "y")
        return checked, labels, read_weights(sample_weight, y, labels)

    def _check_takes(self, y: Labels) -> None:
        self.classifier_._check_takes(y)

    @property
    def _arrays(self) -> Any:
        return self._fitted().model

    def _take_changes(self, changes: Changes, vocabulary: Any = None) -> Self:
        return self._swap(lambda state: state.take_in(changes, vocabulary))

    def _change_arrays(self, change: Callable[[Any], Any]) -> Self:
        return self._swap(lambda state: replace(state, model=change(state.model)))

    def _apply(self, edit: Edit) -> Self:
        return self._swap(lambda state: state.apply(edit))

    def _remember(self, memory: str | None) -> Self:
        return self._swap(lambda state: state.remember(memory))

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
        for inherited in ("random_state", "n_jobs", "verbose", "fields"):
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


def _embed_chunks(
    chunks: Iterable[list[str]],
    embedder: Embedder,
    fields: Fields | None,
    embeddings: list[Embeddings],
) -> Iterator[list[str]]:
    """Yield the texts of chunks, and append their embeddings to a list."""
    for texts in chunks:
        embeddings.append(embedder.embed(texts, fields))
        yield texts


def _check_chunks(
    chunks: Iterable[tuple[Any, Any]],
    labels: list[Labels],
    multilabel: Multilabel,
    fields: Fields | None,
    on_stage: OnStage,
) -> Iterator[list[str]]:
    """Yield the texts of chunks, and append their labels to a list; then terms are chosen."""
    for i, chunk in enumerate(chunks):
        if not isinstance(chunk, tuple | list) or len(chunk) != 2:
            raise ValueError(
                f"chunks must be pairs (texts, labels); chunk {i} is {type(chunk).__name__}."
            )
        texts = write_documents(chunk[0], fields)
        y = read_label_sets(chunk[1], multilabel)
        check_lengths(texts, y, f"chunk {i}")
        labels.append(y)
        yield texts
    on_stage("vocabulary", 0, 0)
