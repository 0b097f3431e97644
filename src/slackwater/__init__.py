"""Slackwater keeps SQL queries fresh on Apache Spark while their data arrives in tides."""

from slackwater.engine import Engine
from slackwater.errors import SlackwaterError
from slackwater.execution.reports import Refresh, Verification
from slackwater.table import Table
from slackwater.view import View

__version__ = "0.1.0"
__all__ = ["Engine", "Refresh", "SlackwaterError", "Table", "Verification", "View", "__version__"]
