"""The estimators: validate, call the stages in order, keep the fitted parts.

Everything fitted is one frozen model that a teaching call replaces as a whole, so a prediction that
runs at the same time sees the model before or after, never a mix.
"""

from __future__ import annotations

import numbers
import os
import threading
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from longtail.candidates import (
    CandidateIndex,
    build_index,
    cap_candidates,
    find_candidates,
    rank_candidates,
)
from longtail.explanation import Explanation, ScoreParts, explain_score, take_score_apart
from longtail.features import CENTROID_DISTANCE, FEATURE_NAMES, pair_features, term_scores
from longtail.learning import Scorer, check_positive, learn_scorer, pair_differences
from longtail.persistence import ModelFile, open_model, pack_texts, write_model
from longtail.sampling import PairSample, cap_adversaries, check_examples_per_class, draw_pairs
from longtail.statistics import ClassStatistics, Corpus, CountRows, Floats, Integers

_TEACHING = threading.RLock()  # two calls that teach at once must not lose each other's documents
_MOST_DRAWS = 1000


class TopK(NamedTuple):
    """The best classes of each document.

    Attributes
    ----------
    classes : ndarray of shape (n_documents, k)
        Labels, best first.
    scores : ndarray of shape (n_documents, k), float64
        Their scores; -inf where there were fewer than k candidates, and the label there means
        nothing.
    """

    classes: NDArray[Any]
    scores: Floats


@dataclass(frozen=True)
class _Model:
    """What every fitted classifier has.

    `corpus` holds the global quantities of the last fit; `current_corpus` adds the terms seen
    since.
    """

    classes: NDArray[Any]
    statistics: ClassStatistics
    corpus: Corpus
    current_corpus: Corpus


class _CountClassifier(ClassifierMixin, BaseEstimator):
    """What both estimators share: labels, rows, teaching, ranking, explanation, files."""

    n_jobs: int | None
    _model: Any
    _sublinear = False

    @abstractmethod
    def _fit_model(self, rows: CountRows, numbers: Integers, classes: NDArray[Any]) -> Any:
        """Run the stages of a fit."""

    @abstractmethod
    def _with_statistics(self, classes: NDArray[Any], statistics: ClassStatistics) -> Any:
        """Return the model with other statistics and the same learned parts."""

    @abstractmethod
    def _rank(self, model: Any, rows: CountRows, k: int) -> tuple[Integers, Floats]:
        """Return at most k class numbers and scores for each document, best first."""

    @abstractmethod
    def _take_apart(self, model: Any, rows: CountRows, document: int, number: int) -> ScoreParts:
        """Split the score of one pair."""

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, sorted."""
        classes: NDArray[Any] = self._fitted().classes
        return classes

    @property
    def statistics_(self) -> ClassStatistics:
        """The sums of the documents of each class."""
        statistics: ClassStatistics = self._fitted().statistics
        return statistics

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from counts and labels.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts, not negative.
        y : array-like of shape (n_documents,)
            Labels, strings or integers.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = self._check_input(X, y, reset=True)
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has only 1 class, {classes[0]!r}; at least 2 classes are needed. "
                "Add documents of another class."
            )
        with _TEACHING:
            self._model = self._fit_model(CountRows.from_matrix(X), numbers, classes)
        return self

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Add documents of known or new classes to the statistics; on an unfitted estimator, fit.

        The learned parts stay as they are, so the cost is that of the documents and of the index.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts, not negative.
        y : array-like of shape (n_documents,)
            Labels.
        classes : array-like, optional
            Where given, every label must be among them. Classes without documents are not kept.

        Returns
        -------
        self
        """
        if classes is not None:
            _check_among(y, classes)
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        X, y = self._check_input(X, y, reset=False)
        with _TEACHING:
            model = self._fitted()
            _check_same_kind(y, model.classes)
            labels = np.union1d(model.classes, y)
            known = model.statistics.place_classes(
                np.searchsorted(labels, model.classes), len(labels)
            )
            self._model = self._with_statistics(labels, known + self._sum(X, y, labels))
        return self

    def forget(self, X: Any, y: ArrayLike) -> Self:
        """Subtract documents that were added before; a class with none left disappears.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            The same counts as when they were added.
        y : array-like of shape (n_documents,)
            The same labels as when they were added.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a document was never added, or none would be left; the model then stays as it is.
        """
        self._fitted()
        X, y = self._check_input(X, y, reset=False)
        with _TEACHING:
            model = self._fitted()
            _check_same_kind(y, model.classes)
            _check_among(y, model.classes)
            rest = model.statistics - self._sum(X, y, model.classes)
            if rest.n_documents == 0:
                raise ValueError(
                    "cannot forget the last document of a model; fit a new one instead."
                )
            labels = model.classes[rest.class_sizes > 0]
            self._model = self._with_statistics(labels, rest.drop_empty_classes())
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the best class of each document.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.

        Returns
        -------
        ndarray of shape (n_documents,)
            Labels.
        """
        model = self._fitted()
        numbers, _ = self._rank(model, self._check_rows(X), 1)
        return np.asarray(model.classes[numbers[:, 0]])

    def predict_topk(self, X: Any, k: int = 5) -> TopK:
        """Return the k best classes of each document with their scores.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        k : int, default=5
            How many; where there are fewer candidates the scores of the rest are -inf.

        Returns
        -------
        TopK
            `classes` and `scores`, each of shape (n_documents, k), best first; ties in class order.
        """
        if not isinstance(k, numbers.Integral) or k < 1:
            raise ValueError(f"k must be an integer of at least 1; got {k!r}.")
        model = self._fitted()
        numbers_, scores = self._rank(model, self._check_rows(X), int(k))
        missing = ((0, 0), (0, int(k) - numbers_.shape[1]))
        return TopK(
            model.classes[np.pad(numbers_, missing)],
            np.pad(scores, missing, constant_values=-np.inf),
        )

    def explain(
        self, X: Any, classes: ArrayLike | None = None, top_terms: int = 10
    ) -> list[Explanation]:
        """Take the score of one class for each document apart.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n_documents, n_terms)
            Counts.
        classes : array-like of shape (n_documents,), optional
            The label to explain for each document; the predicted one when left out.
        top_terms : int, default=10
            How many terms to name; the others are summed up in `rest`.

        Returns
        -------
        list of Explanation
            Terms are named by column number, or by column name where `fit` was given names.
        """
        model = self._fitted()
        rows = self._check_rows(X)
        numbers, scores = self._rank(model, rows, 2)
        wanted = numbers[:, 0] if classes is None else _find_labels(model.classes, classes, rows)
        return [
            self._explain_one(model, rows, i, int(wanted[i]), numbers[i], scores[i], top_terms)
            for i in range(rows.n_documents)
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file for `longtail.load`; nothing in it can run code.

        The file is written beside `path` and renamed into place: a model that was there stays
        intact until the new one is complete.
        """
        model = self._fitted()
        parameters = self.get_params(deep=False)
        if not isinstance(parameters.get("random_state"), numbers.Integral | None):
            parameters["random_state"] = None  # a generator's state is no part of a model
        arrays = {**_pack_model(model), **self._pack_learned(model)}
        header = {
            "parameters": {name: _plain(value) for name, value in parameters.items()},
            "statistics": {
                "count_bits": model.statistics.count_bits,
                "sublinear": model.statistics.sublinear,
            },
            "corpus": {
                "n_documents": model.corpus.n_documents,
                "length": model.corpus.length,
                "mean_class_length": model.corpus.mean_class_length,
            },
        }
        if hasattr(self, "feature_names_in_"):
            arrays.update(pack_texts("feature_names", self.feature_names_in_))
        write_model(path, type(self).__name__, header, arrays)

    @abstractmethod
    def _pack_learned(self, model: Any) -> dict[str, NDArray[Any]]:
        """Return the learned parts as named arrays."""

    @abstractmethod
    def _unpack_learned(self, file: ModelFile, parts: _Model) -> Any:
        """Build the model from the shared parts and the learned ones."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used with any data."""

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is a model."""
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what input is understood."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # scikit-learn's check wants 83 % on dense blobs in the plane, where every "document" has
        # every "term"; a direction (cosine, shared terms) cannot tell such clusters apart.
        tags.classifier_tags.poor_score = True
        return tags

    def _fitted(self) -> Any:
        """Return the model, or say that there is none yet."""
        check_is_fitted(self)
        return self._model

    def _check_input(self, X: Any, y: ArrayLike, *, reset: bool) -> tuple[Any, NDArray[Any]]:
        """Return counts and labels after scikit-learn's checks and ours."""
        _check_no_missing_label(y)
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        return X, np.asarray(y)

    def _check_rows(self, X: Any) -> CountRows:
        """Return the documents to predict in the kernels' form."""
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        return CountRows.from_matrix(X)

    def _sum(self, X: Any, y: NDArray[Any], labels: NDArray[Any]) -> ClassStatistics:
        """Sum documents whose labels are all among `labels`."""
        return ClassStatistics.from_counts(
            X,
            np.searchsorted(labels, y),
            len(labels),
            sublinear=self._sublinear,
            n_jobs=self.n_jobs,
        )

    def _explain_one(
        self,
        model: Any,
        rows: CountRows,
        document: int,
        number: int,
        ranked: Integers,
        scores: Floats,
        top_terms: int,
    ) -> Explanation:
        """Explain one class for one document, beside the best other candidate."""
        parts = self._take_apart(model, rows, document, number)
        others = [j for j in range(len(ranked)) if ranked[j] != number]
        return explain_score(
            parts,
            score=float(parts.contributions.sum() + parts.constant),
            label=model.classes[number],
            runner_up=(model.classes[ranked[others[0]]], scores[others[0]]) if others else None,
            top_terms=top_terms,
            term_names=getattr(self, "feature_names_in_", None),
        )


@dataclass(frozen=True)
class _PaperModel(_Model):
    """The fitted parts of the paper's method."""

    scorer: Scorer
    sample: PairSample | None
    index: CandidateIndex
    term_scores: Floats


class DoubleSamplingClassifier(_CountClassifier):
    """The paper's (π,κ)-double sampling classifier, to the letter.

    Documents of each class and adversarial classes for each document are sampled (Algorithm 1), the
    ten features of Table 1 of the resulting pairs train one linear SVM for all classes, and a
    document gets the class of highest score among its q nearest centroids (Algorithm 2).

    Parameters
    ----------
    examples_per_class : float, default=2
        Documents kept of each class on average: π_k = min(1, examples_per_class / n_k).
    adversaries : int, default=30
        κ, other classes drawn for each document kept; capped at the number of other classes.
    candidates : int, default=10
        q, nearest centroids among which prediction chooses; capped at the number of classes.
    C : float, default=0.01
        Weight of the SVM's loss for each pair.
    random_state : int, RandomState or None, default=None
        Decides the sample; the same state gives the same model for any `n_jobs`.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 is every core.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted.
    statistics_ : ClassStatistics
        The sums of the documents of each class.
    weights_ : dict of str to float
        Weight of each feature; a score is the sum of weight x feature.
    feature_scales_ : ndarray of shape (10,)
        Largest absolute difference of each feature over the sampled pairs, by which the learner
        divided.
    sample_ : PairSample
        The documents and adversaries drawn; None after `longtail.load`.
    adversaries_ : int
        κ after capping.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import DoubleSamplingClassifier
    >>> X = np.array([[3, 1, 0], [2, 0, 0], [0, 1, 2], [0, 0, 4]])
    >>> classifier = DoubleSamplingClassifier(random_state=0).fit(X, ["a", "a", "b", "b"])
    >>> classifier.predict([[1, 0, 0], [0, 0, 1]]).tolist()
    ['a', 'b']

    References
    ----------
    Joshi, Amini, Partalas, Iutzeler and Maximov, "Aggressive Sampling for Multi-class to Binary
    Reduction with Applications to Text Classification", NIPS 2017.
    """

    def __init__(
        self,
        examples_per_class: float = 2,
        adversaries: int = 30,
        candidates: int = 10,
        C: float = 0.01,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.examples_per_class = examples_per_class
        self.adversaries = adversaries
        self.candidates = candidates
        self.C = C
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def weights_(self) -> dict[str, float]:
        """Weight of each feature."""
        return dict(zip(FEATURE_NAMES, self._fitted().scorer.weights.tolist(), strict=True))

    @property
    def feature_scales_(self) -> Floats:
        """What the learner divided each feature by."""
        scales: Floats = self._fitted().scorer.scales
        return scales

    @property
    def sample_(self) -> PairSample | None:
        """The documents and adversaries drawn by the last fit."""
        sample: PairSample | None = self._fitted().sample
        return sample

    @property
    def adversaries_(self) -> int:
        """κ after capping."""
        return cap_adversaries(self.adversaries, len(self.classes_))

    def _check_parameters(self) -> None:
        cap_adversaries(self.adversaries, 2)
        cap_candidates(self.candidates, 2)
        check_examples_per_class(self.examples_per_class)
        check_positive("C", self.C)

    def _fit_model(self, rows: CountRows, numbers: Integers, classes: NDArray[Any]) -> _PaperModel:
        statistics = ClassStatistics.from_counts(rows, numbers, len(classes), n_jobs=self.n_jobs)
        sample = self._draw_sample(numbers, len(classes))
        features = pair_features(
            rows, statistics, sample.documents, sample.classes, n_jobs=self.n_jobs
        )
        scorer = learn_scorer(*pair_differences(features, sample.classes), C=self.C)
        return self._assemble(classes, statistics, statistics.corpus, scorer, sample)

    def _draw_sample(self, numbers: Integers, n_classes: int) -> PairSample:
        """Draw until there is a document: a draw may come out empty when the data are few."""
        random_state = check_random_state(self.random_state)
        for _ in range(_MOST_DRAWS):
            sample = draw_pairs(
                numbers,
                n_classes,
                self.examples_per_class,
                self.adversaries,
                random_state,
                n_jobs=self.n_jobs,
            )
            if len(sample):
                return sample
        raise ValueError(
            f"examples_per_class={self.examples_per_class!r} is so small that {_MOST_DRAWS} draws "
            f"kept none of the {len(numbers)} documents; the paper uses 1 or 2."
        )

    def _assemble(
        self,
        classes: NDArray[Any],
        statistics: ClassStatistics,
        corpus: Corpus,
        scorer: Scorer,
        sample: PairSample | None,
    ) -> _PaperModel:
        """Derive what prediction needs from the statistics and the scorer."""
        current = corpus.with_new_terms(statistics.corpus)
        return _PaperModel(
            classes=classes,
            statistics=statistics,
            corpus=corpus,
            current_corpus=current,
            scorer=scorer,
            sample=sample,
            index=build_index(statistics, current),
            term_scores=term_scores(statistics, current, scorer.weights, n_jobs=self.n_jobs),
        )

    def _with_statistics(self, classes: NDArray[Any], statistics: ClassStatistics) -> _PaperModel:
        model: _PaperModel = self._fitted()
        return self._assemble(classes, statistics, model.corpus, model.scorer, model.sample)

    def _rank(self, model: _PaperModel, rows: CountRows, k: int) -> tuple[Integers, Floats]:
        n_candidates = cap_candidates(self.candidates, len(model.classes))
        candidates, cosines = find_candidates(
            rows, model.index, model.current_corpus.idf, n_candidates, n_jobs=self.n_jobs
        )
        return rank_candidates(
            rows,
            model.statistics,
            model.term_scores,
            float(model.scorer.weights[CENTROID_DISTANCE]),
            candidates,
            cosines,
            min(k, n_candidates),
            n_jobs=self.n_jobs,
        )

    def _take_apart(
        self, model: _PaperModel, rows: CountRows, document: int, number: int
    ) -> ScoreParts:
        return take_score_apart(
            rows,
            document,
            number,
            model.statistics,
            model.current_corpus,
            model.scorer.weights,
            model.term_scores,
        )

    def _pack_learned(self, model: _PaperModel) -> dict[str, NDArray[Any]]:
        return {
            "scorer/weights": model.scorer.weights,
            "scorer/scales": model.scorer.scales,
            "index/indptr": model.index.indptr,
            "index/classes": model.index.classes,
            "index/weights": model.index.weights,
            "term_scores": model.term_scores,
        }

    def _unpack_learned(self, file: ModelFile, parts: _Model) -> _PaperModel:
        arrays = file.arrays
        return _PaperModel(
            classes=parts.classes,
            statistics=parts.statistics,
            corpus=parts.corpus,
            current_corpus=parts.current_corpus,
            scorer=Scorer(arrays["scorer/weights"], arrays["scorer/scales"]),
            sample=None,
            index=CandidateIndex(
                arrays["index/indptr"],
                arrays["index/classes"],
                arrays["index/weights"],
                parts.statistics.n_classes,
            ),
            term_scores=arrays["term_scores"],
        )


def load(path: str | os.PathLike[str], *, verify: bool = True) -> Any:
    """Open a model that `save` wrote; its arrays are memory-mapped.

    Parameters
    ----------
    path : path-like
        The file.
    verify : bool, default=True
        Check every array against its checksum and the model's own invariants. Skip this only for a
        file that was verified where it lies.

    Returns
    -------
    DoubleSamplingClassifier
        Whatever was saved, with bit-equal predictions.

    Raises
    ------
    longtail.persistence.ModelFileError
        If anything is wrong with the file.
    """
    file = open_model(path, verify=verify)
    kinds = {kind.__name__: kind for kind in (DoubleSamplingClassifier,)}
    if file.kind not in kinds:
        raise file.error(f"holds a {file.kind!r}, which is none of {sorted(kinds)}")
    try:
        estimator = kinds[file.kind](**file.parameters["parameters"])
        parts = _unpack_model(file)
        estimator._model = estimator._unpack_learned(file, parts)
        if verify:
            parts.statistics.validate()
            estimator._model.index.validate(parts.statistics.n_terms)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise file.error(f"is not a sound {file.kind}: {error}") from None
    estimator.n_features_in_ = parts.statistics.n_terms
    if "feature_names.utf8" in file.arrays:
        estimator.feature_names_in_ = np.array(file.texts("feature_names"), dtype=object)
    return estimator


_STATISTICS_ARRAYS = (
    "indptr",
    "indices",
    "counts",
    "centroid_sums",
    "class_sizes",
    "document_frequencies",
)


def _pack_model(model: _Model) -> dict[str, NDArray[Any]]:
    """Return the parts that every model has as named arrays."""
    arrays = {f"statistics/{name}": getattr(model.statistics, name) for name in _STATISTICS_ARRAYS}
    arrays["corpus/document_frequencies"] = model.corpus.document_frequencies
    arrays["corpus/term_counts"] = model.corpus.term_counts
    return arrays | _pack_labels(model.classes)


def _unpack_model(file: ModelFile) -> _Model:
    """Rebuild the parts that every model has."""
    arrays: dict[str, Any] = {name: file.array(f"statistics/{name}") for name in _STATISTICS_ARRAYS}
    statistics = ClassStatistics(**arrays, **file.parameters["statistics"])
    corpus = Corpus(
        document_frequencies=file.array("corpus/document_frequencies"),
        term_counts=file.array("corpus/term_counts"),
        **file.parameters["corpus"],
    )
    return _Model(
        classes=_unpack_labels(file, statistics.n_classes),
        statistics=statistics,
        corpus=corpus,
        current_corpus=corpus.with_new_terms(statistics.corpus),
    )


def _pack_labels(classes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the labels as arrays: numbers as they are, strings as UTF-8."""
    if classes.dtype.kind in "iufb":
        return {"classes": classes}
    if not all(isinstance(label, str) for label in classes.tolist()):
        raise TypeError(
            "only string, integer, float and boolean labels can be saved; "
            f"the first label is {classes[0]!r}. Fit with str(label) instead."
        )
    name = "classes.object" if classes.dtype.kind == "O" else "classes.text"
    return pack_texts(name, classes.tolist())


def _unpack_labels(file: ModelFile, n_classes: int) -> NDArray[Any]:
    """Return the labels in the type they were saved from."""
    if "classes" in file.arrays:
        labels = np.array(file.array("classes", ndim=1))
    elif "classes.object.utf8" in file.arrays:
        labels = np.array(file.texts("classes.object"), dtype=object)
    else:
        labels = np.array(file.texts("classes.text"), dtype=np.str_)
    if len(labels) != n_classes or (n_classes > 1 and not np.all(labels[:-1] < labels[1:])):
        raise ValueError("the labels must be sorted, and as many as there are classes")
    return labels


def _plain(value: Any) -> Any:
    """Return a numpy scalar as the Python number that JSON knows."""
    return value.item() if isinstance(value, np.generic) else value


def _check_no_missing_label(y: ArrayLike) -> None:
    """Refuse None and NaN among labels of any type, with the place of the first."""
    if y is None:
        return  # scikit-learn's own check says it better
    labels = np.asarray(y)
    if labels.dtype.kind == "O":
        missing = np.array([label is None or label != label for label in labels.ravel()], bool)
    elif labels.dtype.kind in "fc":
        missing = np.isnan(labels.ravel())
    else:
        return
    if missing.any():
        raise ValueError(
            f"y contains NaN or None: the label of document {int(np.argmax(missing))} is missing. "
            "Leave such documents out, or give them a label of their own."
        )


def _check_same_kind(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse to mix numbers and strings, which would turn every label into a string."""
    numeric = "iufb"
    if (y.dtype.kind in numeric) != (classes.dtype.kind in numeric):
        raise ValueError(
            f"y has labels such as {y[0]!r}, but the model's classes are such as {classes[0]!r}; "
            "use labels of the same type."
        )


def _check_among(y: ArrayLike, classes: ArrayLike) -> None:
    """Refuse labels that are not among the classes."""
    unknown = np.setdiff1d(np.asarray(y), np.asarray(classes))
    if len(unknown):
        raise ValueError(
            f"y has {len(unknown)} label(s) that are not among the classes, such as {unknown[0]!r}."
        )


def _find_labels(classes: NDArray[Any], wanted: ArrayLike, rows: CountRows) -> Integers:
    """Return the number of the wanted class of each document."""
    labels = np.asarray(wanted)
    if labels.shape != (rows.n_documents,):
        raise ValueError(
            f"classes must have one label for each of the {rows.n_documents} documents; "
            f"its shape is {labels.shape}."
        )
    _check_among(labels, classes)
    return np.searchsorted(classes, labels)
