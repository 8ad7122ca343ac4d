"""A session that works inside another's turn: what it tells of itself goes first."""

from pathlib import Path

import takeback
from takeback.project import Project


def author_of(project: Project, path: bytes) -> tuple[str, str | None]:
    """Who changed a path last, and in which turn."""
    (row,) = project.workspace.ledger._reader.rows(
        "SELECT d.who, t.id FROM deltas d LEFT JOIN turns t ON t.number = d.turn"
        " WHERE d.path = ? ORDER BY d.checkpoint DESC LIMIT 1",
        (path,),
    )
    return row


def test_the_inner_session_owns_what_its_steps_do(tree: Path, home: Path) -> None:
    """An agent with hooks below `takeback run`: its shell's change is its own, not shared."""
    with takeback.open(tree, home=home) as project:
        outer = project.session("run").turn("claude", whole=False)
        outer.step("run", {"command": "claude"}, kind="shell")
        inner = project.session("claude-code", id="abc", inside=outer.id)
        turn = inner.turn("Fix it", whole=False)
        with turn.step("Bash", {"command": "make"}):
            (tree / "made").write_text("x")
        (tree / "typed").write_text("by hand, while the model thinks")
        turn.end()
        outer.end()
        assert author_of(project, b"made") == ("step", turn.id)
        assert author_of(project, b"typed") == ("you", None)


def test_a_silent_inner_session_takes_nothing_away(tree: Path, home: Path) -> None:
    """Until the inner session has had a turn, what happens is the outer one's."""
    with takeback.open(tree, home=home) as project:
        outer = project.session("run").turn("claude", whole=False)
        outer.step("run", {"command": "claude"}, kind="shell")
        project.session("claude-code", id="abc", inside=outer.id)
        (tree / "made").write_text("x")
        outer.end()
        assert author_of(project, b"made") == ("step", outer.id)


def test_what_follows_the_inner_session_is_the_outer_ones(tree: Path, home: Path) -> None:
    """A command goes on after the agent in it has ended: what it does then is its own."""
    with takeback.open(tree, home=home) as project:
        outer = project.session("run").turn("claude && make", whole=False)
        outer.step("run", {"command": "claude && make"}, kind="shell")
        inner = project.session("claude-code", id="abc", inside=outer.id)
        with inner.turn("Fix it", whole=False) as turn:
            (tree / "typed").write_text("by hand, while the model thinks")
            with turn.step("Bash", {"command": "true"}):
                (tree / "fixed").write_text("x")
        inner.end()
        (tree / "made").write_text("x")
        outer.end()
        assert author_of(project, b"typed") == ("you", None)
        assert author_of(project, b"fixed") == ("step", turn.id)
        assert author_of(project, b"made") == ("step", outer.id)


def test_new_folders_belong_to_who_names_a_file_in_them(tree: Path, home: Path) -> None:
    """An edit tool that makes the folders of its file on the way has made them."""
    with takeback.open(tree, home=home) as project:
        turn = project.session("x").turn("Write", whole=False)
        with turn.step("Write", {"file_path": "new/dir/a.txt"}):
            (tree / "new/dir").mkdir(parents=True)
            (tree / "new/dir/a.txt").write_text("x")
            (tree / "other").mkdir()
        assert author_of(project, b"new") == ("step", turn.id)
        assert author_of(project, b"new/dir") == ("step", turn.id)
        assert author_of(project, b"other") == ("you", None)
