"""Slackwater keeps SQL queries fresh on Apache Spark while their data arrives in tides."""

from slackwater.arrivals.fixed import fixed
from slackwater.arrivals.forecast import Forecast, TableForecast
from slackwater.arrivals.late import late_arrivals
from slackwater.arrivals.learned import learned
from slackwater.arrivals.paced import paced
from slackwater.engine import Engine
from slackwater.errors import SlackwaterError
from slackwater.execution.reports import Refresh, Verification
from slackwater.table import Table
from slackwater.view import View

__version__ = "0.1.0"
__all__ = [
    "Engine",
    "Forecast",
    "Refresh",
    "SlackwaterError",
    "Table",
    "TableForecast",
    "Verification",
    "View",
    "__version__",
    "fixed",
    "late_arrivals",
    "learned",
    "paced",
]
