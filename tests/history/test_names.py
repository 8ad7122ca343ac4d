"""Names of checkpoints: references like ids, facts of the log, given, moved and removed."""

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from history import command
from takeback import Project, UnknownReferenceError, UsageError
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent


@pytest.fixture
def project(tree: Path, home: Path) -> Iterator[Project]:
    """A project with one file and no history."""
    assert home.is_dir()
    (tree / "a.txt").write_text("one\n")
    with takeback.open(tree) as made:
        yield made


def test_a_name_is_a_reference_in_every_command(
    project: Project, tree: Path, tmp_path: Path
) -> None:
    """Whatever takes a REF takes the name of a checkpoint, and `NAME-` the state before."""
    (tree / "a.txt").write_text("zero\n")
    first = project.checkpoint().id
    (tree / "a.txt").write_text("one\n")
    assert command(tree, "checkpoint", "-m", "tests green").code == 0
    (tree / "a.txt").write_text("two\n")
    made = project.checkpoint("after  the\nrefactoring")
    assert json.loads(command(tree, "show", "tests green", "--json").out)["checkpoint"][
        "names"
    ] == ["tests green"]
    assert command(tree, "show", "tests green", "a.txt").out == "one\n"
    assert command(tree, "show", "tests green-", "a.txt").out == "zero\n"
    assert project.recorded("after the refactoring").checkpoint.id == made.id  # type: ignore[union-attr]
    assert "+two" in command(tree, "diff", "tests green", "after the refactoring").out
    assert command(tree, "extract", "tests green", str(tmp_path / "then")).code == 0
    assert (tmp_path / "then" / "a.txt").read_text() == "one\n"
    assert command(tree, "keep", "tests green").code == 0
    assert project.kept()[0].label == "tests green"
    said = command(tree, "rollback", "tests green", "--yes")
    assert (said.code, (tree / "a.txt").read_text()) == (0, "one\n")
    assert '"tests green"' in said.out
    assert project.plan_rollback("tests green-").target == first


def test_a_name_is_kept_when_nothing_changed(project: Project, tree: Path) -> None:
    """The same checkpoint gets a second name, and both mean it."""
    first = json.loads(command(tree, "checkpoint", "-m", "one", "--json").out)
    again = json.loads(command(tree, "checkpoint", "-m", "another", "--json").out)
    assert (first["new"], again["new"]) == (True, False)
    assert (again["id"], again["label"], again["names"]) == (
        first["id"],
        "another",
        ["another", "one"],
    )
    assert {project.plan_rollback(name).target for name in ("one", "another")} == {first["id"]}


def test_a_name_given_again_moves(project: Project, tree: Path) -> None:
    """The newest wins, and it is said which checkpoint had the name."""
    first = project.checkpoint("green")
    (tree / "a.txt").write_text("two\n")
    said = command(tree, "checkpoint", "-m", "green")
    assert f"the name moved here from checkpoint {first.id}\n" in said.err
    assert project.plan_rollback("green").target == project.status().newest.id  # type: ignore[union-attr]
    kept = json.loads(command(tree, "keep", first.id, "-m", "green", "--json").out)["kept"]
    assert (kept["checkpoint"], kept["name"]) == (first.id, "green")
    assert project.plan_rollback("green").target == first.id
    assert json.loads(command(tree, "checkpoint", "-m", "green", "--json").out)["moved"] == first.id
    assert json.loads(command(tree, "checkpoint", "-m", "green", "--json").out)["moved"] is None


@pytest.mark.parametrize(
    "name",
    ["10m", "now", "monday", "noon", "an hour ago", "14:05", "2026-11-15", "@", "@~1", "@me"],
)
def test_a_name_that_means_something_else_is_refused(
    project: Project, tree: Path, name: str
) -> None:
    """A time is a time, and what begins with `@` a place; nothing is recorded then."""
    project.checkpoint()
    for words in (("checkpoint", "-m", name), ("keep", "@", "-m", name)):
        said = command(tree, *words)
        assert said.code == 2
        assert f"`{name}` cannot be the name of a checkpoint" in said.err
        assert "hint:" in said.err
    assert not project.kept()
    assert project.workspace.ledger.last_event() == 1


def test_a_name_that_looks_like_a_known_id_is_refused(project: Project) -> None:
    """The beginning of an id that is there cannot be a name; of one that is not, it can."""
    made = project.checkpoint()
    for name in (made.id, made.id[:3]):
        with pytest.raises(UsageError, match="it is the beginning of the id of a checkpoint"):
            project.checkpoint(name)
    free = next(c for c in "klmnopqrstuvwxyz" if c != made.id[0])
    assert project.checkpoint(free).names == (free,)
    assert project.plan_rollback(free).target == made.id


def test_what_a_word_means_first(project: Project, tree: Path, home: Path) -> None:
    """An id goes before a name, a name before the beginning of an id and before prompts."""
    first = project.checkpoint("sort")
    with project.session("agent") as session, session.turn("sort the list") as turn:
        (tree / "a.txt").write_text("sorted\n")
    after = turn.recorded().after
    assert project.plan_rollback("sort").target == first.id
    assert project.plan_rollback('"sort"').target == after
    ledger = next(home.glob("projects/*/ledger.db"))
    with sqlite3.connect(ledger) as db:
        db.execute("UPDATE turns SET id = 'sorttttttttt'")
        db.execute("INSERT INTO names VALUES (1, 'sorttttttttt', 1, 1, 1)")
    db.close()
    assert project.plan_rollback("sort").target == first.id
    assert project.plan_rollback("sortt").target == after
    assert project.plan_rollback("sorttttttttt").target == after


def test_a_name_cannot_end_like_a_reference(project: Project, tree: Path) -> None:
    """`NAME-` is the state before NAME, so no name ends with a dash; quotes can be part of one."""
    project.checkpoint("v1")
    said = command(tree, "checkpoint", "-m", "v1-")
    assert said.code == 2
    assert "`v1-` cannot be the name of a checkpoint: `NAME-` means the state before" in said.err
    assert project.checkpoint('"v1"').id == project.plan_rollback('"v1"').target


def test_names_are_removed(project: Project, tree: Path) -> None:
    """`keep --release NAME` removes the name, and the pin if the state is kept under this name."""
    made = project.checkpoint("green")
    project.keep("@", "release 1.0")
    said = command(tree, "keep", "--release", "green")
    assert (said.code, said.out) == (0, f'Removed the name "green" of {made.id}\n')
    assert [state.label for state in project.kept()] == ["release 1.0"]
    with pytest.raises(UnknownReferenceError):
        project.plan_rollback("green")
    assert command(tree, "keep", "--release", "release 1.0").out.startswith(f"Released {made.id}")
    assert not project.kept()
    with pytest.raises(UnknownReferenceError):
        project.plan_rollback("release 1.0")
    project.checkpoint("green")
    project.keep("green")
    assert project.release("green").released
    project.keep(made.id, "green")
    project.release(made.id)
    assert project.plan_rollback("green").target == made.id, "released by id, the name stays"
    with pytest.raises(UnknownReferenceError, match="is not kept") as refused:
        project.release(made.id)
    assert "`project.release('green')` removes its name" in refused.value.hint


def test_names_follow_from_the_log(project: Project, tree: Path) -> None:
    """Made again from the events, names are what they were, moved and removed ones as well."""
    for number, name in enumerate(("one", "two", "one", "three", "four")):
        (tree / "a.txt").write_text(f"{number}\n")
        project.checkpoint(name)
    project.keep("two", "kept")
    project.release("three")
    query = "SELECT * FROM names ORDER BY name"
    before = project.workspace.ledger._reader.rows(query)
    assert [row[1] for row in before] == ["four", "kept", "one", "two"]
    assert project.upkeep.examine()[0] == ()
    project.rebuild()
    assert project.workspace.ledger._reader.rows(query) == before


def test_a_forgotten_name_is_gone(project: Project, tree: Path) -> None:
    """`forget --text` takes a name out, and a turn that is forgotten those given inside it."""
    project.checkpoint("sekrit-4711")
    with project.session("agent") as session, session.turn("a prompt") as turn:
        (tree / "a.txt").write_text("two\n")
        turn.checkpoint("inside the turn")
    project.release("sekrit-4711")
    project.checkpoint("once more sekrit-4711")
    project.forget(text="sekrit-4711")
    assert project.plan_rollback("once more (forgotten)").target
    project.forget(turn=turn.id)
    names = project.workspace.ledger._reader.column("SELECT name FROM names")
    assert names == ["once more (forgotten)"]
    assert project.upkeep.examine()[0] == ()


def test_a_name_without_files_says_so(project: Project, tree: Path) -> None:
    """A name does not keep files: it stays in the log, and the error says what became of them."""
    project.checkpoint("old")
    (tree / "a.txt").write_text("two\n")
    project.checkpoint()
    with project.workspace.held():
        trimmed = NewEvent(events.HISTORY_TRIMMED, {"checkpoints": [[1, 1]]}, time.time_ns())
        project.workspace.ledger.record(trimmed)
    said = command(tree, "show", "old", "a.txt")
    assert said.code == 1
    assert "are no longer kept" in said.err
    assert command(tree, "show", "old").code == 0


def test_at_is_the_files_as_they_are(project: Project, tree: Path, tmp_path: Path) -> None:
    """`@` and `now` mean what is on disk, in each command that takes a state."""
    first = project.checkpoint()
    (tree / "a.txt").write_text("on disk\n")
    last = project.workspace.ledger.last_event()
    for ref in ("@", "now"):
        assert command(tree, "show", ref, "a.txt").out == "on disk\n"
        assert b"".join(project.read(ref, b"a.txt")) == b"on disk\n"
        assert "+on disk" in command(tree, "diff", first.id, ref).out
        assert command(tree, "diff", ref).out == ""
    assert "+on disk" in command(tree, "diff").out
    assert "`@` is now; `takeback diff` shows what changed" in command(tree, "diff", "@").err
    assert project.workspace.ledger.last_event() == last, "looking writes nothing"
    assert command(tree, "extract", "@", str(tmp_path / "now")).code == 0
    assert (tmp_path / "now" / "a.txt").read_text() == "on disk\n"
    (tree / "a.txt").write_text("kept\n")
    assert command(tree, "keep", "@").code == 0
    (tree / "a.txt").write_text("later\n")
    assert b"".join(project.read(project.kept()[0].checkpoint, b"a.txt")) == b"kept\n"
    assert "Nothing to do" in command(tree, "rollback", "@", "--yes").out
    assert (tree / "a.txt").read_text() == "later\n"
    said = command(tree, "undo", "@")
    assert (said.code, "`takeback undo` takes back the newest turn" in said.err) == (2, True)
