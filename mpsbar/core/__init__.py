"""The data model and its pure rules. Sizes are bytes, times are seconds, None is unknown."""
