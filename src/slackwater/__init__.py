"""Slackwater keeps SQL queries fresh on Apache Spark while their data arrives in tides."""

from slackwater.arrivals import ManualClock, SystemClock, cron, every, manual, on_arrival, rows, target_lag
from slackwater.arrivals.fixed import fixed
from slackwater.arrivals.forecast import Forecast, TableForecast
from slackwater.arrivals.late import late_arrivals
from slackwater.arrivals.learned import learned
from slackwater.arrivals.paced import paced
from slackwater.arrivals.ticks import Tick
from slackwater.engine import Engine
from slackwater.errors import SlackwaterError
from slackwater.execution.reports import Refresh, Verification
from slackwater.table import Table
from slackwater.view import View

__version__ = "0.1.0"
__all__ = [
    "Engine",
    "Forecast",
    "ManualClock",
    "Refresh",
    "SlackwaterError",
    "SystemClock",
    "Table",
    "TableForecast",
    "Tick",
    "Verification",
    "View",
    "__version__",
    "cron",
    "every",
    "fixed",
    "late_arrivals",
    "learned",
    "manual",
    "on_arrival",
    "paced",
    "rows",
    "target_lag",
]
