"""The loops that stay until they are quit: the menu bar."""
