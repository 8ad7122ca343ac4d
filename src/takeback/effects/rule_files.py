"""Reads the rules of the guard: `guard.toml` of the project's store and of the user.

A third file, `.takeback/guard.toml` in the tree, may only make calls graver. What it would make
lighter is ignored and reported, for an agent that edits files could have written it.
"""

from takeback.disk import home as homes
from takeback.errors import UsageError
from takeback.guard import rules as guard_rules
from takeback.guard.rules import Rules
from takeback.model.reasons import Reason
from takeback.model.results import PROJECT, USER
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.disk.home import Home

NAME = b"guard.toml"
IN_TREE = b".takeback/guard.toml"
TREE = "tree"
MOST_IN_TREE = 200
"""An agent may write that file; more rules would only make each call slow."""


class RuleFiles(Value):
    """The rules of all files, and what is wrong in them."""

    rules: Rules
    problems: "tuple[Reason, ...]" = ()
    paths: "tuple[bytes, ...]" = ()


def read(
    home: "Home", project: "str | None", root: bytes = b"", *, reports: bool = False
) -> RuleFiles:
    """The rules that count for a project; those of the store come before the user's.

    `reports` also looks for rules of the tree that would make something lighter.
    """
    files = [(USER, home.path + b"/" + NAME)]
    if project is not None:
        files.insert(0, (PROJECT, home.store_path(project) + b"/" + NAME))
    rules: list[guard_rules.Rule] = []
    trusted: list[str] = []
    problems: list[Reason] = []
    for origin, path in files:
        found = _parsed(path, origin, problems)
        rules += found.rules
        trusted += found.trusted
    tree: tuple[guard_rules.Rule, ...] = ()
    if root:
        files.append((TREE, root + b"/" + IN_TREE))
        found = _parsed(files[-1][1], TREE, problems)
        tree = found.rules[:MOST_IN_TREE]
        problems += guard_rules.lighter(found) if reports else ()
    read_from = tuple(path for _, path in files if homes.size_of(path))
    made = Rules(tuple(rules), tuple(trusted), tree, _held(home, project))
    return RuleFiles(made, tuple(problems), read_from)


def _held(home: "Home", project: "str | None") -> "tuple[str, ...]":
    """The databases that participants of the settings hold: a path, or `host/name`."""
    files = [home.path + b"/config.toml"]
    if project is not None:
        files.append(home.store_path(project) + b"/config.toml")
    found: list[str] = []
    for path in files:
        try:
            tables = homes.settings_in(path, "participants")
        except (UsageError, OSError):
            continue  # `config` and `doctor` report settings that cannot be read
        found += [_held_by(table) for table in tables.values() if isinstance(table, dict)]
    return tuple(filter(None, found))


def _held_by(table: "dict[str, object]") -> str:
    import re

    if table.get("type") == "sqlite":
        return str(table.get("path") or "")
    url = str(table.get("url") or "")
    if table.get("type") != "postgres" or not url:
        return ""
    host = re.search(r"://(?:[^@/]*@)?([^/:?]*)", url) or re.search(r"\bhost=(\S+)", url)
    name = re.search(r"://[^/]*/([^?]+)", url) or re.search(r"\bdbname=(\S+)", url)
    at = host[1] if host is not None else ""
    is_here = at in {"", "127.0.0.1", "::1"} or at.startswith("/")
    return f"{'localhost' if is_here else at}/{name[1]}" if name is not None else ""


def _parsed(path: bytes, origin: str, problems: "list[Reason]") -> Rules:
    try:
        tables = homes.tables_in(path)
    except UsageError as problem:
        problems.append(Reason("guard-unread", origin=origin, why=str(problem)))
        return guard_rules.NONE
    except OSError as problem:
        problems.append(Reason("guard-unread", origin=origin, why=str(problem.strerror)))
        return guard_rules.NONE
    found, wrong = guard_rules.parse(tables, origin)
    problems += wrong
    return found
