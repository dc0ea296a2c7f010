"""Properties that are computed once, and objects that are made with some of them known."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 - the name that it has
        """The one of `functools` without its lock, which Python 3.12 dropped as well.

        The lock is that of all instances: a process forked while another thread computes a value
        would wait for it forever. Values follow from frozen data, so two threads may compute one.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Return the value, and keep it in the instance."""
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


Known = Mapping[str, Any] | None  # values of cached properties by name


@dataclass(frozen=True, eq=False)
class WithKnown:
    """A frozen dataclass that may be made with values of its cached properties."""

    known: InitVar[Known] = field(default=None, kw_only=True)

    def __post_init__(self, known: Known) -> None:
        for name, value in (known or {}).items():
            object.__setattr__(self, name, value)
