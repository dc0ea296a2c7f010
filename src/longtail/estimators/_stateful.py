"""What all estimators share: everything fitted is one frozen state that an edit replaces whole."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted


class StatefulEstimator(ClassifierMixin, BaseEstimator):
    """An estimator whose fitted parts are one frozen state, swapped under a lock of its own."""

    _state: Any

    @property
    def _lock(self) -> Any:
        """The lock around edits; a copy, a pickle or a forked process has one of its own."""
        pid, lock = self.__dict__.setdefault("_lock_of_process", (os.getpid(), threading.RLock()))
        if pid != os.getpid():
            self.__dict__["_lock_of_process"] = (os.getpid(), lock := threading.RLock())
        return lock

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock out of copies and pickles."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_lock_of_process"}

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is a state."""
        return hasattr(self, "_state")

    def _fitted(self) -> Any:
        """Return the state as it is, or say that there is none yet."""
        if not self.__sklearn_is_fitted__():  # scikit-learn's own check takes 0.1 ms
            check_is_fitted(self)
        return self._state

    @property
    def state_(self) -> Any:
        """Everything that is fitted, a frozen dataclass of arrays; not to be changed."""
        return self._fitted()

    @classmethod
    def from_state(cls, state: Any, **parameters: Any) -> Self:
        """Return an estimator with these parameters and a state that was fitted elsewhere."""
        estimator = cls(**parameters)
        estimator._adopt(state)
        return estimator

    def _adopt(self, state: Any) -> None:
        """Take a state that was fitted elsewhere, in place of what was fitted before."""
        with self._lock:
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = state.statistics.n_terms
            self._state = state

    @contextmanager
    def _unchanged_on_failure(self) -> Iterator[None]:
        """Put every attribute back where a fit fails or is interrupted."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's picture with the sizes of the model below it."""
        picture: str = super()._repr_html_inner()
        if not self.__sklearn_is_fitted__():
            return picture
        rows = "".join(
            f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in self._facts().items()
        )
        return f"{picture}<table>{rows}</table>"

    @abstractmethod
    def _facts(self) -> dict[str, str]:
        """Return what a notebook shows of the model: names and values without markup."""
