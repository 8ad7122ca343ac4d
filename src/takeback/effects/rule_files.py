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


class RuleFiles(Value):
    """The rules of all files, and what is wrong in them."""

    rules: Rules
    problems: "tuple[Reason, ...]" = ()
    paths: "tuple[bytes, ...]" = ()


def read(home: "Home", project: "str | None", root: bytes = b"") -> RuleFiles:
    """The rules that count for a project; those of the store come before the user's."""
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
        tree, lighter = guard_rules.only_graver(found)
        problems += lighter
    read_from = tuple(path for _, path in files if homes.size_of(path))
    return RuleFiles(Rules(tuple(rules), tuple(trusted), tree), tuple(problems), read_from)


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
