"""The commands that show what Slackwater does: `slackwater demo` and `slackwater bench`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from slackwater.cli_output import Output
from slackwater.cli_session import EXIT_CODES, JSON, ExitCode, reported

DEMO_BUDGET = "256MB"


@click.command(epilog=EXIT_CODES)
@click.option("--sf", type=click.FloatRange(0.001, 100), default=0.5, show_default=True, help="The TPC-H scale factor.")
@click.option("--output", "place", type=click.Path(path_type=Path), default=Path("."), show_default=True,
              help="Where the picture goes: a directory or a .png file.")  # fmt: skip
@click.option("--keep", is_flag=True, help="Keep the warehouse, to look around in it.")
@click.option("--memory-budget", metavar="SIZE", default=DEMO_BUDGET, show_default=True, help="What states may occupy.")
@JSON
def demo(sf: float, place: Path, keep: bool, memory_budget: str, json_only: bool) -> None:
    """Watch queries being kept fresh, against plain Spark.

    Three TPC-H queries, data that arrives late, and a picture at the end. Takes two or three minutes.
    """
    with Output(json_only) as output, reported(output):
        from slackwater.demo import run_demo

        report = run_demo(output, scale=sf, budget=memory_budget, place=place, keep=keep)
        output.document(report.to_dict())
        if not report.verified:
            raise click.exceptions.Exit(ExitCode.DIFFERENCE)


def _numbers(text: str) -> tuple[int, ...] | None:
    """Numbers with commas between them; None for none at all."""
    try:
        return tuple(int(number) for number in text.split(",") if number.strip()) or None
    except ValueError:
        raise click.BadParameter("write numbers with commas: 1,3,5", param_hint="--queries") from None


def _measured(output: Output, document: Mapping[str, Any]) -> None:
    """Give the figures; they count for nothing where a result is wrong."""
    output.document(document)
    if not document["summary"]["all verified"]:
        raise click.exceptions.Exit(ExitCode.DIFFERENCE)


@click.group()
def bench() -> None:
    """Measure refreshes against recomputes."""


@bench.command(epilog=EXIT_CODES)
@click.option("--sf", type=click.FloatRange(0.001), default=1.0, show_default=True, help="The scale factor.")
@click.option("--queries", metavar="1,3,5", default="", help="Which queries; the 11 flat ones by default.")
@click.option("--all", "everything", is_flag=True, help="All 22 queries.")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="Runs for each median.")
@click.option("--output", "place", type=click.Path(file_okay=False, path_type=Path), help="Where reports are written.")
@JSON
def tpch(sf: float, queries: str, everything: bool, repeats: int, place: Path | None, json_only: bool) -> None:
    """Run TPC-H: rows that are held back arrive in small deltas."""
    chosen = _numbers(queries)
    if chosen and everything:
        raise click.UsageError("give either --all or --queries")
    with Output(json_only) as output, reported(output):
        from slackwater.bench.tpch import command

        document = command(sf=sf, queries=chosen, repeats=repeats, output=place, json_only=json_only,
                           all_queries=everything)  # fmt: skip
        _measured(output, document)


@bench.command(epilog=EXIT_CODES)
@click.option("--suite", type=click.Choice(["tpch", "tpcds"]), default="tpch", show_default=True, help="Whose queries.")
@click.option("--output", "place", type=click.Path(dir_okay=False, path_type=Path), help="Write the page to this file.")
@JSON
def coverage(suite: str, place: Path | None, json_only: bool) -> None:
    """Tell how each operator of the queries of TPC-H or TPC-DS is refreshed, and why.

    Needs no rows. The queries of TPC-DS come from its generator, which is fetched the first time; see `tpcds-data`.
    """
    with Output(json_only) as output, reported(output):
        from slackwater.bench.coverage import command
        from slackwater.bench.suites import SUITES

        chosen = SUITES[suite](output.note)
        with output.working(f"checking {len(chosen.queries)} queries"):
            document, page = command(chosen)
        output.document(document)
        output.note(f"the slowest check took {document['slowest_check_seconds']:.2f} s, once Spark was warm")
        if place is None:
            output.line(page)
        else:
            place.write_text(page + "\n", encoding="utf-8")


@bench.command("tpcds-data", epilog=EXIT_CODES)
@click.option("--sf", type=click.FloatRange(0.01), default=0.01, show_default=True, help="The scale factor.")
@JSON
def tpcds_data(sf: float, json_only: bool) -> None:
    """Make the tables and queries of TPC-DS, unless they are there.

    Installs the generator with pip the first time. Everything goes to the user's cache directory.
    """
    with Output(json_only) as output, reported(output):
        from slackwater.bench.tpcds_data import prepare

        with output.working("making the data of TPC-DS"):
            data = prepare(sf, output.note)
        output.document({"directory": str(data.directory), "scale": sf, "queries": len(data.texts)})
        output.line(str(data.directory))


@bench.command(epilog=EXIT_CODES)
@click.option("--figure", type=click.Choice(["3", "4", "5", "6", "7", "8", "9"]), help="Which experiment over TPC-H.")
@click.option("--table", type=click.Choice(["2"]), help="The join order benchmark over a movie database.")
@click.option("--sf", type=click.FloatRange(0.001), default=1.0, show_default=True, help="The scale factor.")
@click.option("--queries", metavar="3,8", default="", help="Which queries; all of the experiment's by default.")
@click.option("--only-auto", is_flag=True, help="With figure 3: `auto` and `rebatch` alone, for large scale factors.")
@click.option("--output", "place", type=click.Path(file_okay=False, path_type=Path), help="Where reports are written.")
@JSON
def iqp(
    figure: str | None, table: str | None, sf: float, queries: str, only_auto: bool, place: Path | None,
    json_only: bool,
) -> None:  # fmt: skip
    """Rerun an experiment of intermittent query processing.

    Figure 3: late data. 4: data cleaning. 5: forecasts of the wrong size. 6: of the wrong tables. 7: budgets. 8: what
    is kept beyond a pipelined run. 9: deletes. Table 2: 33 queries with 3 to 16 joins over a movie database.
    """
    if (figure is None) == (table is None):
        raise click.UsageError("name one experiment: --figure 3 to 9, or --table 2")
    if only_auto and figure != "3":
        raise click.UsageError("--only-auto is for --figure 3")
    chosen = _numbers(queries)
    with Output(json_only) as output, reported(output):
        if figure is not None:
            from slackwater.bench.iqp import command

            found = command(int(figure), sf=sf, queries=chosen, output=place, json_only=json_only, only_auto=only_auto)
        else:
            from slackwater.bench.iqp_movies import command as movies

            found = movies(sf=sf, queries=chosen, output=place, json_only=json_only)
        _measured(output, found)


@bench.command(epilog=EXIT_CODES)
@click.option("--output", "place", type=click.Path(file_okay=False, path_type=Path), help="Where reports are written.")
@JSON
def planning(place: Path | None, json_only: bool) -> None:
    """Choose states for joins of up to 32 tables: how long planning takes. Starts no Spark."""
    with Output(json_only) as output, reported(output):
        from slackwater.bench.planning import command

        output.document(command(output=place, json_only=json_only))


@bench.command(epilog=EXIT_CODES)
@click.option("--refreshes", type=click.IntRange(60), default=200, show_default=True, help="How many refreshes.")
@click.option("--rows", type=click.IntRange(1), default=100, show_default=True, help="Rows in each delta.")
@click.option("--output", "place", type=click.Path(file_okay=False, path_type=Path), help="Where reports are written.")
@JSON
def steady(refreshes: int, rows: int, place: Path | None, json_only: bool) -> None:
    """Refresh many times in a row: time and memory must not grow with the number of refreshes."""
    with Output(json_only) as output, reported(output):
        from slackwater.bench.steady import command

        _measured(output, command(refreshes=refreshes, rows=rows, output=place, json_only=json_only))


@bench.command(epilog=EXIT_CODES)
@click.option("--sf", type=click.FloatRange(0.001), default=1.0, show_default=True, help="The scale factor.")
@click.option("--share", type=click.FloatRange(0.0, 1.0), default=0.25, show_default=True,
              help="The budget, as a share of what all views would keep.")  # fmt: skip
@click.option("--output", "place", type=click.Path(file_okay=False, path_type=Path), help="Where reports are written.")
@JSON
def division(sf: float, share: float, place: Path | None, json_only: bool) -> None:
    """Ten views under one budget: divided by what states save, against an equal split."""
    with Output(json_only) as output, reported(output):
        from slackwater.bench.division import command

        _measured(output, command(sf=sf, share=share, output=place, json_only=json_only))
