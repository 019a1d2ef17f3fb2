"""The command line: one file a command; a command's feature is imported only when it is called."""
