"""The parents of classes, as estimators of counts and of texts have them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from longtail.estimators.base import Classifier, if_classifier_has
from longtail.model.edits import Move, SetHierarchy, as_list
from longtail.taxonomy import Hierarchy


class TakesHierarchy(Classifier):
    """An estimator whose classes may have parents."""

    @property
    def hierarchy_(self) -> Hierarchy | None:
        """The parents of the classes, where any were given."""
        hierarchy: Hierarchy | None = getattr(self._arrays, "current_hierarchy", None)
        return hierarchy

    @if_classifier_has("set_hierarchy")
    def set_hierarchy(self, hierarchy: Any) -> Self:
        """Give the classes parents; scores and probabilities of classes stay as they are.

        Parameters
        ----------
        hierarchy : mapping, pairs, table of two columns, str, Hierarchy or None
            A parent or a list of parents by child; pairs of a child and a parent; a data frame of
            these two columns; or what separates the levels of labels that are paths, such as "/".
            A node may have several parents, and a class may be an inner node. None takes the
            hierarchy away.

        Raises
        ------
        ValueError
            If there is a cycle, or no class is a node; the model then stays as it is.
        """
        return self._apply(SetHierarchy(hierarchy))

    @if_classifier_has("move_class")
    def move_class(self, label: Any, parents: Any) -> Self:
        """Give a class, or an inner node of the hierarchy, other parents.

        Parameters
        ----------
        label : label
            A class of the model or a node.
        parents : label, list of labels or None
            The parents that it has afterwards, in place of those before; new ones become roots.
            None makes it a root.

        Raises
        ------
        ValueError
            If it would be below itself, or there is no hierarchy; the model then stays as it is.
        """
        return self._apply(Move(label, as_list(parents)))

    @if_classifier_has("branch")
    def branch(self, label: Any) -> NDArray[Any]:
        """Return the classes at or below a node, for `within` and `exclude`.

        Parameters
        ----------
        label : label
            A node of the hierarchy.

        Returns
        -------
        ndarray of shape (n_below,)
            Labels, sorted.
        """
        hierarchy = self.hierarchy_
        if hierarchy is None:
            raise ValueError("this model has no hierarchy; give it one with set_hierarchy.")
        classes: NDArray[Any] = self._arrays.all_classes
        return classes[np.isin(classes, hierarchy.branch(label))]
