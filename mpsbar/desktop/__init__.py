"""This desktop: what mpsbar shows, opens and asks of it outside of its own menu."""
