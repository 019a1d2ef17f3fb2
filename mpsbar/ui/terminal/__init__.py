"""The terminal UI: the snapshot on textual's own widgets, drawn from the one list of columns."""
