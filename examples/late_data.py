"""Late data, end to end: files land in a folder, most in time and some late; a standing query stays fresh.

    python examples/late_data.py [folder]

A day's sensor readings are collected in files. 90% are there at midnight; the rest dribbles in: 9% within the hour,
0.9% in the next, 0.1% in the one after. The clock is set by hand, so that three hours pass in a minute.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import pandas as pd

import slackwater as sw

SENSORS, READINGS = 500, 200_000
MIDNIGHT = 1_767_225_600.0  # 2026-01-01 00:00 UTC
QUERY = """SELECT s.site, count(*) AS readings, avg(r.value) AS mean, max(r.value) AS highest
FROM readings r JOIN sensors s ON r.sensor = s.id GROUP BY s.site"""


def readings(count: int, seed: int) -> pd.DataFrame:
    """Readings of the day before midnight."""
    chance = random.Random(seed)  # noqa: S311 - test data, not secrets
    happened = [MIDNIGHT - chance.uniform(1, 86_400) for _ in range(count)]
    return pd.DataFrame(
        {
            "sensor": [chance.randrange(SENSORS) for _ in range(count)],
            "at": pd.to_datetime(happened, unit="s", utc=True).astype("datetime64[us, UTC]"),
            "value": [chance.randrange(1000) for _ in range(count)],
        }
    )


def main(folder: Path) -> None:
    """Tell the story."""
    inbox = folder / "inbox"
    inbox.mkdir(parents=True)
    clock = sw.ManualClock(MIDNIGHT)
    with sw.Engine(folder / "warehouse", memory_budget="64MB", clock=clock) as engine:
        sensors = engine.create_table("sensors", "id INT, site STRING", key=["id"])
        sensors.insert([(n, f"site {n % 12}") for n in range(SENSORS)])
        sensors.mark_complete()
        table = engine.create_table("readings", "sensor INT, at TIMESTAMP, value INT")
        source = table.landing_directory(str(inbox))
        readings(int(READINGS * 0.9), 1).astype({"sensor": "int32", "value": "int32"}).to_parquet(inbox / "day.parquet")
        source.poll()
        view = engine.create_view(
            "by_site", QUERY, refresh=sw.on_arrival(), forecast=sw.late_arrivals("at", batch="1d")
        )
        print(view.explain(sql=False))
        for hour, share in enumerate((0.09, 0.009, 0.001), start=1):
            clock.set(MIDNIGHT + 3600 * hour)
            late = readings(int(READINGS * share), 1 + hour).astype({"sensor": "int32", "value": "int32"})
            late.to_parquet(inbox / f"late-{hour}.parquet")
            tick = engine.tick()
            for report in tick:
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
