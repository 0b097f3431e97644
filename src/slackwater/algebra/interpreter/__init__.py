"""A pure-Python reference for every operator, over weighted rows. Slow, small, and independent of the delta rules."""

from slackwater.algebra.interpreter.relations import Bag, Catalogue, evaluate

__all__ = ["Bag", "Catalogue", "evaluate"]
