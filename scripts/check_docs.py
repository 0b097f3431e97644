"""Checks the documentation: do its relative links lead somewhere, and does the code in it parse?"""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent

FENCE = re.compile(r"^(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<language>[\w+-]*)")
CODE_SPAN = re.compile(r"(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)")
INLINE_LINK = re.compile(r"\]\(\s*<?(?P<target>[^)\s>]+)>?(?:\s+[\"'(][^)]*)?\)")
REFERENCE_LINK = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(?P<target>[^\s>]+)")
HTML_LINK = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=[\"'](?P<target>[^\"']+)", re.IGNORECASE)
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(?P<text>.*?)\s*#*\s*$")
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of prose, with its number."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of code, with the number of its first line."""

    number: int
    language: str
    code: str


def split(document: Path) -> tuple[list[Line], list[Block]]:
    """Parts a Markdown document into its prose and its fenced blocks."""
    prose: list[Line] = []
    blocks: list[Block] = []
    opened: re.Match[str] | None = None
    start, code = 0, list[str]()
    for number, text in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        if opened is None:
            opened = FENCE.match(text)
            if opened is None:
                prose.append(Line(number, text))
            start, code = number + 1, []
        elif text.strip().startswith(opened["marks"]) and not text.strip().strip(opened["marks"][0]):
            blocks.append(Block(start, opened["language"].lower(), dedent("\n".join(code)) + "\n"))
            opened = None
        else:
            code.append(text)
    return prose, blocks


def links(prose: list[Line]) -> Iterator[tuple[int, str]]:
    """Yields the line number and the target of every link that stays within the project."""
    for line in prose:
        text = CODE_SPAN.sub("", line.text)
        for pattern in (INLINE_LINK, REFERENCE_LINK, HTML_LINK):
            for match in pattern.finditer(text):
                if not ELSEWHERE.match(match["target"]):
                    yield line.number, unquote(match["target"])


def anchors(document: Path) -> set[str]:
    """Returns the anchors that the headings of a document can be linked to by."""
    found: set[str] = set()
    for line in split(document)[0]:
        heading = HEADING.match(line.text)
        if heading is None:
            continue
        text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading["text"])
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        anchor, copies = slug, 0
        while anchor in found:
            copies += 1
            anchor = f"{slug}-{copies}"
        found.add(anchor)
    return found


def broken_link(document: Path, target: str) -> str | None:
    """Says what is wrong with a link, or returns None."""
    path, _, anchor = target.partition("#")
    base = ROOT if path.startswith("/") else document.parent
    destination = (base / path.lstrip("/")).resolve() if path else document
    if not destination.is_relative_to(ROOT):
        return f"link leads out of the project: {target}"
    if not destination.exists():
        return f"link leads nowhere: {target}"
    if anchor and destination.suffix == ".md" and anchor not in anchors(destination):
        return f"no such heading: {target}"
    return None


def broken_code(block: Block) -> str | None:
    """Says why a block of Python or shell does not parse, or returns None."""
    if block.language in {"python", "py"}:
        try:
            compile(block.code, "<block>", "exec", dont_inherit=True)
        except SyntaxError as error:
            return f"Python does not compile: {error.msg} (line {error.lineno} of the block)"
    if block.language in {"bash", "sh", "shell"}:
        parsed = subprocess.run(["bash", "-n"], input=block.code, capture_output=True, text=True, check=False)  # noqa: S607
        if parsed.returncode != 0:
            return f"shell does not parse: {parsed.stderr.strip()}"
    return None


def documents_of(root: Path) -> list[Path]:
    """Returns all that is written for people: at the top, under docs, and beside the code."""
    return [path for pattern in ("*.md", "docs/**/*.md", "src/**/*.md") for path in sorted(root.glob(pattern))]


def main() -> int:
    """Checks every document and prints what is wrong, then a summary; returns the exit status."""
    problems: list[str] = [] if (ROOT / "README.md").exists() else ["README.md: missing"]
    documents = documents_of(ROOT)
    checked_links = checked_blocks = 0
    for document in documents:
        name = document.relative_to(ROOT)
        prose, blocks = split(document)
        for number, target in links(prose):
            checked_links += 1
            if problem := broken_link(document, target):
                problems.append(f"{name}:{number}: {problem}")
        for block in blocks:
            checked_blocks += block.language in {"python", "py", "bash", "sh", "shell"}
            if problem := broken_code(block):
                problems.append(f"{name}:{block.number}: {problem}")
    for problem in problems:
        print(problem)
    print(
        f"{len(documents)} documents, {checked_links} relative links, {checked_blocks} code blocks: "
        f"{len(problems) or 'no'} {'problem' if len(problems) == 1 else 'problems'}"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
