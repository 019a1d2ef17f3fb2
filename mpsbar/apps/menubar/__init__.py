"""The menu bar: rumps and AppKit draw what views build; all of it on the main thread."""
