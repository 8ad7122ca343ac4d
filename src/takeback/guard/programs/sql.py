"""What SQL statements do, read by sqlglot; what it cannot read counts as opaque."""

import re

from takeback.guard.findings import UNKNOWN
from takeback.model.beyond.effects import DESTRUCTIVE, LOCAL, OPAQUE, READ, gravity

_READS = frozenset("select show describe explain values with table desc pragma use".split())
_LOSES = frozenset("delete update drop truncate alter replace merge".split())
_ADDS = frozenset("insert create grant comment copy analyze vacuum reindex refresh call do".split())
_FLOW = frozenset("begin start commit rollback savepoint release end set reset abort".split())
_WRITES = re.compile(
    r"(?i)\b(?:insert|update|delete|drop|truncate|alter|create|replace|merge|grant|revoke|into|call|do"
    r"|exec|execute|copy|pg_terminate_backend|pg_read_file|lo_unlink|dblink\w*|setval|nextval)\b"
)

_DYNAMIC = re.compile(
    r"(?is)\bdo\b.*(?:\$\w*\$|').*\bexecute\b(?!\s+(?:function|procedure)\b).*(?:\|\||format\s*\(|chr\s*\()"
    r"|\bprepare\s+\w+\s+from\s+(?:@|concat)|\bexec(?:ute)?\s*\(\s*@|\bexecute\s+immediate\b"
    r"|\bsp_executesql\b|\\gexec\b"
)
"""Statements that are put together while they run."""


def classify(text: str, dialect: str) -> "tuple[str, str]":
    """The gravest class of some statements, and the verb that decided: on this machine."""
    # MySQL carries out what stands in a comment of this kind.
    plain = re.sub(r"/\*!\d*(.*?)\*/", r" \1 ", _without_meta(text), flags=re.DOTALL)
    if _DYNAMIC.search(text) or not plain.strip():
        return (OPAQUE, "unparsed") if plain.strip() else (READ, "read")
    first = _verb(plain)
    if first in _LOSES:
        return DESTRUCTIVE, first  # nothing that follows can be graver
    is_shown = first in {"show", "describe", "desc", "explain"} and ";" not in plain.strip(" ;\n")
    if is_shown and not re.search(r"(?i)\banalyze\b", plain):
        return READ, first
    if first in _READS and not _WRITES.search(plain) and first != "with":
        return READ, first
    import logging

    import sqlglot
    from sqlglot import errors

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # what it says is for programmers

    try:
        parsed = sqlglot.parse(plain.replace(UNKNOWN, "unknown_"), read=dialect)
    except (errors.SqlglotError, RecursionError, ValueError, AssertionError):
        return _by_words(plain)
    found = [_of_tree(each) for each in parsed if each is not None]
    return max(found, key=lambda each: gravity(each[0]), default=(READ, "read"))


def _without_meta(text: str) -> str:
    r"""A text without the commands of psql and sqlite, which begin with `\\` or `.`."""
    lines = [line for line in text.split("\n") if not line.lstrip().startswith(("\\", "."))]
    return re.sub(r"\\(?:G|gx?|gset|watch)\b", ";", "\n".join(lines))


def _verb(text: str) -> str:
    found = re.match(r"(?:\s|--[^\n]*\n|/\*.*?\*/|[(;])*([A-Za-z_]+)", text, re.DOTALL)
    return found[1].lower() if found else ""


def _of_tree(tree: object) -> "tuple[str, str]":
    from sqlglot import exp

    if not isinstance(tree, exp.Expression):
        return OPAQUE, "unparsed"
    gravest = (READ, "read")
    losing = (exp.Delete, exp.Update, exp.Drop, exp.TruncateTable, exp.Alter, exp.Merge)
    for node in tree.walk():
        here = gravest
        if isinstance(node, losing):
            here = (DESTRUCTIVE, node.key)
        elif isinstance(node, exp.Insert | exp.Create | exp.Into):
            replaces = isinstance(node, exp.Create) and bool(node.args.get("replace"))
            here = (DESTRUCTIVE if replaces else LOCAL, node.key)
        elif isinstance(node, exp.Command):
            here = _by_words(f"{node.name} {node.expression}")
        gravest = max(gravest, here, key=lambda each: gravity(each[0]))
    if gravest[0] == READ and _WRITES.search(tree.sql()) and not isinstance(tree, exp.Select):
        return _by_words(tree.sql())
    return gravest


def _by_words(text: str) -> "tuple[str, str]":
    """A text that cannot be parsed, by the verbs that begin its statements; else opaque."""
    gravest = (READ, "read")
    for statement in text.split(";"):
        verb = _verb(statement)
        if verb in _LOSES:
            here = (DESTRUCTIVE, verb)
        elif verb in _ADDS:
            here = (LOCAL, verb)
        elif verb in _FLOW or not verb or (verb in _READS and not _WRITES.search(statement)):
            here = (READ, verb or "read")
        elif verb in _READS:
            here = (DESTRUCTIVE, verb)
        else:
            here = (OPAQUE, "unparsed")
        gravest = max(gravest, here, key=lambda each: gravity(each[0]))
    return gravest
