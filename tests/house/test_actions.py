"""Rooms say what to do next as codes and facts; each door words them as something to run."""

import ast
import functools
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from takeback import errors
from takeback.cli.text import action_text

PACKAGE = Path(__file__).parents[2] / "src" / "takeback"
DOORS = ("cli/", "hooks/", "mcp/", "errors.py", "__main__.py")
COMMAND = re.compile(r"`takeback |takeback [a-z]+ --|(^|\W)-C DIR|`--[a-z]")


@functools.cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """The modules of the package, by their place in it."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return tuple((str(path.relative_to(PACKAGE)), ast.parse(path.read_text())) for path in paths)


def actions() -> Iterator[tuple[str, set[str]]]:
    """Each `Action(code, fact=…)` in the code: its code, and the names of its facts."""
    for name, module in modules():
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Action":
                code = node.args[0]
                assert isinstance(code, ast.Constant), f"{name}: the code is not written out"
                yield str(code.value), {str(each.arg) for each in node.keywords}


def test_each_action_has_words_in_both_doors() -> None:
    """Each code is worded for a shell and for Python, and no words are left without a code."""
    used = {code for code, _ in actions()}
    assert used == set(action_text.WORDS) == set(errors.IN_PYTHON)


def test_words_name_only_facts_that_are_there() -> None:
    """Whatever a door's words have a place for is given with the code."""
    for code, facts in actions():
        for words in (action_text.WORDS[code], errors.IN_PYTHON[code]):
            named = {name for _, name, _, _ in string.Formatter().parse(words) if name}
            assert named <= facts, f"{code}: {words}"


def test_no_room_speaks_of_commands() -> None:
    """Below the doors no string holds a command line: not everybody is in a shell."""
    spoken = []
    for name, module in modules():
        if name.startswith(DOORS):
            continue
        docs = {
            id(node.value)
            for node in ast.walk(module)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        spoken += [
            f"{name}:{node.lineno}: {node.value}"
            for node in ast.walk(module)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            if id(node) not in docs and COMMAND.search(node.value)
        ]
    assert spoken == []


def test_every_error_of_a_command_has_a_hint() -> None:
    """Whoever meets an error at the command line is told what to do next."""
    known = {name for name in dir(errors) if name.endswith("Error")} | {"CannotStartError"}
    bare = [
        f"{name}:{node.lineno}"
        for name, module in modules()
        if name.startswith("cli/")
        for node in ast.walk(module)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        if getattr(node.exc.func, "id", "") in known
        if "hint" not in {each.arg for each in node.exc.keywords}
    ]
    assert bare == []


def test_a_hint_in_python_is_python(tree: Path, home: Path) -> None:
    """What an error advises can be called, and works."""
    with takeback.open(tree, home=home) as project:
        with pytest.raises(takeback.NothingToTakeBackError) as nothing:
            project.undo()
        assert "`project.log()`" in nothing.value.hint
        assert "`takeback" not in nothing.value.hint
        (tree / "a.txt").write_text("one\n")
        with project.session(agent="test") as session, session.turn("Write a file") as turn:
            (tree / "a.txt").write_text("two\n")
        project.undo()
        with pytest.raises(takeback.NothingToTakeBackError) as undone:
            project.undo(turn)
        advised = re.search(r"`(project\.redo\('\w+'\))`", undone.value.hint)
        assert advised is not None
        eval(advised[1], {"project": project})
    assert (tree / "a.txt").read_text() == "two\n"
