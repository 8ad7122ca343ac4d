"""The page for integrators names all that is public, and the design's snippet runs."""

import os
import re
from pathlib import Path

import takeback
from pages import printed
from takeback.arguments import PUBLIC

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "python.md"

SNIPPET = """
import takeback

project = takeback.open(".")                          # makes the store on first use; never touches .git
with project.session(agent="my-agent") as session:
    with session.turn("Add a login form") as turn:    # checkpoints before and after, even if it raises
        with turn.step("write_file", {"path": "login.py"}):
            work()                                    # your agent works

plan = project.plan_undo(turn)                        # a value; nothing is written
for change in plan.changes: print(change.verb, change.path)
for conflict in plan.conflicts: print("yours:", conflict.path)
report = project.apply(plan, because="login broke the tests")
project.redo()
project.undo(); project.redo()
project.rollback("@~3", paths=["src/auth"])
for checkpoint in project.checkpoints(session): print(checkpoint.session == session.id)
project.gc(max_age="30d")
project.extract(turn.before, "../then")
"""  # noqa: E501 -- as the design shows it


def test_the_page_names_all_that_is_public() -> None:
    """Each verb of a project, and each error, is on the page."""
    page = PAGE.read_text()
    assert [name for name in PUBLIC if not re.search(rf"[`.]{name}\b", page)] == []
    errors = [name for name in takeback.__all__ if name.endswith("Error")]
    assert [name for name in errors if name not in page] == []


def test_the_snippet_of_the_design_runs(tree: Path, home: Path) -> None:
    """What the design shows of Python, as far as it is built, works as it is written there."""
    (tree / "src/auth").mkdir(parents=True)
    (tree / "src/auth/login.py").write_text("old\n")
    before = """
import os, takeback
with takeback.open(".") as project, project.session(agent="earlier") as session:
    for number in range(3):
        with session.turn(f"Turn {number}"):
            with open("src/auth/login.py", "w") as file: file.write(f"{number}\\n")
"""
    printed(before, tree, home)
    work = 'def work():\n    with open("login.py", "w") as file: file.write("new\\n")\n'
    said = printed(work + SNIPPET, tree, home)
    assert said.splitlines()[0] == "delete login.py"
    assert set(said.splitlines()[1:]) == {"True"}
    assert (tree / "src/auth/login.py").read_text() == "0\n"
    assert (tree / "login.py").read_text() == "new\n"
    assert sorted(os.listdir(tree.parent / "then")) == ["src"]
