"""Restores that others disturb: what is saved meanwhile, what a power cut leaves, what it costs."""

import os
from collections.abc import Callable, Iterator, ValuesView
from pathlib import Path

import pytest

import history
import takeback
from disturbed import hooked
from faults.harness import settle
from moments import Moments, watched_by
from spoken import of_remark
from takeback.disk import operations
from takeback.errors import ConflictError
from takeback.model.tree import State
from takeback.project import Project


@pytest.fixture
def project(tree: Path, home: Path) -> Iterator[Project]:
    """A project whose newest turn edited `a` and `b`, in a tree with sixty other files."""
    (tree / "many").mkdir()
    for number in range(60):
        (tree / f"many/{number}").write_text(f"{number}\n")
    (tree / "a").write_text("old a\n")
    (tree / "b").write_text("old b\n")
    with takeback.open(tree, home=home) as project:
        project.checkpoint("first")
        with project.session("agent") as session, session.turn("edit"):
            (tree / "a").write_text("new a\n")
            (tree / "b").write_text("new b\n")
        yield project


class AtFirstLook(Moments):
    """Acts before a restore looks at its first path: the plan is made by then."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(1, lambda: None)
        self._do = act

    def look(self, dir_fd: int, name: bytes) -> State | None:
        """Before a look at what is there."""
        if not self.count:
            self._do()
        return super().look(dir_fd, name)

    def step(self, step: str, args: tuple[object, ...]) -> None:
        """Let steps pass."""


class Saver(dict[bytes, str]):
    """Decisions; somebody saves when they are first asked for, which is when a plan is made."""

    def __init__(self, act: Callable[[], object], **decisions: str) -> None:
        super().__init__({path.encode(): decision for path, decision in decisions.items()})
        self._act: Callable[[], object] | None = act

    def values(self) -> ValuesView[str]:  # type: ignore[override]
        """The decisions, after the save."""
        act, self._act = self._act, None
        if act is not None:
            act()
        return super().values()


# -- a save between the plan and the restore -------------------------------------------------


def test_a_save_that_a_rollback_replaces_is_named(tree: Path, project: Project) -> None:
    """A rollback replaces what was saved since its look; the report says where the save is."""
    first = list(project.checkpoints())[-1].id
    with watched_by(AtFirstLook(lambda: (tree / "a").write_text("my save\n"))):
        report = project.rollback(first, yes=True)
    assert (tree / "a").read_text() == "old a\n"
    assert [told.raw_path for told in report.rescued] == [b"a"]
    assert f"takeback show {report.before[:8]} a" in of_remark(report.rescued[0])
    assert b"".join(project.read(report.before, b"a")) == b"my save\n"


def test_a_new_file_that_a_rollback_removes_is_named(tree: Path, project: Project) -> None:
    """So it is with a file that was made since, though only another save was noticed."""
    first = list(project.checkpoints())[-1].id

    def save() -> None:
        (tree / "a").write_text("my save\n")
        (tree / "mine").write_text("mine\n")

    with watched_by(AtFirstLook(save)):
        report = project.rollback(first, yes=True)
    assert not (tree / "mine").exists()
    assert [told.raw_path for told in report.rescued] == [b"a", b"mine"]
    assert b"".join(project.read(report.before, b"mine")) == b"mine\n"


def test_a_save_over_a_decided_conflict_is_named(tree: Path, project: Project) -> None:
    """Who decided to take back both changes before the save hears of the save."""
    (tree / "a").write_text("mine\n")
    save = Saver(lambda: (tree / "a").write_text("my save\n"), a="take-back")
    report = project.undo(decide=save)
    assert (tree / "a").read_text() == "old a\n"
    assert [told.raw_path for told in report.rescued] == [b"a"]
    assert b"".join(project.read(report.before, b"a")) == b"my save\n"


def test_a_save_before_a_large_file_is_captured_is_named(tree: Path, home: Path) -> None:
    """The look that captures what is too large for others does not swallow a save."""
    with takeback.open(tree, home=home) as project:
        assert history.command(tree, "config", "limits.file", "1MiB").code == 0
        (tree / "notes").write_text("one\n")
        (tree / "data").mkdir()
        first = project.checkpoint().id
        (tree / "notes").write_text("two\n")
        (tree / "data").rmdir()
        project.checkpoint()
        (tree / "data").write_bytes(bytes(2 << 20))
        looks = []

        def save(step: str, _args: tuple[object, ...]) -> None:
            looks.append(step) if step == "touch" else None
            if len(looks) == 2:
                (tree / "notes").write_text("mine\n")

        with hooked(save):
            report = project.rollback(first, yes=True)
        assert len(looks) > 2, "there were looks before and after the save"
        assert [told.raw_path for told in report.rescued] == [b"notes"]
        assert b"".join(project.read(report.before, b"notes")) == b"mine\n"
        assert (tree / "data").is_dir()


# -- what a save costs -----------------------------------------------------------------------


def test_a_save_during_an_undo_is_read_alone(
    tree: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save during an undo makes it read what was saved again, and not the whole tree."""
    settle(tree.parent)
    project.checkpoint(rehash=True)
    opened: list[str] = []
    real = os.open

    def noting(path: bytes, *args: object, **more: object) -> int:
        opened.append(os.fsdecode(path))
        return real(path, *args, **more)  # type: ignore[arg-type]

    with watched_by(AtFirstLook(lambda: (tree / "a").write_text("old a\n"))):
        monkeypatch.setattr(os, "open", noting)
        report = project.undo()
        monkeypatch.undo()
    assert [change.raw_path for change in report.plan.changes] == [b"b"]
    assert sum(name.isdigit() for name in opened) == 0, "files that nobody touched were read"
    assert (tree / "a").read_text() == "old a\n"


def test_bytes_without_a_stamp_are_read_again(tree: Path, project: Project) -> None:
    """A save that left no trace in any stamp is seen, kept, and named as a conflict."""
    settle(tree.parent)
    project.checkpoint(rehash=True)

    def save() -> None:
        before = (tree / "a").stat()
        (tree / "a").write_text("NEW A\n")
        os.utime(tree / "a", ns=(before.st_atime_ns, before.st_mtime_ns))

    with watched_by(AtFirstLook(save)), pytest.raises(ConflictError, match="`a`"):
        project.undo()
    assert (tree / "a").read_text() == "NEW A\n"


def test_what_was_kept_does_not_count_as_restored(tree: Path, project: Project) -> None:
    """A file that somebody saved while the undo ran is told as kept, and not as restored, too."""
    done = []

    def save(step: str, _args: tuple[object, ...]) -> None:
        done.append(step)
        if done.count("exchange") == 2:
            operations.hook = None
            (tree / "a").write_text("mine\n")

    operations.hook = save
    try:
        report = project.undo()
    finally:
        operations.hook = None
    assert (tree / "a").read_text() == "mine\n"
    assert (tree / "b").read_text() == "old b\n"
    assert [remark.raw_path for remark in report.kept] == [b"a"]
    assert [change.raw_path for change in report.plan.changes] == [b"b"]
