"""A table whose rows change under the cursor, and can be filtered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from aioqless.validation import plain


class LiveTable(DataTable[Text]):
    """Shows named rows. The cursor stays on its row when others come and go.

    Attributes:
        wanted: What the text of a shown row contains, in lower case; empty for all rows.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Show")]

    def __init__(self, columns: Mapping[str, int | None], *, id: str) -> None:
        """Declare the columns: their titles, and the widths of those that are as wide as given."""
        super().__init__(id=id, cursor_type="row", zebra_stripes=False)
        self.wanted = ""
        self._names: list[str] = []
        self._rows: Mapping[str, Sequence[Text]] = {}
        for title, width in columns.items():
            label = Text(title, justify="left" if width is None else "right")
            self.add_column(label, width=width, key=title)

    @property
    def selected(self) -> str | None:
        """The name of the row under the cursor."""
        return self._names[self.cursor_row] if self._names else None

    def show(self, rows: Mapping[str, Sequence[Text]]) -> None:
        """Show these rows, by name."""
        self._rows = rows
        shown = {name: cells for name, cells in rows.items() if self._is_wanted(cells)}
        self._fit_columns(shown.values())
        if list(shown) != self._names:
            selected, offset = self.selected, self.scroll_offset
            self.clear()
            for name, cells in shown.items():
                self.add_row(*cells, key=name)
            self._names = list(shown)
            if selected in shown:
                self.move_cursor(row=self._names.index(selected), scroll=False)
                self.scroll_to(offset.x, offset.y, animate=False, force=True)
            return
        for name, cells in shown.items():
            for column, cell in zip(self.ordered_columns, cells, strict=True):
                if self.get_cell(name, column.key) != cell:
                    self.update_cell(name, column.key, cell, update_width=True)

    def filter(self, wanted: str) -> None:
        """Show only the rows that contain a string."""
        self.wanted = wanted.lower()
        self.show(self._rows)

    def _fit_columns(self, rows: Collection[Sequence[Text]]) -> None:
        # The table does this too, but later, and what it drew before may stay.
        for index, column in enumerate(self.ordered_columns):
            if column.auto_width:
                cells = [column.label, *(cells[index] for cells in rows)]
                column.content_width = max(cell.cell_len for cell in cells)

    def _is_wanted(self, cells: Sequence[Text]) -> bool:
        return not self.wanted or any(self.wanted in cell.plain.lower() for cell in cells)


def number(value: float, style: str = "", digits: int = 0) -> Text:
    """Return a number as a cell: on the right, and dim if it is 0."""
    return Text(f"{value:,.{digits}f}", style=style if value else "dim", justify="right")


def words(value: str, style: str = "") -> Text:
    """Return a string as a cell."""
    return Text(plain(value), style=style)
