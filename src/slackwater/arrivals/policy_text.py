"""Policies as text and as JSON.

The text is what `str(policy)` gives: `every 60s | rows 10000`, `cron '0 3 * * *' in Europe/Berlin & (rows 5 | manual)`.
`&` binds closer than `|`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final

from slackwater.arrivals.policies import (
    AllOf,
    AnyOf,
    Combination,
    Cron,
    Every,
    Manual,
    OnArrival,
    Policy,
    Rows,
    TargetLag,
    cron,
    every,
    manual,
    on_arrival,
    rows,
    target_lag,
)
from slackwater.errors import SlackwaterError

# --- JSON, as the catalog keeps it ---------------------------------------------------------------------

_KINDS: Final[dict[str, type[Policy]]] = {
    "every": Every,
    "rows": Rows,
    "on_arrival": OnArrival,
    "cron": Cron,
    "target_lag": TargetLag,
    "manual": Manual,
    "any": AnyOf,
    "all": AllOf,
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}


def policy_to_json(policy: Policy) -> dict[str, Any]:
    """Plain values.

    >>> policy_to_json(rows(5) | manual())
    {'kind': 'any', 'policies': [{'kind': 'rows', 'count': 5}, {'kind': 'manual'}]}
    """
    found: dict[str, Any] = {"kind": _NAMES[type(policy)]}
    if isinstance(policy, Combination):
        return {**found, "policies": [policy_to_json(p) for p in policy.policies]}
    return {**found, **{f.name: getattr(policy, f.name) for f in fields(policy)}}


def policy_from_json(value: Mapping[str, Any]) -> Policy:
    """The policy that `policy_to_json` wrote."""
    kind = _KINDS.get(value["kind"])
    if kind is None:
        raise SlackwaterError(
            "POLICY_INVALID", f"the catalog names a policy {value['kind']!r}", "use the Slackwater that wrote it"
        )
    arguments = {name: v for name, v in value.items() if name != "kind"}
    if issubclass(kind, Combination):
        return kind(tuple(policy_from_json(p) for p in arguments["policies"]))
    return kind(**arguments)


# --- text, as people write it --------------------------------------------------------------------------

DEEPEST: Final = 50
"""How many parentheses may stand in one another."""

_TOKEN: Final = re.compile(r"""\s*(?:'([^']*)'|"([^"]*)"|([|&()])|([^\s|&()'"]+))""")


def as_policy(given: Policy | str | None) -> Policy:
    """A policy from what a user gave: one, its text, or nothing for `manual()`."""
    if given is None:
        return manual()
    if isinstance(given, str):
        return parse_policy(given)
    if not isinstance(given, Policy):
        raise SlackwaterError(
            "POLICY_INVALID", f"a {type(given).__name__} is no policy", 'write sw.every("60s") | sw.rows(10_000)'
        )
    return given


def parse_policy(text: str) -> Policy:
    """Read a policy.

    >>> str(parse_policy("every 60s | rows 10_000 & target_lag 5 min"))
    'every 1m | rows 10000 & target_lag 5m'
    """
    return _Parser(text).policy()


class _Parser:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self._tokens = self._split(text)

    def _split(self, text: str) -> list[tuple[str, bool]]:
        """Tokens, and whether each is a mark."""
        found, at = [], 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._error(f"{text[at:].strip()[:20]!r} cannot be read")
            word = next(group for group in match.groups() if group is not None)
            found.append((word, match[3] is not None))
            at = match.end()
        return found

    def policy(self) -> Policy:
        found = self._any()
        if self._at < len(self._tokens):
            raise self._error(f"{self._tokens[self._at][0]!r} is out of place")
        return found

    def _any(self) -> Policy:
        found = self._all()
        while self._mark("|"):
            found = found | self._all()
        return found

    def _all(self) -> Policy:
        found = self._one()
        while self._mark("&"):
            found = found & self._one()
        return found

    def _one(self) -> Policy:
        if self._mark("("):
            self._depth += 1
            if self._depth > DEEPEST:
                raise self._error(f"there are more than {DEEPEST} parentheses in one another")
            found = self._any()
            self._depth -= 1
            if not self._mark(")"):
                raise self._error("a parenthesis is not closed")
            return found
        words = self._words()
        name = words[0].lower().replace("-", "_") if words else ""
        read = _READERS.get(name)
        if read is None:
            raise self._error(f"{words[0]!r} is no policy" if words else "a policy is missing")
        return read(self, words[1:])

    def _words(self) -> list[str]:
        """The words up to the next mark."""
        start = self._at
        while self._at < len(self._tokens) and not self._tokens[self._at][1]:
            self._at += 1
        return [word for word, _ in self._tokens[start : self._at]]

    def _mark(self, mark: str) -> bool:
        found = self._at < len(self._tokens) and self._tokens[self._at] == (mark, True)
        self._at += found
        return found

    def plain(self, name: str, words: list[str], make: Callable[[], Policy]) -> Policy:
        if words:
            raise self._error(f"{name} takes no {' '.join(words)!r}")
        return make()

    def rows(self, words: list[str]) -> Policy:
        if len(words) != 1 or not re.fullmatch(r"\d[\d_]{0,30}", words[0], re.ASCII):
            raise self._error(f"{' '.join(words)!r} is no number of rows")
        return rows(int(words[0].replace("_", "")))

    def cron(self, words: list[str]) -> Policy:
        if len(words) == 3 and words[1].lower() == "in":
            return cron(words[0], words[2])
        if len(words) != 1:
            raise self._error("cron takes one expression in quotes, and perhaps a time zone")
        return cron(words[0])

    def _error(self, message: str) -> SlackwaterError:
        return SlackwaterError(
            "POLICY_INVALID",
            f"{message}, in the policy {self._text[:200]!r}",
            "write, for example: every 60s | rows 10000, on_arrival, cron '0 3 * * *' in Europe/Berlin, target_lag 5m, "
            "manual; & binds closer than |",
        )


_READERS: Final[dict[str, Callable[[_Parser, list[str]], Policy]]] = {
    "every": lambda parser, words: every(" ".join(words)),
    "target_lag": lambda parser, words: target_lag(" ".join(words)),
    "rows": _Parser.rows,
    "cron": _Parser.cron,
    "on_arrival": lambda parser, words: parser.plain("on_arrival", words, on_arrival),
    "manual": lambda parser, words: parser.plain("manual", words, manual),
}
