"""How we say it: pure functions from the model to what people read."""
