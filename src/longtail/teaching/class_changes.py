"""The changes of a `Teacher` that neither teach nor forget: of classes, and of what is shared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from longtail.teaching.documents import pack, plain_label
from longtail.teaching.opening import State
from longtail.teaching.replay import apply_new, copy_model

Batches = list[dict[str, Any]]
Attempt = Callable[[State], tuple[Any, Batches]]  # returns the changed model, and the change


class ClassChanges:
    """One method for each; `_record` makes a change durable, then swaps the model in."""

    model: Any
    _record: Callable[[str, Attempt, str | None], int]

    def rename_class(self, old: Any, new: Any, by: str | None = None) -> int:
        """Give a class another label, which no class has; return the number of the change."""
        content = {"old": plain_label(old), "new": plain_label(new)}
        return self._record("rename", attempt_change("rename", lambda _: [content]), by)

    def merge_classes(self, source: Any, into: Any, by: str | None = None) -> int:
        """Move all documents of one class into another; return the number of the change."""
        content = {"source": plain_label(source), "into": plain_label(into)}
        return self._record("merge", attempt_change("merge", lambda _: [content]), by)

    def remove_class(self, label: Any, by: str | None = None) -> int:
        """Forget a class with all its documents; return the number of the change."""
        content = {"label": plain_label(label)}
        return self._record("remove", attempt_change("remove", lambda _: [content]), by)

    def refine(self, by: str | None = None) -> int:
        """Bring what all classes share up to date; return the number of the change.

        As the model's own `refine` without documents: document frequencies and collection model
        follow from the sums. It takes as long as rebuilding the index; call it after every few
        hundred documents taught.

        Raises
        ------
        ValueError
            If the model has nothing of the kind (`DoubleSamplingClassifier`).
        """
        if not hasattr(self.model, "refine"):
            raise ValueError(f"{type(self.model).__name__} has nothing to refine.")
        return self._record("refine", attempt_change("refine", lambda _: [{}]), by)

    def recalibrate(self, documents: Any, labels: Any, by: str | None = None) -> int:
        """Correct the probabilities by documents before they are taught.

        As the model's own `recalibrate`. The journal keeps the documents, as it does when they are
        taught.

        Parameters
        ----------
        documents : list of str, or matrix of shape (n_documents, n_terms)
            As for `teach`.
        labels : array-like of shape (n_documents,)
            Their labels; the model need not have them.
        by : str, optional
            Who says so; kept in the journal.

        Returns
        -------
        int
            The number of the change.

        Raises
        ------
        ValueError
            If the model has nothing of the kind, or documents have several labels.
        """
        if not hasattr(self.model, "recalibrate"):
            raise ValueError(f"{type(self.model).__name__} has nothing to recalibrate.")
        attempt = attempt_change("recalibrate", lambda model: pack(model, documents, labels))
        return self._record("recalibrate", attempt, by)

    def set_class_text(self, label: Any, text: str | None, by: str | None = None) -> int:
        """Give a class of a model of texts another name or description, or with None take it away.

        As the model's own `set_class_text`; return the number of the change.

        Raises
        ------
        ValueError
            If the model keeps no texts of classes (a model of counts), or the text is no string.
        """
        if not hasattr(self.model, "class_texts_") or not hasattr(self.model, "set_class_text"):
            raise ValueError(f"{type(self.model).__name__} keeps no texts of classes.")
        if text is not None and not isinstance(text, str):
            raise ValueError(f"text must be a string or None; got {text!r}.")
        content = {"label": plain_label(label), "text": text or ""}
        return self._record("describe", attempt_change("describe", lambda _: [content]), by)


def attempt_change(action: str, content: Callable[[Any], Batches]) -> Attempt:
    """Return a function that applies a change to a copy of a state's model."""

    def attempt(state: State) -> tuple[Any, Batches]:
        batches, model = content(state.model), copy_model(state.model)
        apply_new(model, action, batches)
        return model, batches

    return attempt
