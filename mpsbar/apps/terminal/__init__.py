"""The terminal: the same rows as the menu, live, drawn by textual."""
