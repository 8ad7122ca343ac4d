"""The rules of the house: what is public, what every file carries."""

import ast
import importlib
import inspect
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from takeback import errors
from takeback.ledger.log import events

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "takeback"
MODULES = sorted(PACKAGE.rglob("*.py"))

PUBLIC = (
    "Author",
    "BlockedError",
    "BusyError",
    "CaptureError",
    "Change",
    "Checkpoint",
    "Cleanup",
    "ConflictError",
    "DamagedStoreError",
    "DecisionNeededError",
    "GitState",
    "GuardRefused",
    "KeptState",
    "LeftOut",
    "Lesson",
    "Log",
    "NoLongerKeptError",
    "NothingToTakeBackError",
    "ParticipantError",
    "PausedError",
    "Plan",
    "PlanStep",
    "PlannedChange",
    "Project",
    "ProjectIdentityError",
    "RecordedCheckpoint",
    "RecordedPlan",
    "RecordedPlanStep",
    "RecordedRestore",
    "RecordedSession",
    "RecordedStep",
    "RecordedTurn",
    "RefusedError",
    "Relapse",
    "Remark",
    "Report",
    "RolledBack",
    "Session",
    "StalePlanError",
    "Status",
    "Step",
    "TakebackError",
    "TargetError",
    "Turn",
    "UnfinishedError",
    "UnknownReferenceError",
    "UnsafeRootError",
    "UnsafeStoreError",
    "Usage",
    "UsageError",
    "Verification",
    "WorkPlan",
    "inverse",
    "memory",
    "open",
    "tool",
)


def committed() -> Iterator[tuple[str, str]]:
    """Name and text of every text file that is, or is about to be, committed."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("what is committed can only be told in a git checkout")
    listing = subprocess.run(
        [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in sorted(filter(None, listing.stdout.decode().split("\0"))):
        path = ROOT / name
        if path.is_file() and not path.is_symlink() and b"\0" not in (data := path.read_bytes()):
            yield name, data.decode()


def found_in_committed(pattern: str) -> list[str]:
    """Where in the committed text a pattern occurs."""
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for name, text in committed()
        for match in re.finditer(pattern, text)
    ]


def test_public_names_are_frozen() -> None:
    """What `takeback` offers changes only together with this list."""
    assert tuple(takeback.__all__) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_exist(name: str) -> None:
    """Every public name can be had from the package, and says what it is."""
    assert inspect.getdoc(getattr(takeback, name))


def test_modules_say_what_they_are() -> None:
    """Every module, of the package and beside it, begins with a docstring."""
    sources = [*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]
    silent = [path for path in sources if not ast.get_docstring(ast.parse(path.read_text()))]
    assert [str(path.relative_to(ROOT)) for path in silent] == []


def test_tests_say_what_should_hold() -> None:
    """Every test has a docstring."""
    silent = [
        f"{path.name}: {node.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert silent == []


def test_nothing_is_left_for_later() -> None:
    """Notes of unfinished work belong in the tracker, not in files."""
    # Put together, so that this line is not itself such a note.
    assert found_in_committed(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b") == []


def test_no_file_knows_this_machine() -> None:
    """No committed file names a folder of the machine it was written on."""
    named = r"/root/helper\b"  # what Codex calls a sub-agent
    assert found_in_committed(rf"(?<![\w.$}}/-])(?!{named})/(?:home|root|work)/\w+") == []


def test_one_module_starts_programs() -> None:
    """`disk/programs` starts programs; `__main__` starts itself again, isolated."""
    starts = re.compile(r"\bsubprocess\b|\bos\.(?:exec|spawn|posix_spawn|popen|system)\w*")
    found = {str(path.relative_to(PACKAGE)) for path in MODULES if starts.search(path.read_text())}
    assert found == {"__main__.py", "disk/programs.py"}


def test_launchers_can_be_run() -> None:
    """The commands that the README names are executable."""
    modes = {
        name: (ROOT / name).stat().st_mode & 0o111 for name in ("takeback", "check", ".ci/run")
    }
    assert modes == dict.fromkeys(modes, 0o111)


def drawn_errors() -> dict[str, tuple[str, int]]:
    """Parent and exit code of each error class in the tree that the docstring draws."""
    drawn: dict[str, tuple[str, int]] = {}
    above = {0: "Exception"}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"([ │├└─]*)(\w+Error|RolledBack|GuardRefused) +(\d) ", line):
            depth = len(match[1]) // 4
            above[depth] = match[2]
            drawn[match[2]] = (above[depth - 1], int(match[3]))
    return drawn


def test_the_error_tree_is_drawn_as_it_is() -> None:
    """The picture in `errors.py` shows every error class, its parent and its exit code."""
    actual = {
        name: (kind.__base__.__name__, kind.exit_code)
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.TakebackError) and kind.__base__
    }
    assert drawn_errors() == actual


def test_every_module_can_be_imported() -> None:
    """No module needs another to be imported before it, or anything that is not installed."""
    for path in MODULES:
        if path.name == "sdk1.py":
            continue  # for the other major version of the SDK: tests/mcp/test_servers.py
        dotted = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        importlib.import_module(dotted.removesuffix(".__init__"))


def test_every_kind_of_event_is_known() -> None:
    """A kind that is missing from the list would be taken for one of a newer program."""
    public = [value for name, value in vars(events).items() if re.match("[A-Z]", name)]
    kinds = {value for value in public if isinstance(value, str)}
    assert kinds == set(events.KINDS)


def test_every_kind_beside_files_is_followed() -> None:
    """The module that is named with a kind is the one whose tables follow it."""
    modules = set(events.KINDS.values()) - {""}
    followed = {
        kind: module
        for module in modules
        for kind in importlib.import_module(f"takeback.ledger.beyond.{module}").FOLLOW
    }
    assert followed == {kind: module for kind, module in events.KINDS.items() if module}
