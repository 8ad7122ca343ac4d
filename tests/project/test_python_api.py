"""What a Python program sees of Takeback: names, reprs, checkpoints of a session."""

import json
import os
import sys
from pathlib import Path

import pytest

import program
import takeback
from takeback.testing import Sandbox

PUBLIC = """
    apply checkpoint checkpoints close compare continue_forgetting effects extract forget gc
    git_dir id keep kept lessons log on_restore origin plan_redo plan_rollback plan_undo read
    rebuild recorded recovered redo register release rescued retry_participants rollback root
    session sessions status turn undo usage usage_by verify
""".split()


@pytest.fixture
def project(tree: Path, home: Path) -> takeback.Project:
    """A project with one file."""
    (tree / "a.txt").write_text("one\n")
    return takeback.open(tree, home=home)


def test_dir_lists_what_is_public(project: takeback.Project) -> None:
    """Neither a project nor the package shows how it works inside."""
    assert [name for name in dir(project) if not name.startswith("__")] == PUBLIC
    assert all(hasattr(project, name) for name in PUBLIC)
    shown = [name for name in dir(takeback) if not name.startswith("__")]
    assert shown == sorted(takeback.__all__)
    assert "__version__" in dir(takeback)


def test_reprs_are_short_and_say_what_it_is(project: takeback.Project) -> None:
    """Whatever the API returns shows itself by its id, or by the fields that are not usual."""
    with (
        project.session("test") as session,
        session.turn("Edit") as turn,
        turn.step("bash", {"command": "true"}) as step,
    ):
        Path(os.fsdecode(project.root), "a.txt").write_text("two\n")
    root = os.fsdecode(project.root)
    assert repr(project) == f"<takeback.Project {root!r} {project.id}>"
    assert repr(session) == f"<takeback.Session {session.id}>"
    assert repr(turn) == f"<takeback.Turn {turn.id}>"
    assert repr(step) == f"<takeback.Step {step.id}>"
    (change,) = turn.recorded().changes
    assert repr(change.author).startswith("Author(who='step', session=")
    assert "sessions" not in repr(change.author)
    plan = project.plan_undo()
    assert repr(plan.replace(changes=())).startswith("Plan(verb='undo', base='")
    assert "doubts" not in repr(plan)
    assert repr(project.gc(dry_run=True)).startswith("Cleanup(dry_run=True")
    values = [project.status(), project.log(), project.usage(), project.verify(), *project.kept()]
    assert all(repr(each).startswith(type(each).__name__ + "(") for each in values)


def test_checkpoints_of_a_session_are_listed(project: takeback.Project, tree: Path) -> None:
    """Those that it took or found there, newest first; not those of others."""
    project.checkpoint("before")
    with project.session("one") as one, one.turn("Edit") as turn:
        (tree / "a.txt").write_text("two\n")
    (tree / "a.txt").write_text("mine\n")
    last = project.checkpoint("mine")
    with project.session("two") as two, two.turn("Look"):
        pass
    assert [each.id for each in project.checkpoints(one)] == [turn.after, turn.before]
    assert [each.turn for each in project.checkpoints(one.id)] == [turn.id, turn.id]
    assert {each.session for each in project.checkpoints(one)} == {one.id}
    assert [each.id for each in project.checkpoints(two)] == [last.id]
    assert [each.id for each in project.checkpoints()] == [last.id, turn.after, turn.before]


def test_a_checkpoint_inside_a_turn_carries_it(project: takeback.Project, tree: Path) -> None:
    """Made by the process that began the turn: session, turn and, in a step, the step."""
    with project.session("test") as session:
        outside = project.checkpoint("outside")
        with session.turn("Edit") as turn:
            (tree / "a.txt").write_text("two\n")
            first = project.checkpoint("in the turn")
            with turn.step("write_file", {"path": "a.txt"}) as step:
                (tree / "a.txt").write_text("three\n")
                second = project.checkpoint("in the step", request="r")
            again = project.checkpoint("in the step", request="r")
    after = project.checkpoint("after")
    assert [(x.session, x.turn, x.step) for x in (outside, first, second, again, after)] == [
        (None, None, None),
        (session.id, turn.id, None),
        (session.id, turn.id, step.id),
        (session.id, turn.id, step.id),
        (None, None, None),
    ]
    listed = {each.id: each for each in project.checkpoints()}
    assert (listed[second.id].turn, listed[second.id].step) == (turn.id, step.id)


def test_a_checkpoint_of_the_agents_shell_carries_its_step() -> None:
    """`takeback checkpoint`, run by an agent as a tool, is part of the turn; yours is not."""
    with Sandbox() as box:
        common = {"session_id": "S1", "cwd": box.tree, "prompt_id": "P1"}
        call = {"tool_name": "Bash", "tool_use_id": "T1", "tool_input": {"command": "takeback"}}
        box.play({**common, "hook_event_name": "UserPromptSubmit", "prompt": "test it"})
        yours = checkpoint(box, "yours")
        box.play({**common, **call, "hook_event_name": "PreToolUse"})
        box.write("a.txt", b"new")
        made = checkpoint(box, "tests green")
        box.play({**common, **call, "hook_event_name": "PostToolUse", "tool_response": ""})
        box.play({**common, "hook_event_name": "Stop"})
        (turn,) = box.project.log().turns
        (step,) = box.project.turn(turn.id).steps
    assert (made["session"], made["turn"], made["step"]) == (turn.session, turn.id, step.id)
    assert (yours["session"], yours["turn"], yours["step"]) == (None, None, None)


def test_a_checkpoint_inside_takeback_run_carries_its_turn() -> None:
    """The command is the turn, and what it calls is inside of it."""
    with Sandbox() as box:
        box.write("a.txt", b"old")
        inner = f'echo new > a.txt; "{sys.executable}" -I -m takeback checkpoint -m half --json'
        done = takeback_in(box, "run", "--", "sh", "-c", inner)
        made = json.loads(done)
        (turn,) = box.project.log().turns
        (step,) = box.project.turn(turn.id).steps
    assert (made["session"], made["turn"], made["step"]) == (turn.session, turn.id, step.id)


def takeback_in(box: Sandbox, *words: str) -> str:
    """What a command prints in the sandbox."""
    done = program.text(words, Path(box.tree), {**os.environ, "TAKEBACK_HOME": box.home})
    assert done.returncode == 0, done.stderr
    return done.stdout


def checkpoint(box: Sandbox, label: str) -> dict[str, object]:
    """A checkpoint from the command line, as JSON."""
    made: dict[str, object] = json.loads(takeback_in(box, "checkpoint", "-m", label, "--json"))
    return made


def test_paths_are_text_and_name_the_file(project: takeback.Project, tree: Path) -> None:
    """Whatever bytes a name has: text to print, and `os.fsencode` gives the name on disk."""
    odd = os.fsdecode(b"caf\xe9.txt")
    with project.session("test") as session, session.turn("Edit") as turn:
        (tree / odd).write_text("new\n")
        (tree / "pipe").mkdir()
        os.mkfifo(tree / "pipe" / "in")
    (change,) = [each for each in turn.recorded().changes if each.verb == "create"]
    assert change.path == odd
    assert os.fsencode(change.path) == change.raw_path == b"caf\xe9.txt"
    assert f"path={odd!r}" in repr(change)
    assert {each.path for each in turn.recorded().left_out} == {"pipe/in"}
    plan = project.plan_undo()
    assert [each.path for each in plan.changes] == [odd]
    assert {each.path for each in plan.kept} == {"pipe"}
    assert (project.root, project.status().root) == (str(tree), str(tree))
    assert Path(project.git_dir).is_dir()
    assert Path(project.status().store).is_dir()
    with project.compare(turn.before, turn.after) as comparison:
        assert {each.path for each in comparison.differences} >= {odd, "pipe"}


def test_a_path_may_be_given_in_any_form(project: takeback.Project, tree: Path) -> None:
    """As text, bytes or a `Path`, also as a key of what is decided."""
    (tree / "b.txt").write_text("one\n")
    with project.session("test") as session, session.turn("Edit"):
        (tree / "a.txt").write_text("two\n")
        (tree / "b.txt").write_text("two\n")
    for path in ("a.txt", b"a.txt", Path("a.txt")):
        assert b"".join(project.read("@~1", path)) == b"one\n"
        with project.compare("@~1", "@~0", [path]) as comparison:
            assert [each.path for each in comparison.differences] == ["a.txt"]
        assert [each.path for each in project.plan_undo(paths=[path]).changes] == ["a.txt"]
    for name in ("a.txt", "b.txt"):
        (tree / name).write_text("mine\n")
    with pytest.raises(takeback.ConflictError) as refused:
        project.undo(decide={"b.txt": "keep-mine"})
    assert [path for path, _ in refused.value.conflicts] == ["a.txt"]
    project.undo(decide={"a.txt": "take-back", Path("b.txt"): "keep-mine"})
    assert ((tree / "a.txt").read_text(), (tree / "b.txt").read_text()) == ("one\n", "mine\n")
