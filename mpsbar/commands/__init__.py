"""One file a verb; a verb's room is imported only when it is called."""
