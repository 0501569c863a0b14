"""The options of `kctl top`."""

from __future__ import annotations

from typing import NamedTuple

from kctl.commands.top.views import (
    TOPICS,
    Order,
    View,
    filter_and_sort,
    sorts_descending,
    view_named,
)


class TopRequest(NamedTuple):
    """The options of `kctl top`."""

    every: str = "5s"
    view: str | None = None
    sort: str | None = None
    filter_text: str = ""
    has_groups: bool = True
    is_once: bool = False
    output: str | None = None

    def chosen_view(self) -> View:
        """Return the view to show first, TOPICS if none is named; raises NoSuchView."""
        return TOPICS if self.view is None else view_named(self.view)

    def sort_order(self) -> Order | None:
        """Return the requested sort order of the first view, None for its default.

        Errors: NoSuchView, NoSuchSort.
        """
        if self.sort is None:
            return None
        view = self.chosen_view()
        # For its error: sorting no rows checks the field.
        filter_and_sort(view, [], order=Order(self.sort, False))
        return Order(self.sort, sorts_descending(view, self.sort))
