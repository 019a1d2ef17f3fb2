"""The user interfaces: the menu as data, and the front ends that draw it."""
