"""The shape of the house: small modules, small rooms, SQL in one room, one module that prints.

Lists of exceptions may only shrink: whoever mends one deletes its line.
"""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "takeback"
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

LONGEST = 600
MOST = 11
REGISTRIES = (
    "takeback.agents.dialects",
    "takeback.adapters",
    "takeback.cli.commands",
)
"""One file per agent, adapter or command: as many as there are."""

CROWDED = {
    "takeback": 13,
    "takeback.upkeep": 12,
}
"""Rooms with more files than that, and how many each may have."""

SQL = re.compile(
    r"^\s*(?:SELECT|INSERT|REPLACE|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|VACUUM|ATTACH|SAVEPOINT)\b"
    r"|^\s*(?:BEGIN IMMEDIATE|COMMIT|ROLLBACK)\b"
    r"|\bWHERE \w+ (?:=|<|>|IN\b|IS\b)"
)
INSIDE = re.compile(
    r"(?:ledger|store|project)\._(?:db|reader|events|transaction)\b|\.rows\(|\bdatabase\.(?:connect|glance)"
)
"""What only the ledger may ask for: its connection, its rows, its transactions."""

OTHERS_DATABASES = tuple(
    f"takeback.participants.{name}" for name in ("postgres.", "savepoints", "sqlite.")
)
"""What speaks to databases of the user, and never to the ledger."""

PRINTING = {
    "takeback.cli.app",  # flushes both streams before it ends
    "takeback.cli.screen",
    "takeback.hooks.hook",  # the answer to the agent
}

BESIDE_ROOMS = {"clients", "house", "packaging", "peers", "project", "promises", "support"}
ROOMS_TO_COME: set[str] = set()


def strings(path: Path) -> list[str]:
    """The strings of a module that are no docstrings."""
    tree = ast.parse(path.read_text())
    spoken = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in spoken
    ]


def test_modules_are_small() -> None:
    """No module is longer than 600 lines."""
    lengths = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_functions_are_small() -> None:
    """Nineteen of twenty functions have at most 40 lines."""
    trees = [ast.parse(path.read_text()) for path in MODULES.values()]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    lengths = sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in nodes
        if isinstance(node, ast.FunctionDef)
    )
    assert lengths[len(lengths) * 95 // 100] <= 40


def test_rooms_are_small() -> None:
    """No folder holds more modules than one can keep in mind."""
    rooms = Counter(name.rpartition(".")[0] for name in MODULES if not name.endswith("__init__"))
    crowded = {
        room: number
        for room, number in rooms.items()
        if room not in REGISTRIES and number > CROWDED.get(room, MOST)
    }
    assert crowded == {}


def test_sql_is_in_the_ledger() -> None:
    """SQL is written in one room, and no other asks for rows, a transaction or the connection."""
    outside = {
        name: path for name, path in MODULES.items() if not name.startswith("takeback.ledger.")
    }
    ours = {name: path for name, path in outside.items() if not name.startswith(OTHERS_DATABASES)}
    found = [name for name, path in ours.items() if any(map(SQL.search, strings(path)))]
    assert found == [], "SQL belongs into the ledger"
    asking = [name for name, path in outside.items() if INSIDE.search(path.read_text())]
    assert asking == [], "ask the ledger by a named query"


def test_one_module_prints() -> None:
    """One module of the command line writes to the terminal."""
    writes = re.compile(r"\bprint\(|\bsys\.std(?:out|err)\b")
    found = {name for name, path in MODULES.items() if writes.search(path.read_text())}
    assert found == PRINTING


def test_tests_mirror_the_rooms() -> None:
    """A folder of tests is named after a room, or is one of the few beside them."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    tests = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert tests - rooms - BESIDE_ROOMS - ROOMS_TO_COME == set()
    assert [path.name for path in (ROOT / "tests").glob("test_*.py")] == []
