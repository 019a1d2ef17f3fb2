"""How we show it: the menu as data and the front ends that draw it."""
