"""The desktop's services: Open at Login, notifications, clipboard, opening files, the icon."""
