"""The methods of a `TextClassifier` that predict and explain."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from longtail.estimators._text_editing import TextEditing, if_classifier_has
from longtail.results import Explanation, Predicted, Threshold, TopK
from longtail.text.vocabulary import count_for_kernels


class TextPrediction(TextEditing):
    """Prediction and explanation: texts are counted, the classifier of counts does the rest."""

    def predict(self, texts: Any, **options: Any) -> Predicted:
        """Return the best class of each text, or its label set.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        **options
            For label sets: `threshold` and `max_labels`, as in `LongTailClassifier.predict`.

        Returns
        -------
        ndarray of shape (n_documents,), or list of lists, or indicator matrix
            Labels; label sets in the form that `fit` was given.
        """
        predicted: Predicted = self._delegate("predict", texts, **options)
        return predicted

    def score(self, texts: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy; for label sets, the mean F1 of the documents' sets.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        y : array-like of shape (n_documents,), or label sets
            True labels.
        sample_weight : array-like of shape (n_documents,), optional
            What each document counts.

        Returns
        -------
        float
        """
        figure: float = self._delegate("score", texts, y, sample_weight)
        return figure

    def predict_topk(self, texts: Any, k: int = 5) -> TopK:
        """Return the k best classes of each text with their scores.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        k : int, default=5
            How many; where there are fewer candidates the rest is not `valid`.

        Returns
        -------
        TopK
        """
        top: TopK = self._delegate("predict_topk", texts, k)
        return top

    @if_classifier_has("predict_proba_topk")
    def predict_proba_topk(self, texts: Any, k: int = 5) -> TopK:
        """Return the k best classes of each text with calibrated probabilities.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        k : int, default=5
            How many.

        Returns
        -------
        TopK
            `scores` holds probabilities, a row sums to at most 1; `none` that no candidate is the
            class. With several labels they are marginal.
        """
        top: TopK = self._delegate("predict_proba_topk", texts, k)
        return top

    @if_classifier_has("predict_proba")
    def predict_proba(self, texts: Any) -> Any:
        """Return calibrated probabilities; see the classifier of counts."""
        return self._delegate("predict_proba", texts)

    @if_classifier_has("decision_function")
    def decision_function(self, texts: Any) -> Any:
        """Return the scores of candidates; see the classifier of counts."""
        return self._delegate("decision_function", texts)

    @if_classifier_has("threshold_for")
    def threshold_for(
        self, precision: float, unknown: float = 0.0, *, each: bool = False
    ) -> Threshold:
        """Return the top-1 probability from which on predictions reach a precision.

        Parameters
        ----------
        precision : float
            Between 0 and 1.
        unknown : float, default=0.0
            Share of the documents to come whose class the model does not have.
        each : bool, default=False
            Whether each kept prediction must be that probable, instead of all on average.

        Returns
        -------
        Threshold
        """
        classifier = self._fitted().classifier
        threshold: Threshold = classifier.threshold_for(precision, unknown, each=each)
        return threshold

    def explain(
        self, texts: Any, classes: ArrayLike | None = None, top_terms: int = 10
    ) -> list[Explanation]:
        """Split the score of one class for each text into terms and features.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        classes : array-like of shape (n_documents,), optional
            The label to explain for each document; the predicted one when left out.
        top_terms : int, default=10
            How many terms to name, those first whose contribution differs most from that to the
            runner-up; the others are summed up in `rest`.

        Returns
        -------
        list of Explanation
            With terms as the vocabulary has them.
        """
        state = self._fitted()
        X = count_for_kernels(state.vocabulary, texts, self.n_jobs)
        term = state.vocabulary.term
        return [
            explanation.rename_terms(lambda name: term(int(name)))
            for explanation in state.classifier.explain(X, classes, top_terms)
        ]

    def _delegate(self, method: str, texts: Any, *arguments: Any, **options: Any) -> Any:
        """Call a method of the classifier of counts with the counts of texts."""
        state = self._fitted()
        X = count_for_kernels(state.vocabulary, texts, self.n_jobs)
        return getattr(state.classifier, method)(X, *arguments, **options)
