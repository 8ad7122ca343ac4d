"""What somebody saved while a restore ran can be read again, by its name."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import history
import takeback
from faults.children import Tell, in_child
from faults.injection import die
from moments import Moments
from spoken import spoken
from takeback.disk import operations
from takeback.errors import UnknownReferenceError
from takeback.project import Project


@pytest.fixture
def project(tree: Path, home: Path) -> Iterator[Project]:
    """A project whose newest turn edited `sub/log`."""
    (tree / "sub").mkdir()
    (tree / "sub/log").write_text("old\n")
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        with project.session("agent") as session, session.turn("edit"):
            (tree / "sub/log").write_text("new\n")
        yield project


def test_a_late_writer_is_named_and_can_be_read(tree: Path, project: Project) -> None:
    """The report says that a file is open; what came is told later, and printed by `show`."""
    with (tree / "sub/log").open("a") as late:
        report = project.undo()
        assert [told.raw_path for told in report.rescued] == [b"sub/log"]
        late.write("late\n")
    project.checkpoint()
    assert "sub/log" in " ".join(spoken(project.recovered))
    assert b"".join(project.rescued(report.id, b"sub/log")) == b"new\nlate\n"
    assert b"".join(project.rescued(report.id[:6], b"log", inside=b"sub")) == b"new\nlate\n"
    said = history.command(tree / "sub", "show", report.id, "--rescued", "log")
    assert (said.code, said.out) == (0, "new\nlate\n")
    with pytest.raises(UnknownReferenceError):
        project.rescued(report.id, b"other")
    assert (tree / "sub/log").read_text() == "old\n"


def test_an_endless_writer_stops_nobody(tree: Path, project: Project) -> None:
    """A program that writes all the time, also while its file is read, does not hold us up."""
    fd = os.open(tree / "sub/log", os.O_RDWR | os.O_APPEND)
    seen: set[str] = set()

    def write(step: str, _args: tuple[object, ...]) -> None:
        if "exchange" in seen:
            os.write(fd, b"more\n")
        seen.add(step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "hook", write)
        report = project.undo()
    written = os.pread(fd, 1 << 20, 0)
    os.close(fd)
    project.checkpoint()
    assert written.endswith(b"more\n")
    assert b"".join(project.rescued(report.id, b"sub/log")) == written
    assert (tree / "sub/log").read_text() == "old\n"


def test_recovery_names_what_is_in_the_store_only(tree: Path, home: Path) -> None:
    """Two saves come in between, then the process dies: the newer has the path, both are told."""
    with takeback.open(tree, home=home) as project:
        (tree / "log").write_text("old\n")
        project.checkpoint()
        with project.session("agent") as session, session.turn("edit"):
            (tree / "log").write_text("new\n")
    in_child(lambda tell: _undo_and_die(tree, home, tell))
    (tree / "log").write_text("the newest\n")
    with takeback.open(tree, home=home) as project:
        told = " ".join(spoken(project.recovered))
        assert (tree / "log").read_text() == "the newest\n"
        (event,) = project.workspace.ledger.events_of("RestoreTakenBack")
        restore = str((event.payload or {})["restore"])
        assert b"".join(project.rescued(restore, b"log")) == b"in between\n"
        assert f"{restore[:8]} --rescued" in told


def _undo_and_die(tree: Path, home: Path, _tell: Tell) -> None:
    """Save right before the exchange, and die right after it."""

    def strike(step: str, _args: tuple[object, ...]) -> None:
        if step == "exchange":
            (tree / "aside").write_text("in between\n")
            os.rename(tree / "aside", tree / "log")
            operations.hook = Moments(1, die).step

    with takeback.open(tree, home=home) as project:
        operations.hook = strike
        project.undo()


def test_a_project_that_moved_is_not_held_up_by_a_late_writer(tree: Path, home: Path) -> None:
    """A restore that is done, and waits for a file to be closed, blocks no copy of the project."""
    (tree / "log").write_text("old\n")
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        with project.session("agent") as session, session.turn("edit"):
            (tree / "log").write_text("new\n")
        late = (tree / "log").open("a")
        project.undo()
        known = project.id
    copy = _copied(tree)
    late.close()
    with Project.relocate(os.fsencode(copy), home=os.fsencode(home), join=known) as project:
        project.checkpoint()
        project.redo()
        assert (copy / "log").read_text() == "new\n"
    assert sorted(path.name for path in copy.iterdir()) == ["log"]


def _copied(tree: Path) -> Path:
    copy = tree.parent / "copy"
    shutil.copytree(tree, copy)
    shutil.rmtree(tree)
    return copy


def test_a_copy_of_a_half_restored_project_recovers(tree: Path, home: Path) -> None:
    """A restore dies, and the project goes on in a copy of its folder: there it is taken back."""
    for name in ("a", "b"):
        (tree / name).write_text("old\n")
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        with project.session("agent") as session, session.turn("edit"):
            for name in ("a", "b"):
                (tree / name).write_text("new\n")
        known = project.id
    in_child(lambda _tell: _undo_half(tree, home))
    copy = _copied(tree)
    with Project.relocate(os.fsencode(copy), home=os.fsencode(home), join=known) as project:
        project.checkpoint()
        assert "undo" in " ".join(spoken(project.recovered))
        assert [(copy / name).read_text() for name in ("a", "b")] == ["new\n"] * 2
    assert sorted(path.name for path in copy.iterdir()) == ["a", "b"]


def _undo_half(tree: Path, home: Path) -> None:
    """Die before the second of two exchanges."""
    seen: list[str] = []

    def strike(step: str, _args: tuple[object, ...]) -> None:
        seen.append(step)
        if seen.count("exchange") == 2:
            die()

    with takeback.open(tree, home=home) as project:
        operations.hook = strike
        project.undo()
