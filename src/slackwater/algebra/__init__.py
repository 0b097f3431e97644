"""The relational algebra: nodes, expressions, traits, printer, invariants and the reference interpreter.

Nothing in this package imports Spark.
"""
