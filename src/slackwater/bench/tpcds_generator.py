"""Writes the tables of TPC-DS as Parquet, and its 99 queries, with DuckDB's own generator.

This file is run as a program by the interpreter of another environment (see `tpcds_data`): it imports nothing of
Slackwater. Arguments: the directory to write to, and the scale factor. It prints one line for each table.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb


def write(directory: Path, scale: float) -> None:
    """Generate everything in memory, then write one file for each table, and the queries and column types last."""
    with duckdb.connect() as connection:
        connection.execute(f"CALL dsdgen(sf = {scale!r})")
        found = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY table_name").fetchall()
        columns = {}
        for at, (table,) in enumerate(found, start=1):
            described = connection.execute(f"DESCRIBE {table}").fetchall()
            columns[table] = {str(row[0]): str(row[1]) for row in described}
            file = str(directory / f"{table}.parquet").replace("'", "''")
            connection.execute(f"COPY {table} TO '{file}' (FORMAT PARQUET)")
            print(f"{table} ({at} of {len(found)})", flush=True)
        texts = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr").fetchall()
    (directory / "columns.json").write_text(json.dumps(columns, indent=1), encoding="utf-8")
    (directory / "queries.json").write_text(json.dumps(dict(texts), indent=1), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), float(sys.argv[2]))
