"""Counts the house: modules, lines, rooms, SQL, and what three commands walk through.

    .venv/bin/python -I scripts/house_figures.py [CHECKOUT]

A module is entered if one of its functions runs; what an import itself runs (class bodies, tables
that are built) does not count. The walks are an undo of one file, a checkpoint of
one changed file, and a prompt told by a hook without the helper, each in a process of its own.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SQL = re.compile(r'"\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|WITH RECURSIVE) ')
WALK = """
import json, os, sys
sys.path.insert(0, {source!r})
sys.path += {packages!r}
import takeback.cli.app
entered = set()

def is_imported(frame):
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>" and name.startswith("takeback"):
            return True
        frame = frame.f_back
    return False

def note(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    if event == "call" and name.startswith("takeback") and not is_imported(frame):
        entered.add((name, frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname")
                     else frame.f_code.co_name))

def done():
    modules = {{name for name, _ in entered}}
    with open({report!r}, "w") as file:
        json.dump([len(modules), len(entered), sorted(modules)], file)

real = os._exit
os._exit = lambda code: (done(), real(code))
sys.setprofile(note)
try:
    takeback.cli.app.main({words!r})
finally:
    sys.setprofile(None)
    done()
"""


def walk(package: Path, words: list[str], home: Path, payload: str = "") -> tuple[int, int]:
    """How many modules and functions a command enters."""
    report = home.parent / "report.json"
    report.unlink(missing_ok=True)
    code = WALK.format(
        source=str(package.parent),
        packages=[path for path in sys.path if path.endswith("site-packages")],
        report=str(report),
        words=words,
    )
    env = {"HOME": str(home.parent), "TAKEBACK_HOME": str(home), "TAKEBACK_HELPER": "off"}
    env["PATH"] = os.environ["PATH"]
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-I", "-c", code], input=payload, env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if not report.exists():
        raise SystemExit(f"{words}: {done.stdout}{done.stderr}")
    modules, functions, _ = json.loads(report.read_text())
    return modules, functions


def walks(package: Path) -> dict[str, tuple[int, int]]:
    """The three walks, in a throw-away project."""
    with tempfile.TemporaryDirectory() as folder:
        tree, home = Path(folder, "tree"), Path(folder, "home")
        tree.mkdir()
        (tree / "a.py").write_text("one\n")
        walk(package, ["-C", str(tree), "checkpoint"], home)
        (tree / "a.py").write_text("two\n")
        found = {"checkpoint": walk(package, ["-C", str(tree), "checkpoint"], home)}
        command = ["sh", "-c", f"echo three > {tree}/a.py"]
        walk(package, ["-C", str(tree), "run", "--", *command], home)
        found["undo"] = walk(package, ["-C", str(tree), "undo"], home)
        payload = {
            "session_id": "b6e6a3d2-6f3c-4f6e-9d59-5f6f3a0c7c11",
            "transcript_path": str(tree / "none.jsonl"),
            "cwd": str(tree),
            "hook_event_name": "UserPromptSubmit",
            "prompt": "do it",
        }
        (tree / "a.py").write_text("four\n")
        found["hook"] = walk(package, ["hook"], home, json.dumps(payload))
    return found


def main() -> None:
    """Print all figures."""
    checkout = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    package = checkout / "src" / "takeback"
    modules = sorted(package.rglob("*.py"))
    rooms = Counter(path.parent.relative_to(package).as_posix() for path in modules)
    lines = Counter({path: len(path.read_text().splitlines()) for path in modules})
    holds_sql = [path for path in modules if SQL.search(path.read_text())]
    print(f"modules  {len(modules)}")
    print(f"lines    {sum(lines.values()):,}")
    print(f"longest  {max(lines.values())}")
    print("rooms    " + ", ".join(f"{room} {count}" for room, count in sorted(rooms.items())))
    where = sorted({path.parent.relative_to(package).as_posix() for path in holds_sql})
    print(f"SQL      in {len(holds_sql)} modules of {', '.join(where)}")
    for name, (entered, functions) in walks(package).items():
        print(f"{name:10} enters {entered} modules, {functions:,} functions")


if __name__ == "__main__":
    main()
