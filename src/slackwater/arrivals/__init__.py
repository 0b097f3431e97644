"""When data arrives and when a view is therefore due: clocks, refresh policies, and the scheduler that follows them."""

from slackwater.arrivals.clock import Clock, ManualClock, SystemClock
from slackwater.arrivals.policies import Policy, cron, every, manual, on_arrival, rows, target_lag
from slackwater.arrivals.situation import Situation, Verdict

__all__ = [
    "Clock", "ManualClock", "Policy", "Situation", "SystemClock", "Verdict", "cron", "every", "manual", "on_arrival",
    "rows", "target_lag",
]  # fmt: skip
