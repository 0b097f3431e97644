"""The words of SQL text, with their places in it; sqlglot's tokenizer knows strings, names and comments for us.

Only the head of a statement is read here. What follows AS goes to Spark as it was written, so a token's text matters
less than where it starts and ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import TokenError

from slackwater.errors import StatementError

WORD, NAME, STRING, NUMBER, SIGN = "word", "name", "string", "number", "sign"


class _Tokenizer(Databricks.Tokenizer):
    """Databricks' words; without sqlglot's habit of taking all that follows SHOW or EXPLAIN for one string."""

    COMMANDS: ClassVar[set[Any]] = set()


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of SQL text.

    Attributes:
        kind: an unquoted word, a name in backticks, a string, a number, or any other sign.
        value: what it stands for: a word as written, a name or string without its quotes.
        start: where it starts in the text.
        end: where the text goes on.
    """

    kind: str
    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement: its words, and where it ends (at a semicolon or with the text)."""

    text: str
    words: tuple[Word, ...]
    end: int


def _joined(words: Iterator[Word], text: str) -> Iterator[Word]:
    """A quote that is written twice inside a string is one quote: 'it''s' comes as two strings that touch."""
    last: Word | None = None
    for word in words:
        if last is not None and last.kind == word.kind == STRING and last.end == word.start:
            mark = text[word.start]
            last = Word(STRING, last.value + mark + word.value, last.start, word.end)
            continue
        if last is not None:
            yield last
        last = word
    if last is not None:
        yield last


def pieces(text: str) -> tuple[Piece, ...]:
    """The statements of a text, parted by semicolons; those without a word are left out."""
    found: list[Piece] = []
    current: list[Word] = []
    for word in _joined(_words(text), text):
        if word.kind == SIGN and word.value == ";":
            found.append(Piece(text, tuple(current), word.start))
            current = []
        else:
            current.append(word)
    found.append(Piece(text, tuple(current), len(text)))
    return tuple(piece for piece in found if piece.words)


def _words(text: str) -> Iterator[Word]:
    tokenizer = _Tokenizer(dialect="databricks")
    try:
        tokens = tokenizer.tokenize(text)
    except TokenError as error:
        read = tokenizer.tokens
        at = read[-1].end + 1 if read else 0
        at += len(text[at:]) - len(text[at:].lstrip())
        message = "the text ends inside a string, a quoted name or a comment that starts here"
        raise refusal("STATEMENT_INVALID", message, "close it", text, at) from error
    reached = 0
    for token in tokens:
        if token.start >= reached:  # a number such as 5L comes as several tokens over the same text
            yield from _split(token, text)
            reached = token.end + 1


def _split(token: Any, text: str) -> Iterator[Word]:
    start, end = token.start, token.end + 1
    raw = text[start:end]
    if token.token_type.name == "IDENTIFIER" and raw.startswith("`"):
        yield Word(NAME, raw[1:-1].replace("``", "`"), start, end)
    elif token.token_type.name in ("STRING", "RAW_STRING"):
        yield Word(STRING, token.text, start, end)
    elif raw.isdecimal():
        yield Word(NUMBER, raw, start, end)
    elif re.fullmatch(r"\w+(\s+\w+)*", raw):
        # Some words come together, such as AT TIME ZONE.
        for match in re.finditer(r"\w+", raw):
            yield Word(WORD, match[0], start + match.start(), start + match.end())
    else:
        yield Word(SIGN, raw, start, end)


def refusal(code: str, message: str, advice: str, text: str, at: int) -> StatementError:
    """An error that says where in the text."""
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    place = {"position": at, "line": line, "column": column}
    return StatementError(code, f"line {line}, column {column}: {message}", advice, place)


@dataclass(slots=True)
class Cursor:
    """Reads the words of one statement from left to right."""

    piece: Piece
    at: int = 0

    @property
    def next(self) -> Word | None:
        """The word that comes next."""
        return self.piece.words[self.at] if self.at < len(self.piece.words) else None

    def sees(self, *words: str) -> bool:
        """Whether these unquoted words or signs come next, in any case."""
        coming = self.piece.words[self.at : self.at + len(words)]
        return len(coming) == len(words) and all(
            have.kind in (WORD, SIGN) and have.value.upper() == want for have, want in zip(coming, words, strict=True)
        )

    def take(self, *words: str) -> bool:
        """Go past these words if they come next."""
        found = self.sees(*words)
        if found:
            self.at += len(words)
        return found

    def expect(self, *words: str) -> Word:
        """Go past these words; give the last of them."""
        if not self.take(*words):
            raise self.error(f"{' '.join(words)} was expected here")
        return self.piece.words[self.at - 1]

    def value(self, kind: str, what: str) -> str:
        """Go past a string or a number."""
        word = self.next
        if word is None or word.kind != kind:
            raise self.error(f"{what} was expected here")
        self.at += 1
        return word.value

    def name(self, what: str) -> str:
        """Go past a name: a word, or anything in backticks."""
        word = self.next
        if word is None or word.kind not in (WORD, NAME) or self.sees("AS"):
            raise self.error(f"{what} was expected here", "put names that are not plain words in backticks")
        self.at += 1
        if self.sees("."):
            raise self.error(f"{what} has one part: a warehouse has no schemas", "put a name with a dot in backticks")
        glued = self.next is not None and self.next.start == word.end
        if glued and not (self.sees("(") or self.sees(",") or self.sees(")")):
            raise self.error(f"{what} ends here, and something else begins", "put such a name in backticks")
        return word.value

    def end(self) -> None:
        """There is nothing more."""
        if self.next is not None:
            raise self.error("the statement should end here")

    def error(self, message: str, advice: str = "docs/sql.md has the grammar") -> StatementError:
        """A refusal at the word that comes next."""
        word = self.next
        at = self.piece.end if word is None else word.start
        found = "the statement ends" if word is None else f"found {self.piece.text[word.start : word.end][:60]!r}"
        return refusal("STATEMENT_INVALID", f"{message}; {found}", advice, self.piece.text, at)
