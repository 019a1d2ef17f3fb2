"""Words for people: sentences, sizes and tables made from the values of core. Pure."""
