"""Spark's optimized logical plan turned into the algebra, or a refusal that names the operator and the reason."""

from slackwater.capture.query import Captured, capture

__all__ = ["Captured", "capture"]
