"""Match joins, outer joins, generators and constant rows as Spark SQL; inputs come as parenthesised SELECTs."""

from __future__ import annotations

from slackwater.algebra.expressions import quote
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.joins import EXISTS, SEMI, MatchJoin, OuterJoin
from slackwater.algebra.lookups import LookupJoin, Probe

WEIGHT = "_w"

UNORDERED = ("interval", "variant")
"""Types whose values are equal or not, but neither less nor greater."""


def _listed(columns: list[str], weighted: bool) -> str:
    return ", ".join([*columns, WEIGHT] if weighted else columns) or "1 AS `_`"


def match_join(node: MatchJoin, left: str, right: str) -> str:
    """A semi or anti join; an existence join is a column that says EXISTS."""
    hint = "/*+ BROADCAST(r) */ " if node.broadcast else ""
    if node.kind == EXISTS:
        columns = [quote(name) for name in node.left.names]
        flag = f"EXISTS (SELECT {hint}1 FROM {right} AS r\n  WHERE {node.condition.text}) AS {quote(node.flag)}"
        return f"SELECT {_listed([*columns, flag], node.weighted)}\nFROM {left} AS l"
    kind = "LEFT SEMI JOIN" if node.kind == SEMI else "LEFT ANTI JOIN"
    return f"SELECT {hint}* FROM {left} AS l\n{kind} {right} AS r\n  ON {node.condition.text}"


def outer_join(node: OuterJoin, left: str, right: str) -> str:
    """An outer join; only the side that is not asked for matches can have weights, and every row shows one of it."""
    columns = [f"l.{quote(name)}" for name in node.left.names] + [f"r.{quote(name)}" for name in node.right.names]
    if node.weighted:
        columns.append(f"{'l' if node.left.weighted else 'r'}.{WEIGHT} AS {WEIGHT}")
    kind = f"{node.kind.upper()} OUTER JOIN"
    return (
        f"SELECT {', '.join(columns) or '1 AS `_`'}\nFROM {left} AS l\n{kind} {right} AS r\n  ON {node.condition.text}"
    )


def probe(node: Probe, asking: str, index: str, since: str | None) -> str:
    """Each row looks its key up in the index and, where there is one, among what came since; it has one match at most.

    The columns of the index have names of their own, so that the side sent to every task is the index as it is kept.
    """
    lookup = node.lookup
    at = {f.name: quote(i.name) for f, i in zip(lookup.looked_up.schema, node.index.schema, strict=True)}

    def found(name: str) -> str:
        key = at[lookup.pairs[0].column]
        both = f"IF({key} IS NOT NULL, {at[name]}, r.{quote(name)})"
        return f"{at[name] if since is None else both} AS {quote(name)}"

    columns = [f"a.{quote(f.name)}" if f.name in node.asking.names else found(f.name) for f in node.schema]
    by_key = " AND ".join(f"{p.asks.text} = {at[p.column]}" for p in lookup.pairs)
    kind, hint = ("JOIN", "BROADCAST(i)") if since is None else ("LEFT JOIN", "BROADCAST(i), BROADCAST(r)")
    listed = _listed(columns, node.weighted)
    text = f"SELECT /*+ {hint} */ {listed}\nFROM {asking} AS a\n{kind} {index} AS i\n  ON {by_key}"
    if since is not None:
        later = " AND ".join(f"{p.asks.text} = r.{quote(p.column)}" for p in lookup.pairs)
        text += f"\nLEFT JOIN {since} AS r\n  ON {later}"
    there = quote(lookup.pairs[0].column)
    return f"SELECT * FROM (\n{text}) WHERE {' AND '.join([f'{there} IS NOT NULL', *_beside_the_key(lookup)])}"


def _beside_the_key(lookup: LookupJoin) -> list[str]:
    """The terms of a lookup's condition beside those that name the key, none of which looks like one.

    Counter-example: Spark makes `=` and `<=>` a part of the key that it hashes by wherever it can, and takes the parts
    in the order of the text. The table that is kept is hashed by the key alone, in the order of the pairs.
    """
    named = [frozenset((p.asks.text, quote(p.column))) for p in lookup.pairs]
    terms = lookup.condition.conjuncts() if lookup.condition is not None else ()
    found = []
    for term in terms:
        if term.op not in ("=", "<=>") or term.args[0].dtype in UNORDERED:
            found.append(term.text)
        elif term.op == "<=>" or frozenset(arg.text for arg in term.args) not in named:
            one, two = (arg.text for arg in term.args)
            equal = f"({one} >= {two} AND {one} <= {two})"
            found.append(equal if term.op == "=" else f"(({one} IS NULL AND {two} IS NULL) OR {equal})")
    return found


def generate(node: Generate, child: str) -> str:
    """A lateral view over the input."""
    names = [f"x{i}" for i in range(len(node.fields))]
    columns = [f"g.{quote(name)}" for name in node.kept]
    columns += [f"x.{x} AS {quote(f.name)}" for x, f in zip(names, node.fields, strict=True)]
    outer = "OUTER " if node.outer else ""
    source = f"{child} AS g LATERAL VIEW {outer}{node.generator.text} x AS {', '.join(names)}"
    return f"SELECT {_listed(columns, node.weighted)} FROM {source}"


def values(node: Values) -> str:
    """Constant rows, each cell in its column's type; no rows at all is one that a false condition removes."""
    if not node.fields:
        return f"SELECT EXPLODE(ARRAY_REPEAT(1, {len(node.rows)})) AS `_`"
    names = [quote(f.name) for f in node.fields]
    if not node.rows:
        return f"SELECT {', '.join(f'CAST(NULL AS {f.dtype}) AS {quote(f.name)}' for f in node.fields)} WHERE FALSE"
    rows = ", ".join(f"({', '.join(cell.text for cell in row)})" for row in node.rows)
    columns = [f"CAST({name} AS {f.dtype}) AS {name}" for name, f in zip(names, node.fields, strict=True)]
    return f"SELECT {', '.join(columns)} FROM VALUES {rows} AS v({', '.join(names)})"
