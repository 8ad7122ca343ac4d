"""Forged journals, hostile names, and what others may read while a restore runs."""

import contextlib
import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import oracle
import takeback
from faults.children import Tell, in_child
from faults.injection import die
from faults.report import FULL, SECONDS
from moments import Moments, restore, watched_by
from takeback.disk import operations
from takeback.errors import NothingToTakeBackError, TakebackError
from takeback.project import Project

# -- never more readable than it was -----------------------------------------------------------

SECRETS = (b"secret one", b"secret two", b"secret three", b"secret four")
"""None of these was ever in a file that others could read."""


def before_the_turn(tree: Path) -> None:
    """Files that only their owner may read, by their own mode or by that of a folder above."""
    _write(tree / "own", SECRETS[0], 0o600)
    _write(tree / "gone", SECRETS[0], 0o400)
    (tree / "private/deep").mkdir(parents=True)
    _write(tree / "private/deep/open", SECRETS[1], 0o644)
    _write(tree / "private/kind", SECRETS[1], 0o666)
    (tree / "private").chmod(0o700)
    (tree / "shut").mkdir()
    _write(tree / "shut/gone", SECRETS[1], 0o644)
    _write(tree / "shut/stays", b"anybody may read this", 0o644)
    (tree / "shut").chmod(0o700)
    (tree / "readable").mkdir()
    _write(tree / "readable/own", SECRETS[2], 0o640)
    (tree / "readable/own").chmod(0o600)


def change_everything(tree: Path) -> None:
    """The turn overwrites, removes and makes such files."""
    _write(tree / "own", b"anybody may read this", 0o644)
    (tree / "gone").unlink()
    for name in ("private/deep/open", "private/kind"):
        (tree / name).unlink()
    (tree / "private/deep").rmdir()
    (tree / "private").rmdir()
    _write(tree / "private", b"anybody may read this", 0o666)
    (tree / "readable/own").unlink()
    (tree / "readable/own").mkdir()
    _write(tree / "made", SECRETS[3], 0o600)
    (tree / "shut/gone").unlink()
    (tree / "shut").chmod(0o755)


def _write(path: Path, content: bytes, mode: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(fd, "wb") as file:
        file.write(content)
        os.fchmod(fd, mode)


def exposed(tree: Path) -> Iterator[str]:
    """Which secrets somebody else could read right now, wherever they are."""
    for folder, _, names in os.walk(tree):
        for name in names:
            path = Path(folder) / name
            if path.is_symlink() or path.read_bytes() not in SECRETS:
                continue
            may_read = path.stat().st_mode & 0o044
            for above in path.parents[: len(path.relative_to(tree).parents) - 1]:
                # To be reached, every folder above must let somebody through.
                may_read &= (above.stat().st_mode & 0o011) << 2
            if may_read:
                yield f"{path.relative_to(tree)} {oct(path.stat().st_mode)}"


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """The umask of the person who restores."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_nothing_is_ever_more_readable_than_it_was(tree: Path, home: Path) -> None:
    """At no step of undo, redo and rollback can somebody else read what was private."""
    before_the_turn(tree)
    old = oracle.picture(tree)
    seen: list[str] = []
    steps = 0

    def look(step: str, args: tuple[object, ...]) -> None:
        nonlocal steps
        steps += 1
        _note_exposed(tree, seen, step, args)
        seen.extend(f"{step}: {path.name}" for path in open_stages(tree))

    with takeback.open(tree, home=home) as project, pytest.MonkeyPatch.context() as patch:
        target = project.checkpoint()
        with project.session("agent") as session, session.turn("everything"):
            change_everything(tree)
        new = oracle.picture(tree)
        patch.setattr(operations, "hook", look)
        for verb, expected in (("undo", old), ("redo", new), ("rollback", old)):
            restore(project, verb, target.id)
            assert oracle.differences(expected, oracle.picture(tree)) == []
            seen.extend(exposed(tree))
    assert seen == []
    assert steps > 60


def open_stages(tree: Path) -> list[Path]:
    """Folders of ours that somebody else can look into."""
    return [p for p in tree.glob(".takeback-*") if stat.S_IMODE(p.lstat().st_mode) != 0o700]


@pytest.mark.timeout(SECONDS)
@pytest.mark.usefixtures("umask")
def test_nothing_is_more_readable_during_recovery(tree: Path, home: Path) -> None:
    """A restore that dies at any step, and its recovery, show nothing either."""
    before_the_turn(tree)
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        with project.session("agent") as session, session.turn("everything"):
            change_everything(tree)
    for at in range(1, 400, 1 if FULL else 24):
        moments = Moments(at, die)
        ended = in_child(partial(_undo, tree, home, moments))
        assert list(exposed(tree)) == []
        seen: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(operations, "hook", partial(_note_exposed, tree, seen))
            # It may have died when everything was done but cleaning up.
            again = contextlib.suppress(NothingToTakeBackError)
            with takeback.open(tree, home=home) as project, again:
                project.redo()
        assert seen == []
        if ended.last("done"):
            return
    raise AssertionError("an undo has more steps than anybody thought")


def _note_exposed(tree: Path, seen: list[str], step: str, _args: tuple[object, ...]) -> None:
    seen.extend(f"before {step}: {what}" for what in exposed(tree))


def _undo(tree: Path, home: Path, moments: Moments, tell: Tell) -> None:
    with takeback.open(tree, home=home) as project:
        operations.hook = moments.step
        project.undo()
        operations.hook = None
        tell({"done": True})


def test_a_file_saved_privately_meanwhile_stays_private(tree: Path, home: Path) -> None:
    """Only its mode shall change, and right then somebody puts a private file in its place."""
    file = tree / "mode"
    aside = tree.parent / "aside"
    for at in range(1, 400, 1 if FULL else 5):
        _write(file, b"for everybody", 0o644)
        with takeback.open(tree, home=home) as project:
            project.checkpoint()
            with project.session("agent") as session, session.turn("close it"):
                file.chmod(0o600)
            _write(aside, SECRETS[0], 0o600)
            moments = Moments(at, lambda: os.rename(aside, file))
            with watched_by(moments), contextlib.suppress(TakebackError):
                project.undo()
        if moments.is_over:
            return
        assert file.read_bytes() == SECRETS[0]
        assert oct(stat.S_IMODE(file.stat().st_mode)) == oct(0o600), moments.name


# -- a forged journal --------------------------------------------------------------------------

FORGED = (
    "../outside/victim",
    "d/../../outside/victim",
    "/etc/hostname",
    "//victim",
    "d//victim",
    "d/./victim",
    "./victim",
    "d/",
    "..",
    ".",
    "out/victim",
    "d\0x/victim",
)


@pytest.mark.parametrize("path", FORGED)
@pytest.mark.parametrize("wanted", ["written", "removed"])
def test_a_forged_journal_reaches_nothing(path: str, wanted: str, tree: Path, home: Path) -> None:
    """Recovery takes no path from the journal that leads out, by dots, slashes or a link."""
    outside = tree.parent / "outside"
    outside.mkdir()
    (outside / "victim").write_text("untouched")
    (tree / "d").mkdir()
    (tree / "file").write_text("content")
    (tree / "out").symlink_to("../outside")
    row = _interrupted(tree, home)
    _forge(home, row, path, keep_before=wanted == "written")
    picture, stamps = oracle.picture(tree), oracle.stamps(outside)
    shown = oracle.picture(outside)
    with contextlib.suppress(TakebackError), takeback.open(tree, home=home) as project:
        project.checkpoint()
    assert oracle.differences(shown, oracle.picture(outside)) == []
    assert oracle.differences(stamps, oracle.stamps(outside)) == []
    ours = [path for path in picture if path.startswith(b".takeback-")]
    assert oracle.differences(picture, oracle.picture(tree), ignoring=ours) == []


@pytest.mark.parametrize("id", ["../outside", "x/y", "", ".", "..", "a b"])
def test_a_forged_id_reaches_nothing(id: str, tree: Path, home: Path) -> None:
    """The id of a restore names our folder in the tree, and is an id or nothing."""
    outside = tree.parent / "outside"
    outside.mkdir()
    (outside / "n0").write_text("untouched")
    (tree / "file").write_text("content")
    row = _interrupted(tree, home)
    _change_row(home, row, "id", id)
    before = oracle.picture(tree.parent / "outside"), oracle.picture(tree)
    with contextlib.suppress(TakebackError), takeback.open(tree, home=home) as project:
        project.checkpoint()
    assert (oracle.picture(outside), oracle.picture(tree)) == before


def _interrupted(tree: Path, home: Path) -> str:
    """Leave a restore under way, in which nothing is done yet; the id of its row."""
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
        with project.session("agent") as session, session.turn("edit"):
            (tree / "file").write_text("by the turn")

    def play(_tell: Tell) -> None:
        with takeback.open(tree, home=home) as project:
            operations.hook = _Killer()
            project.undo()

    in_child(play)
    with sqlite3.connect(_ledger(home)) as db:
        ((row,),) = db.execute("SELECT id FROM journal").fetchall()
    db.close()
    return str(row)


class _Killer:
    """Ends the process when the first entry of the tree is to be changed."""

    def __call__(self, step: str, _args: tuple[object, ...]) -> None:
        """A step."""
        if step in ("exchange", "move"):
            die()


def _ledger(home: Path) -> Path:
    (ledger,) = home.glob("projects/*/ledger.db")
    return ledger


def _forge(home: Path, row: str, path: str, *, keep_before: bool) -> None:
    """Let the row speak of another path: to be written again, or to be removed."""
    with sqlite3.connect(_ledger(home)) as db:
        ((said,),) = db.execute("SELECT said FROM journal WHERE id = ?", (row,)).fetchall()
        told = json.loads(said)
        told["ops"] = [
            [path, before if keep_before else None, after] for _, before, after in told["ops"]
        ]
        db.execute("UPDATE journal SET said = ? WHERE id = ?", (json.dumps(told), row))
    db.close()


def _change_row(home: Path, row: str, column: str, value: str) -> None:
    with sqlite3.connect(_ledger(home)) as db:
        db.execute(f"UPDATE journal SET {column} = ? WHERE id = ?", (value, row))
    db.close()


# -- hostile names -----------------------------------------------------------------------------

NAMES = (
    b"-rf", b"--", b"a\nb", b"tab\there", b"\xff\xfe", b" ", b" lead", b"trail ", b"dot.", b"...",
    b"..x", b"%2e%2e", b"back\\slash", b"*", b"?", b"$(id)", b"`id`", b"'", b'"', b":(glob)x",
    b"\x1b[31m", b"\x7f", b"\xc2\x9b31m", b"\xe2\x80\xaetxt", b"e\xcc\x81", b"\xc3\xa9", b"con",
    b"nul.txt", b"Case", b"case", b"n" * 255, b".takeback", b".gitx", b"~", b"#x#", b".env",
    b"\x01",
)  # fmt: skip


def test_hostile_names_come_back(tree: Path, home: Path) -> None:
    """Files and folders of any name are undone and redone exactly."""
    root = os.fsencode(tree)
    for number, name in enumerate(NAMES):
        os.mkdir(root + b"/" + name)
        _write_bytes(root + b"/" + name + b"/" + name, b"old %d" % number)
    old = oracle.picture(tree)
    with takeback.open(tree, home=home) as project:
        _turn_on_names(project, root)
        new = oracle.picture(tree)
        for act, expected in ((project.undo, old), (project.redo, new), (project.undo, old)):
            act()
            assert oracle.differences(expected, oracle.picture(tree)) == []


def _turn_on_names(project: Project, root: bytes) -> None:
    with project.session("agent") as session, session.turn("everything"):
        for number, name in enumerate(NAMES):
            folder = root + b"/" + name
            if number % 3 == 0:
                _write_bytes(folder + b"/" + name, b"new %d" % number)
            elif number % 3 == 1:
                os.unlink(folder + b"/" + name)
                os.rmdir(folder)
            else:
                os.rename(folder + b"/" + name, folder + b"/moved")
                os.symlink(name, folder + b"/" + name)


def _write_bytes(path: bytes, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


# -- what only looks like ours -----------------------------------------------------------------

LOOKALIKE = ".takeback-stage-" + "k" * 12


def _lookalike_link(place: Path, outside: Path) -> None:
    place.symlink_to(outside)


def _lookalike_file(place: Path, _outside: Path) -> None:
    place.write_text("a file")


def _lookalike_folder(place: Path, _outside: Path) -> None:
    (place / "n0").mkdir(parents=True)
    (place / "n0/inside").write_text("somebody's")
    (place / "notes").write_text("somebody's")


def _lookalike_with_links(place: Path, outside: Path) -> None:
    place.mkdir()
    (place / "n0").symlink_to(outside / "victim")
    (place / "q1").symlink_to(outside)


def _lookalike_pipe(place: Path, _outside: Path) -> None:
    os.mkfifo(place)


@pytest.mark.parametrize(
    "make",
    [
        _lookalike_link,
        _lookalike_file,
        _lookalike_folder,
        _lookalike_with_links,
        _lookalike_pipe,
    ],
)
def test_what_only_looks_like_our_folder_stops_nobody(
    make: Callable[[Path, Path], None], tree: Path, home: Path
) -> None:
    """An entry with the name of our folder in the tree leads nowhere and breaks nothing."""
    outside = tree.parent / "outside"
    outside.mkdir()
    (outside / "victim").write_text("untouched")
    (tree / "file").write_text("old")
    with takeback.open(tree, home=home) as project:
        project.checkpoint()
    stamps = oracle.stamps(outside)
    make(tree / LOOKALIKE, outside)
    in_child(lambda _tell: _die_with_the_lock(tree, home))
    with takeback.open(tree, home=home) as project:
        with project.session("agent") as session, session.turn("edit"):
            (tree / "file").write_text("new")
        project.undo()
        assert (tree / "file").read_text() == "old"
        project.redo()
        assert (tree / "file").read_text() == "new"
    assert oracle.differences(stamps, oracle.stamps(outside)) == []
    if make is _lookalike_folder:
        assert (tree / LOOKALIKE / "notes").read_text() == "somebody's"
        assert (tree / LOOKALIKE / "n0/inside").read_text() == "somebody's"


def _die_with_the_lock(tree: Path, home: Path) -> None:
    """Let the next one who takes the lock clean up."""
    with takeback.open(tree, home=home) as project, project.workspace.held():
        die()
