"""The command line: one file a verb; a verb's feature is imported only when it is called."""
