"""The menu bar: rumps and AppKit draw the rows, on the main thread only."""
