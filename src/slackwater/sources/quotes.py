"""Quoted values in CSV that go on in the next line: Spark, which reads line by line, would take them for two rows."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Final

_LINE_ENDS: Final = {"": None, "\n": "\n", "\r": "\r", "\r\n": "\r\n"}


def open_quotes(path: Path, options: Mapping[str, str]) -> int | None:
    """The number of the first line of a CSV file that ends inside of quotes, if there is one.

    None as well for what cannot be read here; Spark then says what is wrong.
    """
    quote, escape = options.get("quote", '"'), options.get("escape", "\\")
    if not quote or options.get("multiline") == "true" or options.get("linesep", "") not in _LINE_ENDS:
        return None
    unclosed, comment = _unclosed(quote, escape, options), options.get("comment")
    try:
        for number, line in enumerate(_lines(path, options), start=1):
            if quote not in line or (comment and line.lstrip().startswith(comment)):
                continue
            odd = line.count(quote) % 2 or (escape and escape != quote and escape + quote in line)
            if odd and unclosed.match(line.rstrip("\r\n")):
                return number
    except (OSError, EOFError, zlib.error, LookupError):
        return None
    return None


def _lines(path: Path, options: Mapping[str, str]) -> Iterator[str]:
    encoding = options.get("encoding", options.get("charset", "utf-8"))
    newline = _LINE_ENDS[options.get("linesep", "")]
    with _opened(path, encoding, newline) as file:
        yield from file


def _opened(path: Path, encoding: str, newline: str | None) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding=encoding, errors="replace", newline=newline)
    return path.open(encoding=encoding, errors="replace", newline=newline)


def _unclosed(quote: str, escape: str, options: Mapping[str, str]) -> re.Pattern[str]:
    """Whole fields, then one that begins with a quote and does not end: a quote inside of a bare field is none."""
    q, sep = re.escape(quote), re.escape(options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t"))
    start = rf"[ \t]*{q}" if options.get("ignoreleadingwhitespace") == "true" else q
    if escape and escape != quote:
        e = re.escape(escape)
        inside = rf"(?:[^{q}{e}]|{e}.|{q}{q})*"
    else:
        inside = rf"(?:[^{q}]|{q}{q})*"
    bare = rf"(?!{start})(?:(?!{sep}).)*"
    return re.compile(rf"(?:(?:{start}{inside}{q}[ \t]*|{bare}){sep})*{start}{inside}\Z", re.DOTALL)
