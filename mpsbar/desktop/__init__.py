"""This desktop: login, notifications, clipboard, opening things, the icon's visibility."""
