"""The words: sentences, sizes and tables made from core's values. Pure."""
