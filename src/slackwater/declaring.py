"""Declaring functions of one's own: the part of the engine that makes them known to all its sessions."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType
from pyspark.sql.udf import UserDefinedFunction

from slackwater.execution.functions import aggregate_function, scalar_function
from slackwater.execution.sessions import Sessions, active_session_kept


class Declaring:
    """What an engine does to declare functions."""

    _lock: RLock

    if TYPE_CHECKING:

        @property
        def spark(self) -> SparkSession:
            """The Spark session."""

        @property
        def sessions(self) -> Sessions:
            """Sessions for our own work."""

    def register_udf(
        self, name: str, function: Callable[..., Any], returns: str | DataType | None = None, *,
        deterministic: bool = False,
    ) -> UserDefinedFunction:  # fmt: skip
        """Declare a function of your own, so that queries may call it by its name.

        A new process declares it again before it refreshes the views that call it. One whose code has changed since
        makes these views recompute at their next refresh.

        Args:
            name: its name in SQL.
            function: a Python function of the cells of a row, or what `udf`, `pandas_udf` or `arrow_udf` gives.
            returns: the type of its answers, such as "decimal(12,2)"; not needed for what PySpark has wrapped.
            deterministic: the same arguments always give the same answer, whatever other rows there are.

        Returns:
            what DataFrame queries call it by.
        """
        with self._lock, active_session_kept():
            made = scalar_function(name, function, returns, deterministic=deterministic, spark=self.spark)
            self.sessions.declare(made)
        return made.udf

    def register_udaf(
        self, name: str, function: Callable[..., Any], returns: str | DataType | None = None, *,
        deterministic: bool = False, merge: Callable[[list[Any]], Any] | None = None,
    ) -> UserDefinedFunction:  # fmt: skip
        """Declare an aggregate function of your own, as `register_udf` does for functions of a row.

        Args:
            name: its name in SQL.
            function: a function from pandas Series of a group's values to one value, or what `pandas_udf` gives.
            returns: the type of its answers.
            deterministic: the same values always give the same answer, in whatever order they come.
            merge: gives the answer for a group from the answers for its parts: `merge([f(A), f(B)]) = f(A ∪ B)`. With
                it inserts touch only the new rows; without it every touched group is redone.

        Returns:
            what DataFrame queries call it by.
        """
        with self._lock, active_session_kept():
            made = aggregate_function(name, function, returns, deterministic=deterministic, merge=merge,
                                      spark=self.spark)  # fmt: skip
            self.sessions.declare(made)
        return made.udf
