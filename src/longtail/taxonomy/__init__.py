"""Hierarchies of classes: what they are, where they come from, what is asked of them."""

from longtail.taxonomy.hierarchy import Hierarchy
from longtail.taxonomy.reading import read_hierarchy, read_paths

__all__ = ["Hierarchy", "read_hierarchy", "read_paths"]
