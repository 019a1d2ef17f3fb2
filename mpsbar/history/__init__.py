"""The history: the recorder, its database, and what is read from it."""
