"""The terminal UI: the same rows as the menu, drawn by textual."""
