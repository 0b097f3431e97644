"""Late data, end to end: files land in a folder, most in time and some late; a standing query stays fresh.

    python examples/late_data.py [folder]

A day's sensor readings are collected in files. 90% are there at midnight; the rest dribbles in: 9% within the hour,
0.9% in the next, 0.1% in the one after. Three days have come so before, and how late their rows were tells how many
to expect of the fourth. The clock is set by hand, so that days pass in a minute.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import pandas as pd

import slackwater as sw

SENSORS, READINGS = 500, 1_200_000
EARLIER_DAYS, EARLIER_READINGS = 3, 20_000
SHARES = (0.9, 0.09, 0.009, 0.001)
"""Of a day's readings, what is there at midnight and what comes in each of the hours after it."""

HOUR, DAY = 3_600.0, 86_400.0
MIDNIGHT = 1_767_225_600.0  # 2026-01-01 00:00 UTC
QUERY = """SELECT s.site, count(*) AS readings, avg(r.value) AS mean, max(r.value) AS highest
FROM readings r JOIN sensors s ON r.sensor = s.id GROUP BY s.site"""


def readings(count: int, midnight: float) -> pd.DataFrame:
    """Readings of the day before midnight."""
    chance = random.Random(f"{midnight} {count}")  # noqa: S311 - test data, not secrets
    happened = [midnight - chance.uniform(1, DAY) for _ in range(count)]
    return pd.DataFrame(
        {
            "sensor": [chance.randrange(SENSORS) for _ in range(count)],
            "at": pd.to_datetime(happened, unit="s", utc=True).astype("datetime64[us, UTC]"),
            "value": [chance.randrange(1000) for _ in range(count)],
        }
    ).astype({"sensor": "int32", "value": "int32"})


def deliver(inbox: Path, midnight: float, hour: int, of_a_day: int) -> None:
    """Put a file into the folder: what is there at midnight, or what comes late."""
    rows = readings(round(of_a_day * SHARES[hour]), midnight)
    rows.to_parquet(inbox / f"day-{midnight:.0f}-{hour}.parquet")


def main(folder: Path) -> None:
    """Tell the story."""
    inbox = folder / "inbox"
    inbox.mkdir(parents=True)
    clock = sw.ManualClock(MIDNIGHT - EARLIER_DAYS * DAY)
    with sw.Engine(folder / "warehouse", memory_budget="64MB", clock=clock) as engine:
        sensors = engine.create_table("sensors", "id INT, site STRING", key=["id"])
        sensors.insert([(n, f"site {n % 12}") for n in range(SENSORS)])
        sensors.mark_complete()
        table = engine.create_table("readings", "sensor INT, at TIMESTAMP, value INT")
        source = table.landing_directory(str(inbox))
        for day in range(EARLIER_DAYS, 0, -1):
            for hour in range(len(SHARES)):
                clock.set(MIDNIGHT - day * DAY + hour * HOUR)
                deliver(inbox, MIDNIGHT - day * DAY, hour, EARLIER_READINGS)
                source.poll()
        clock.set(MIDNIGHT)
        deliver(inbox, MIDNIGHT, 0, READINGS)
        source.poll()
        view = engine.create_view(
            "by_site", QUERY, refresh=sw.on_arrival(), forecast=sw.late_arrivals("at", batch="1d")
        )
        print(view.explain(sql=False))
        for hour in range(1, len(SHARES)):
            clock.set(MIDNIGHT + hour * HOUR)
            deliver(inbox, MIDNIGHT, hour, READINGS)
            for report in engine.tick():
                print(report)
            print(view.verify())
        table.mark_complete()
        print(view.forecasts())
        view.result().orderBy("site").show(12)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="slackwater-late-") as directory:
            main(Path(directory))
