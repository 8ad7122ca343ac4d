"""`takeback projects`: all stores, which folders are gone, and how a store is removed."""

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from registry_lines import rewrite
from takeback.cli import app
from takeback.disk import operations
from takeback.errors import BusyError, DecisionNeededError, UnknownReferenceError
from takeback.upkeep.stores import Housekeeping
from terminal import Terminal

NOW = 10**18 * 2
Said = dict[str, object]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


@pytest.fixture
def make(tmp_path: Path, home: Path) -> Callable[[str], str]:
    """Makes a project with a turn in it; returns its id."""

    def made(name: str) -> str:
        folder = tmp_path / "work" / name
        folder.mkdir(parents=True)
        (folder / "a").write_text("a\n")
        with takeback.open(folder, home=home) as project:
            with project.session("claude") as session, session.turn(f"do {name}"):
                (folder / "a").write_text("b\n")
            return project.id

    return made


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, Said]:
    """What the command says, by id."""
    capsys.readouterr()
    assert app.main(["projects", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    return {each["id"]: each for each in said["projects"]}


def test_all_stores_are_listed(
    make: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wherever one is, all stores are listed, the one used last first, with what they hold."""
    first, second = make("first"), make("second")
    monkeypatch.chdir("/")
    found = listed(capsys)
    assert list(found) == [second, first]
    one = found[first]
    assert one["root"] == {"path": str(tmp_path / "work/first")}
    assert (one["state"], one["health"], one["turns"]) == ("here", "sound", 1)
    assert one["newest_prompt"] == "do first"
    assert one["checkpoints"] == 2
    store = tmp_path / "home/projects" / first
    files = [path for path in store.rglob("*") if path.is_file()]
    assert one["size"] == sum(path.stat().st_size for path in files)
    assert app.main(["projects"]) == 0
    told = capsys.readouterr().out
    assert told.index(second) < told.index(first)


def test_no_store_at_all(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything was kept there is nothing to list, and nothing is made."""
    assert listed(capsys) == {}
    assert list(home.iterdir()) == []


def test_a_deleted_folder_is_gone_and_an_unmounted_one_is_not(
    make: Callable[[str], str], tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deleted is told from replaced, and from a disk that is not mounted."""
    gone, other, away, empty = make("gone"), make("other"), make("away"), make("x/empty")
    make("stays")
    work = tmp_path / "work"
    shutil.rmtree(work / "gone")
    (work / "other").rename(work / ".elsewhere")
    (work / "other").mkdir()
    (work / "other/b").write_text("b\n")
    # On a device that nothing here is on.
    shutil.rmtree(work / "away")
    for place in (home / "projects" / away / "root", home / "registry"):
        rewrite(place, lambda line: _on_another_disk(line, away))
    # In a folder that is empty, as mount points are.
    shutil.rmtree(work / "x/empty")
    found = listed(capsys)
    states = {id: found[id]["state"] for id in (gone, other, away, empty)}
    assert states == {
        gone: "gone", other: "replaced", away: "not mounted", empty: "not mounted",
    }  # fmt: skip


def _on_another_disk(line: str, id: str) -> str:
    fields = line.split(" ", 3)
    if fields[0] != id:
        return line
    return " ".join([fields[0], "999999", *fields[2:]])


def test_stores_in_any_state_are_listed(
    make: Callable[[str], str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Damaged, too new, too old, or without a word about its folder: each is listed as such."""
    damaged, newer, older, lost = make("damaged"), make("newer"), make("older"), make("lost")
    (home / "projects" / damaged / "ledger.db").write_bytes(b"garbage" * 1000)
    for id, application, written in ((newer, "TKB7", 99), (older, "TKB1", 4)):
        db = sqlite3.connect(home / "projects" / id / "ledger.db")
        db.execute(f"PRAGMA application_id = {int.from_bytes(application.encode(), 'big')}")
        db.execute(f"PRAGMA user_version = {written}")
        db.close()
    (home / "projects" / lost / "root").unlink()
    (home / "registry").unlink()
    found = listed(capsys)
    assert {id: said["health"] for id, said in found.items()} == {
        damaged: "damaged", newer: "newer", older: "older", lost: "sound",
    }  # fmt: skip
    assert (found[lost]["root"], found[lost]["state"]) == (None, "unknown")
    assert found[damaged]["checkpoints"] is None
    assert "format 99" in str(found[newer]["problem"])
    assert found[damaged]["used"] is not None
    assert app.main(["projects"]) == 0
    assert "(damaged)" in capsys.readouterr().out


# -- removing ----------------------------------------------------------------------------------


def test_removing_shows_and_asks(
    make: Callable[[str], str], tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without anybody to ask nothing goes; what would be lost is shown."""
    gone = make("gone")
    make("stays")
    shutil.rmtree(tmp_path / "work/gone")
    assert app.main(["projects", "--remove", gone[:6]]) == 3
    told = capsys.readouterr()
    assert all(words in told.out for words in ("1 turn", "do gone"))
    assert f"takeback projects --remove {gone} --yes" in told.err
    assert (home / "projects" / gone).is_dir()
    assert app.main(["projects", "--remove", gone, "--yes"]) == 0
    assert gone not in listed(capsys)
    assert gone not in (home / "registry").read_text()
    assert [path.name for path in (home / "projects").iterdir() if gone in path.name] == []


def test_somebody_is_asked(make: Callable[[str], str], tmp_path: Path, home: Path) -> None:
    """On a terminal a clear yes removes it, anything else does not."""
    gone = make("gone")
    make("stays")
    shutil.rmtree(tmp_path / "work/gone")
    for answer, code in ((b"n\n", 3), (b"y\n", 0)):
        words = [sys.executable, "-I", "-m", "takeback", "projects", "--remove", gone]
        terminal = Terminal(words)
        try:
            terminal.expect(b"This cannot be taken back")
            assert (home / "projects" / gone).is_dir()
            terminal.type(answer)
            assert terminal.status() == code
        finally:
            terminal.close()
    assert not (home / "projects" / gone).exists()


@pytest.mark.parametrize("state", ["here", "replaced", "away"])
def test_more_than_yes_is_needed(
    make: Callable[[str], str], tmp_path: Path, home: Path, state: str
) -> None:
    """A store whose folder is there, or may only be out of reach, goes only if that is said."""
    id = make("alone")
    folder = tmp_path / "work/alone"
    if state == "replaced":
        folder.rename(folder.with_name("old"))
        folder.mkdir()
        (folder / "b").write_text("b")
    elif state == "away":
        shutil.rmtree(folder)  # and now the folder above is as empty as a mount point
    option = "--even-if-not-mounted" if state == "away" else "--even-if-in-use"
    other = "--even-if-in-use" if state == "away" else "--even-if-not-mounted"
    assert app.main(["projects", "--remove", id, "--yes"]) == 3
    assert app.main(["projects", "--remove", id, "--yes", other]) == 3
    assert (home / "projects" / id).is_dir()
    assert app.main(["projects", "--remove", id, "--yes", option, "--json"]) == 0
    assert not (home / "projects" / id).exists()


def test_a_running_session_keeps_its_store(make: Callable[[str], str], tmp_path: Path) -> None:
    """While an agent works there, or a process holds the lock, nothing is removed."""
    id = make("busy")
    keeping = Housekeeping(os.fsencode(tmp_path / "home"))
    with takeback.open(tmp_path / "work/busy", home=tmp_path / "home") as project:
        session = project.session("claude")
        with pytest.raises(BusyError, match="session"):
            keeping.remove(id, NOW, even_if_in_use=True)
        session.end()
        with project.workspace.held(), pytest.raises(BusyError, match="is working"):
            keeping.remove(id, NOW, even_if_in_use=True)
    with pytest.raises(DecisionNeededError):
        keeping.remove(id, NOW)
    keeping.remove(id, NOW, even_if_in_use=True)
    with pytest.raises(UnknownReferenceError):
        keeping.remove(id, NOW)


def test_what_was_removed_begins_anew(make: Callable[[str], str], tmp_path: Path) -> None:
    """In a folder whose store was removed, a new history begins, without any question."""
    id = make("again")
    keeping = Housekeeping(os.fsencode(tmp_path / "home"))
    keeping.remove(id, NOW, even_if_in_use=True)
    with takeback.open(tmp_path / "work/again", home=tmp_path / "home") as project:
        assert (project.id != id, project.status().checkpoints) == (True, 0)


def test_a_store_that_cannot_be_opened_can_be_removed(
    make: Callable[[str], str], tmp_path: Path, home: Path
) -> None:
    """A damaged store is not a store for ever."""
    id = make("broken")
    make("stays")
    shutil.rmtree(tmp_path / "work/broken")
    (home / "projects" / id / "ledger.db").write_bytes(b"garbage" * 1000)
    assert app.main(["projects", "--remove", id, "--yes"]) == 0
    assert not (home / "projects" / id).exists()
