"""A plain training loop."""

from small_model import show, train

show(train())
