"""What a rescue meets: odd names, links, disks that fill up, places that somebody else took."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from destroyed import Place
from takeback.disk import operations
from takeback.effects import rescue
from takeback.effects.saved import care, targets
from takeback.model import reasons
from takeback.model.beyond import effects
from takeback.model.beyond.effects import OVERWRITE, Judgement, Target
from takeback.model.reasons import Reason
from takeback.testing import Sandbox
from takeback.worktree import stage


@pytest.fixture
def place() -> Iterator[Place]:
    with Sandbox() as box:
        box.write("covered", b"covered")
        yield Place(box)


def _files(folder: Path) -> dict[bytes, bytes]:
    found = {}
    for top, _, names in os.walk(os.fsencode(folder)):
        for name in names:
            path = os.path.join(top, name)
            is_link = os.path.islink(path)
            found[path] = os.readlink(path) if is_link else Path(os.fsdecode(path)).read_bytes()
    return found


def test_names_in_any_bytes(place: Place) -> None:
    """Newlines, escapes, what is no text, and links that lead nowhere."""
    folder = place.around / "odd"
    odd = os.fsencode(folder) + b"/a\nb/\xff\xfe"
    os.makedirs(odd)
    for name in (b"x\ny", b"-rf", b" sp ", b"\x01\x1b[31m", b"\xc3("):
        (folder / os.fsdecode(odd) / os.fsdecode(name)).write_bytes(name)
    os.symlink(b"nowhere\n\xff", odd + b"/link")
    before = _files(folder)
    assert len(before) == 6
    assert place.run(lambda: shutil.rmtree(folder), folder).is_whole
    place.undo()
    assert _files(folder) == before


def test_a_folder_that_became_a_file_comes_back_with_what_was_in_it(place: Place) -> None:
    """Nothing is at its place any more, also if a file stands in the way of asking."""
    folder = place.around / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a").write_bytes(b"a")

    def replace() -> None:
        shutil.rmtree(folder)
        folder.write_bytes(b"a file")

    place.run(replace, folder)
    place.undo()
    assert _files(folder) == {os.fsencode(folder / "deep" / "a"): b"a"}


def test_nothing_is_written_through_a_link_that_took_a_place(place: Place) -> None:
    """Neither one that the command left nor one that came later; all else comes back."""
    other, note = place.around / "other", place.around / "note"
    other.mkdir()
    (other / "z").write_bytes(b"z")
    note.write_bytes(b"note")
    for is_late in (False, True):
        folder = place.around / f"folder{is_late}"
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "b").write_bytes(b"b")

        def take(folder: Path = folder) -> None:
            shutil.rmtree(folder)
            folder.symlink_to(other)

        def destroy(folder: Path = folder, *, is_late: bool = is_late) -> None:
            note.unlink()
            if is_late:
                shutil.rmtree(folder / "sub")
            else:
                take(folder)

        place.run(destroy, folder, note)
        if is_late:
            take()
        place.undo()
        assert folder.is_symlink()
        assert _files(other) == {os.fsencode(other / "z"): b"z"}
        assert note.read_bytes() == b"note"


def test_one_copy_that_fails_does_not_cost_the_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full for a moment: one file is named, and the rest comes back."""
    folder = place.around / "files"
    folder.mkdir()
    for name in "abcd":
        (folder / name).write_text(name)
    real, calls = stage.copy_file, []

    def fail_once(copy: int, source: int) -> None:
        calls.append(copy)
        if len(calls) == 1:
            raise OSError(28, "No space left on device")
        real(copy, source)

    def overwrite() -> None:
        for name in "abcd":
            (folder / name).write_text("gone")

    monkeypatch.setattr("takeback.effects.saved.saving.copy_file", fail_once)
    monkeypatch.setattr(operations, "clone", _cannot_clone)
    found = place.run(overwrite, folder, loss=OVERWRITE)
    assert [each.path for each in found.missed] == [str(folder / "a")]
    place.undo()
    assert [(folder / name).read_text() for name in "abcd"] == ["gone", "b", "c", "d"]


def _cannot_clone(copy: int, source: int) -> None:
    del copy, source
    raise OSError(95, "Operation not supported")


def test_what_is_too_large_to_copy_leaves_no_folder(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and the area holds nothing of it."""
    note = place.around / "note"
    note.write_bytes(b"note")
    monkeypatch.setattr(operations, "clone", _cannot_clone)
    monkeypatch.setattr("takeback.effects.saved.area.COPY_LIMIT", 0)
    found = place.run(lambda: None, note, loss=OVERWRITE)
    assert [each.reason.code for each in found.missed] == [reasons.TOO_LARGE_TO_COPY]
    assert list((place.store / "rescue").iterdir()) == []


def test_folders_in_folders_without_end_stop_nobody(place: Place) -> None:
    """What is too deep is named; what is above it is saved."""
    folder = place.around / "deep"
    folder.mkdir()
    (folder / "a").write_bytes(b"a")
    here = os.open(folder, os.O_RDONLY)
    for _ in range(700):
        os.mkdir("x", dir_fd=here)
        below = os.open("x", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    found = place.run(lambda: None, folder)
    assert [each.reason.code for each in found.missed] == [reasons.TOO_MANY_TO_SAVE]
    assert found.kept


def test_an_error_of_ours_is_reported_and_leaves_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is, the agent goes on, and no file keeps a second name."""
    note = place.around / "note"
    note.write_bytes(b"note")

    def fail(*_: object, **__: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr("takeback.effects.rescue._record", fail)
    found = place.run(lambda: None, note)
    assert [each.reason.code for each in found.missed] == [reasons.CANNOT_BE_SAVED]
    assert note.stat().st_nlink == 1
    assert place.held() == 0


def _found(place: Place, pattern: Path) -> None:
    target = Target(os.fsencode(pattern), effects.DELETE, is_recursive=True, is_glob=True)
    judged = Judgement(effects.DESTRUCTIVE, "test", Reason("test"), targets=(target,))

    def find() -> None:
        for each in (place.around / "f").rglob("*.log"):
            each.unlink()

    place.judged(find, judged)


def test_what_find_deletes_is_saved_at_any_depth(place: Place) -> None:
    """Also in hidden folders, and hidden files; and nothing else."""
    folder = place.around / "f"
    for name in ("a.log", ".b.log", "deep/c.log", ".hidden/x/d.log", "keep.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    before = _files(folder)
    _found(place, folder / "**" / "*.log")
    assert len(_files(folder)) == 1
    place.undo()
    assert _files(folder) == before


def test_a_search_for_names_ends_in_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not looked at by then is reported."""
    (place.around / "f").mkdir()
    monkeypatch.setattr(targets, "_PATIENCE", -1.0)
    work = place.project.workspace
    target = Target(os.fsencode(place.around / "f/**/*.log"), effects.DELETE, is_glob=True)
    finder = targets.Finder(work)
    finder.find(Judgement(effects.DESTRUCTIVE, "test", Reason("test"), targets=(target,)))
    assert [each.reason.code for each in finder.missed] == [reasons.TOO_MANY_TO_SAVE]


def test_a_list_that_was_not_finished_goes(place: Place) -> None:
    """A process died while it wrote; the list names files, and nobody would forget them."""
    note = place.around / "note"
    note.write_bytes(b"note")
    place.run(note.unlink, note)
    before = place.held()
    draft = place.store / "rescue" / "kkkkllllmmmm.list.123.tmp"
    draft.write_bytes(b"{}")
    work = place.project.workspace
    with work.held():
        care.sweep(work)
    assert (draft.exists(), place.held()) == (False, before)


def test_a_list_that_the_ledger_does_not_know_costs_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing the new list and recording it are two steps; nothing is lost between them."""
    note, other = place.around / "note", place.around / "other"
    note.write_bytes(b"note")
    other.write_bytes(b"other")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("takeback.effects.rescue.note", fail)
        place.run(note.unlink, note, other)
    assert len(list((place.store / "rescue").glob("*.old"))) == 1
    work = place.project.workspace
    with work.held():
        care.sweep(work)
    assert not list((place.store / "rescue").glob("*.old"))
    place.undo()
    assert note.read_bytes() == b"note"
    assert other.stat().st_nlink == 1


def test_what_an_agent_destroyed_before_it_died_comes_back(place: Place) -> None:
    """Nobody reported the end of the command, and one of the files is still there."""
    note, other = place.around / "note", place.around / "other"
    for each in (note, other):
        each.write_bytes(b"text")
    place.project.checkpoint()
    child = os.fork()
    if child == 0:
        try:
            _die_after(place, note, other)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    with takeback.open(place.tree, home=place.box.home) as project:
        project.undo(yes=True)
    assert note.read_bytes() == b"text"
    assert other.stat().st_nlink == 1


def _die_after(place: Place, *paths: Path) -> None:
    targets = tuple(Target(os.fsencode(each), effects.DELETE) for each in paths)
    judged = Judgement(effects.DESTRUCTIVE, "test", Reason("test"), targets=targets)
    with (
        takeback.open(place.tree, home=place.box.home) as project,
        project.session(agent="test") as session,
        session.turn("destroy") as turn,
        turn.step("Bash", {"command": "rm"}, kind="shell") as step,
    ):
        work = project.workspace
        with work.held():
            rescue.before(work, step.id, judged)
        paths[0].unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def test_on_a_full_disk_the_newest_rescue_stays(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what is destroyed there could never be taken back; older ones yield."""
    monkeypatch.setattr(care, "_is_full", lambda _: True)
    for name in ("one", "two"):
        path = place.around / name
        path.write_text(name)
        place.run(path.unlink, path)
    rows = place.project.workspace.ledger.rescues.there()
    assert [row.tops for row in rows] == [(os.fsencode(place.around / "two"),)]
    place.undo()
    assert (place.around / "two").read_text() == "two"
