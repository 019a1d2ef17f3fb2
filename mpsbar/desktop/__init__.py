"""This desktop: what mpsbar shows and opens outside of its own menu."""
