"""Files outside the project that an edit tool named: captured, shown, and undone with the turn."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import oracle
import program
import takeback
from faults.harness import settle
from faults.report import stage
from hostile.ground import PLAIN_USER
from hostile.stage import in_child as in_own_world
from spoken import of_remark, sentence, spoken
from takeback.cli.screens import picker
from takeback.disk import operations
from takeback.errors import (
    BlockedError,
    ConflictError,
    DecisionNeededError,
    NothingToTakeBackError,
    StalePlanError,
)
from takeback.model.ids import is_stage
from takeback.model.reasons import Reason
from takeback.project import Project

TEXT = b"".join(b"line %d\n" % number for number in range(12))


class Desk:
    """A project, a folder beside it, and an agent with an edit tool."""

    def __init__(self, tree: Path, home: Path) -> None:
        self.tree = tree
        self.home = home
        self.away = tree.parent / "away"
        self.away.mkdir(exist_ok=True)
        (tree / "inside").write_bytes(b"inside\n")
        self.project = takeback.open(tree, home=home)
        self.project.checkpoint()
        self.agent = self.project.session("claude")

    def edit(self, *files: tuple[Path, bytes | None], label: str = "edit") -> str:
        """A turn of one step, in which an edit tool writes or deletes files; the turn's id."""
        with self.agent.turn(label, whole=False) as turn:
            given = {"files": [str(path) for path, _ in files]}
            with turn.step("Edit", given):
                for path, data in files:
                    put(path, data)
        return turn.id

    def outside(self, turn: str) -> dict[str, tuple[str, str]]:
        """What the log says about files outside."""
        found = self.project.turn(turn).outside
        return {os.fsdecode(each.path): (each.verb, each.reason) for each in found}


def put(path: Path, data: bytes | None) -> None:
    """Write a file, or delete it."""
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)


@pytest.fixture
def desk(tree: Path, home: Path) -> Iterator[Desk]:
    """A desk with nothing done yet."""
    made = Desk(tree, home)
    with made.project:
        yield made


def litter(*folders: Path) -> list[str]:
    """Folders of ours that are left."""
    return [name for at in folders for name in os.listdir(at) if is_stage(os.fsencode(name))]


# -- capture -----------------------------------------------------------------------------------


def test_it_is_captured_before_the_edit(desk: Desk) -> None:
    """When the step begins, what the file holds is in the store, also if nobody ends anything."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    turn = desk.agent.turn("edit")
    turn.step("Write", {"file_path": str(file)})
    with takeback.open(desk.tree, home=desk.home) as another:
        (event,) = another.workspace.ledger.events_of("OutsideSeen")
        (row,) = another.workspace.ledger._reader.rows("SELECT path, before, after FROM outside")
        assert row[0] == os.fsencode(file)
        assert row[2] is None
        kind, data = another.workspace.objects.read(bytes.fromhex(json.loads(row[1])[4]))
    assert data == TEXT
    assert event.payload is not None
    assert event.payload["when"] == "before"
    assert kind == 3


def test_a_step_that_never_ended_is_closed_with_its_turn(desk: Desk) -> None:
    """What a step changed is known when its turn ends, also if the step itself never did."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    with desk.agent.turn("edit", whole=False) as turn:
        turn.step("Write", {"file_path": str(file)})
        file.write_bytes(b"new\n")
    assert desk.outside(turn.id) == {str(file): ("write", "")}
    desk.project.undo(yes=True)
    assert file.read_bytes() == TEXT


def test_a_turn_that_only_works_outside_is_on_the_stack(desk: Desk) -> None:
    """A turn that changed nothing in the project, but a file outside, is what undo takes back."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    turn = desk.edit((file, b"new\n"))
    assert desk.project.plan_undo().turn == turn
    named_only = desk.agent.turn("only named", whole=False)
    named_only.step("Edit", {"file_path": str(file)}).end()
    named_only.end()
    plan = desk.project.plan_undo()
    assert (plan.turn, plan.passed_over) == (turn, 1)
    assert desk.outside(named_only.id) == {}


@pytest.mark.parametrize("what", ["link", "fifo", "folder", "huge", "store", "proc", "git"])
def test_what_cannot_be_covered_is_said(desk: Desk, what: str) -> None:
    """A link, something special, too large or not of a disk: the turn says why, and goes on."""
    file = desk.away / "thing"
    if what == "link":
        file.symlink_to("nowhere")
    elif what == "fifo":
        os.mkfifo(file)
    elif what == "folder":
        file.mkdir()
    elif what == "huge":
        with open(file, "wb") as sparse:
            sparse.truncate(17 << 20)
    elif what == "store":
        file = desk.home / "registry"
    elif what == "proc":
        file = Path("/proc/self/comm")
    else:
        (desk.away / ".git").mkdir()
        file = desk.away / ".git/config"
        file.write_text("[core]\n")
    reasons = {
        "link": "a link",
        "fifo": "a FIFO, socket or device",
        "folder": "a folder",
        "huge": "too large",
        "store": "in a store of Takeback",
        "proc": "a system file, not on a disk",
        "git": "version control data",
    }
    before = oracle.picture(desk.away)
    given = {"files": [str(file), str(desk.tree / "inside")]}
    with desk.agent.turn("edit", whole=False) as turn, turn.step("Edit", given):
        (desk.tree / "inside").write_bytes(b"changed\n")
    said = desk.outside(turn.id)
    path = os.path.join(os.path.realpath(file.parent), file.name)
    assert said.get(path) == ("", reasons[what])
    report = desk.project.undo()
    assert (desk.tree / "inside").read_bytes() == b"inside\n"
    assert (path, f"not covered ({reasons[what]})") in [
        (each.path, of_remark(each)) for each in report.plan.skipped
    ]
    assert oracle.picture(desk.away) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_is_somebody_elses_is_not_covered(desk: Desk) -> None:
    """A file of another user is not read into the store, and that is said."""
    file = desk.away / "theirs"
    file.write_bytes(TEXT)
    os.chown(file, 65534, 65534)
    turn = desk.edit((file, b"new\n"))
    assert desk.outside(turn) == {str(file): ("", "owned by another user")}
    assert TEXT not in b"".join(path.read_bytes() for path in desk.home.rglob("*.pack"))


def test_a_link_leads_to_what_is_covered(desk: Desk) -> None:
    """A tool that writes through a link changes another file, and that one comes back."""
    (desk.away / "dotfiles").mkdir()
    file = desk.away / "dotfiles/rc"
    file.write_bytes(TEXT)
    (desk.away / "rc").symlink_to("dotfiles/rc")
    (desk.tree / "conf").symlink_to(desk.away / "dotfiles/rc")
    for link in (desk.away / "rc", desk.tree / "conf"):
        turn = desk.edit((link, b"new\n"))
        assert desk.outside(turn)[str(file)] == ("write", "")
        desk.project.undo(yes=True)
        assert file.read_bytes() == TEXT
        assert link.is_symlink()


def test_what_moves_after_an_interrupt_is_not_the_turns(desk: Desk) -> None:
    """Your save after the moment of an interrupt is not taken for the agent's, and that is said."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    turn = desk.agent.turn("edit", whole=False)
    turn.step("Edit", {"file_path": str(file)})
    file.write_bytes(b"by the agent\n")
    settle(desk.tree.parent)
    interrupted = time.time()
    settle(desk.tree.parent)
    file.write_bytes(b"by you\n")
    desk.agent.turn("next", interrupted_at=interrupted)
    assert desk.outside(turn.id) == {str(file): ("", "changed after its step ended")}
    with pytest.raises(NothingToTakeBackError):
        desk.project.undo(yes=True)
    assert file.read_bytes() == b"by you\n"


# -- undo and redo -------------------------------------------------------------------------------


def test_undo_and_redo_are_exact(desk: Desk) -> None:
    """Content and mode come back with undo, and redo brings back what the turn had left."""
    edited, gone, made = desk.away / "edited", desk.away / "gone", desk.away / "made"
    edited.write_bytes(TEXT)
    edited.chmod(0o640)
    gone.write_bytes(b"to be deleted\n")
    gone.chmod(0o600)
    before = oracle.picture(desk.tree.parent / "away"), oracle.picture(desk.tree)
    given = {"files": [str(edited), str(gone), str(made), "inside"]}
    with desk.agent.turn("edit", whole=False) as turn, turn.step("Edit", given):
        edited.write_bytes(b"new\n")
        edited.chmod(0o755)
        gone.unlink()
        made.write_bytes(b"made\n")
        (desk.tree / "inside").write_bytes(b"changed\n")
    after = oracle.picture(desk.away), oracle.picture(desk.tree)
    assert desk.outside(turn.id) == {
        str(edited): ("write", ""),
        str(gone): ("delete", ""),
        str(made): ("create", ""),
    }
    for _ in range(2):
        desk.project.undo(yes=True)
        assert (oracle.picture(desk.away), oracle.picture(desk.tree)) == before
        desk.project.redo(yes=True)
        assert (oracle.picture(desk.away), oracle.picture(desk.tree)) == after
    assert litter(desk.away, desk.tree) == []
    assert desk.project.verify().ok


def test_a_mode_alone_comes_back(desk: Desk) -> None:
    """If only the mode was changed, only the mode goes back: the file stays the same one."""
    file = desk.away / "tool"
    file.write_bytes(TEXT)
    file.chmod(0o700)
    with desk.agent.turn("chmod", whole=False) as turn, turn.step("Edit", {"path": str(file)}):
        file.chmod(0o644)
    inode = file.stat().st_ino
    desk.project.undo(yes=True)
    assert (file.stat().st_mode & 0o7777, file.stat().st_ino) == (0o700, inode)


def test_several_steps_are_taken_back_together(desk: Desk) -> None:
    """Two edits of one file go back to what it was before the first; yours in between stays."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    with desk.agent.turn("edit twice", whole=False) as turn:
        with turn.step("Edit", {"file_path": str(file)}):
            file.write_bytes(TEXT.replace(b"line 1\n", b"agent 1\n"))
        file.write_bytes(file.read_bytes().replace(b"line 6\n", b"you 6\n"))
        with turn.step("Edit", {"file_path": str(file)}):
            file.write_bytes(file.read_bytes().replace(b"line 11\n", b"agent 11\n"))
    desk.project.undo(yes=True)
    assert file.read_bytes() == TEXT.replace(b"line 6\n", b"you 6\n")


def test_what_you_changed_since_is_merged(desk: Desk) -> None:
    """Your edit elsewhere in the file stays when the agent's is taken back, and put back."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, TEXT.replace(b"line 1\n", b"agent\n")))
    file.write_bytes(file.read_bytes().replace(b"line 9\n", b"you\n"))
    plan = desk.project.plan_undo()
    assert [(c.raw_path, c.verb, c.outside) for c in plan.changes] == [
        (os.fsencode(file), "merge", True)
    ]
    desk.project.apply(plan, yes=True)
    assert file.read_bytes() == TEXT.replace(b"line 9\n", b"you\n")
    desk.project.redo(yes=True)
    assert file.read_bytes() == TEXT.replace(b"line 9\n", b"you\n").replace(b"line 1\n", b"agent\n")


@pytest.mark.parametrize("decision", ["", "keep-mine", "take-back", "skip-conflicts"])
def test_a_conflict_is_decided_like_any_other(desk: Desk, decision: str) -> None:
    """What cannot be merged is a conflict, also with consent, until somebody decides."""
    file = desk.away / "rc"
    file.write_bytes(b"old\n")
    desk.edit((file, b"agent\n"), (desk.tree / "inside", b"changed\n"))
    file.write_bytes(b"you\n")
    if not decision:
        with pytest.raises(ConflictError) as refused:
            desk.project.undo(yes=True)
        assert refused.value.conflicts == ((str(file), Reason("same-lines", by=("you",))),)
        assert (desk.tree / "inside").read_bytes() == b"changed\n"
        assert file.read_bytes() == b"you\n"
        return
    desk.project.undo(decide=decision, yes=True)
    assert file.read_bytes() == (b"old\n" if decision == "take-back" else b"you\n")
    assert (desk.tree / "inside").read_bytes() == b"inside\n"


def test_what_is_skipped_is_left_for_the_next_undo(desk: Desk) -> None:
    """With one hunk in conflict the whole file waits, and the next undo asks about it again."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    theirs = TEXT.replace(b"line 2\n", b"their 2\n").replace(b"line 9\n", b"their 9\n")
    desk.edit((file, theirs))
    mine = theirs.replace(b"their 2\n", b"my 2\n")
    file.write_bytes(mine)
    desk.project.undo(yes=True, decide="skip-conflicts")
    assert file.read_bytes() == mine
    with pytest.raises(ConflictError):
        desk.project.undo(yes=True)
    desk.project.undo(yes=True, decide="take-back")
    assert file.read_bytes() == TEXT


def test_a_later_turn_stays(desk: Desk) -> None:
    """Undo of a turn in the middle keeps what a later one did to the same file."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    first = desk.edit((file, TEXT.replace(b"line 1\n", b"first\n")), label="first")
    desk.edit((file, file.read_bytes().replace(b"line 9\n", b"second\n")), label="second")
    desk.project.undo(first, yes=True)
    assert file.read_bytes() == TEXT.replace(b"line 9\n", b"second\n")


def test_single_paths(desk: Desk) -> None:
    """A file outside can be named alone; without being named it stays when others are."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, b"new\n"), (desk.tree / "inside", b"changed\n"))
    desk.project.undo(paths=["inside"])
    assert file.read_bytes() == b"new\n"
    desk.project.redo()
    desk.project.undo(paths=[file], yes=True)
    assert file.read_bytes() == TEXT
    assert (desk.tree / "inside").read_bytes() == b"changed\n"


def test_a_rollback_leaves_them_alone_and_says_so(desk: Desk) -> None:
    """A rollback is about the project; it counts the files outside that stay."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    turn = desk.edit((file, b"new\n"), (desk.tree / "inside", b"changed\n"))
    report = desk.project.rollback(f"{turn}-", yes=True)
    assert file.read_bytes() == b"new\n"
    assert spoken(report.plan.stays) == ("1 file outside the project stays as it is",)


def test_a_folder_that_the_tool_made_stays(desk: Desk) -> None:
    """A file in a folder that was not there yet goes with undo, and comes back with redo."""
    file = desk.away / "new/deep/file"
    with desk.agent.turn("make", whole=False) as turn, turn.step("Write", {"path": str(file)}):
        file.parent.mkdir(parents=True)
        file.write_bytes(b"made\n")
    desk.project.undo(yes=True)
    assert not file.exists()
    assert file.parent.is_dir()
    desk.project.redo(yes=True)
    assert file.read_bytes() == b"made\n"
    shutil.rmtree(desk.away / "new")
    assert desk.project.plan_undo().kept[0].reason == Reason("already-as-it-was")


# -- consent -------------------------------------------------------------------------------------


def test_nothing_outside_changes_without_consent(desk: Desk) -> None:
    """Undo and redo ask before they touch a file outside, also of the newest turn."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, b"new\n"))
    with pytest.raises(DecisionNeededError) as refusal:
        desk.project.undo()
    assert spoken(refusal.value.reasons)[0].startswith("this also changes 1 file outside")
    with pytest.raises(DecisionNeededError):
        desk.project.apply(desk.project.plan_undo())
    assert file.read_bytes() == b"new\n"
    desk.project.undo(yes=True)
    with pytest.raises(DecisionNeededError):
        desk.project.redo()
    assert file.read_bytes() == TEXT


def test_the_command_previews_it(desk: Desk) -> None:
    """Bare `takeback undo` shows the file in a part of its own, and ends with 3 without a yes."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    turn = desk.edit((file, b"new\n"))
    ran = _run(desk, "undo")
    assert ran.returncode == 3
    assert f"Outside the project\n  write   {file}\n" in ran.stdout
    assert file.read_bytes() == b"new\n"
    ran = _run(desk, "undo", "--yes", "--json")
    said = json.loads(ran.stdout)
    assert [(c["path"], c["outside"]) for c in said["changes"]] == [(str(file), True)]
    assert file.read_bytes() == TEXT
    shown = _run(desk, "show", turn)
    assert f"Outside the project\n  write   {file}\n" in shown.stdout
    log = json.loads(_run(desk, "log", "--all", "--json").stdout)
    assert log["turns"][0]["outside"] == [{"path": str(file), "verb": "write", "reason": None}]


def _run(desk: Desk, *words: str) -> "subprocess.CompletedProcess[str]":
    return program.text(words, desk.tree, {**os.environ, "TAKEBACK_HOME": str(desk.home)})


def test_a_plan_for_another_state_is_refused(desk: Desk) -> None:
    """If the file changed after it was planned, nothing is done, inside neither."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, b"new\n"), (desk.tree / "inside", b"changed\n"))
    plan = desk.project.plan_undo()
    file.write_bytes(b"saved\n")
    with pytest.raises(StalePlanError):
        desk.project.apply(plan, yes=True)
    assert (desk.tree / "inside").read_bytes() == b"changed\n"
    assert file.read_bytes() == b"saved\n"


# -- the folder changes ----------------------------------------------------------------------------


def _swap(desk: Desk) -> None:
    os.rename(desk.away, desk.tree.parent / "moved")
    (desk.tree.parent / "victim").mkdir()
    (desk.tree.parent / "victim/rc").write_bytes(b"new\n")
    desk.away.symlink_to("victim")


def test_a_folder_that_became_a_link_is_refused(desk: Desk) -> None:
    """A link in the place of the folder leads nobody elsewhere: refused, and nothing is touched."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, b"new\n"), (desk.tree / "inside", b"changed\n"))
    plan = desk.project.plan_undo()
    _swap(desk)
    stamps = oracle.stamps(desk.tree.parent / "victim"), oracle.stamps(desk.tree.parent / "moved")
    with pytest.raises(StalePlanError):
        desk.project.apply(plan, yes=True)
    with pytest.raises(ConflictError):
        desk.project.undo(yes=True)
    assert (desk.tree / "inside").read_bytes() == b"changed\n"
    assert stamps == (
        oracle.stamps(desk.tree.parent / "victim"),
        oracle.stamps(desk.tree.parent / "moved"),
    )


@pytest.mark.parametrize("step", ["mkdir", "create", "exchange"])
def test_no_swap_of_the_folder_leads_elsewhere(desk: Desk, step: str) -> None:
    """A folder that is swapped for a link meanwhile keeps what it held: ours or old."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, b"new\n"))
    done: list[str] = []

    def hook(name: str, _args: tuple[object, ...]) -> None:
        if name == step and not done:
            done.append(name)
            _swap(desk)

    operations.hook = hook
    try:
        desk.project.undo(yes=True)
    except takeback.TakebackError:
        pass
    finally:
        operations.hook = None
    assert done
    assert os.listdir(desk.tree.parent / "victim") == ["rc"]
    assert (desk.tree.parent / "victim/rc").read_bytes() == b"new\n"
    assert (desk.tree.parent / "moved/rc").read_bytes() in (TEXT, b"new\n")


def test_an_ordinary_user() -> None:
    """Folders on the way need not be readable; one that cannot be changed is refused first."""
    with stage() as folder:
        folder.chmod(0o711)
        for name in ("tree", "home", "away"):
            (folder / name).mkdir(mode=0o700)
            if os.geteuid() == 0:
                os.chown(folder / name, PLAIN_USER, PLAIN_USER)
        in_own_world(lambda: _in_a_shut_folder(folder), plain=True)


def _in_a_shut_folder(folder: Path) -> None:
    desk = Desk(folder / "tree", folder / "home")
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, b"new\n"), (desk.tree / "inside", b"changed\n"))
    desk.away.chmod(0o555)
    with pytest.raises(BlockedError, match="is not writable"):
        desk.project.undo(yes=True)
    assert (desk.tree / "inside").read_bytes() == b"changed\n"
    assert litter(desk.tree, desk.away) == []
    desk.away.chmod(0o755)
    desk.project.undo(yes=True)
    assert file.read_bytes() == TEXT
    desk.project.redo(yes=True)
    desk.away.chmod(0)
    with pytest.raises(ConflictError) as refusal:
        desk.project.undo(yes=True)
    assert "cannot be opened" in sentence(refusal.value.conflicts[0][1])
    desk.away.chmod(0o700)
    assert file.read_bytes() == b"new\n"


def test_a_save_in_between_wins(desk: Desk) -> None:
    """If somebody saves the file in the moment of the exchange, the save stays, and it is said."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, b"new\n"))
    done: list[str] = []

    def hook(name: str, _args: tuple[object, ...]) -> None:
        if name == "exchange" and not done:
            done.append(name)
            (desk.away / "other").write_bytes(b"saved\n")
            os.rename(desk.away / "other", file)

    operations.hook = hook
    try:
        report = desk.project.undo(yes=True)
    finally:
        operations.hook = None
    assert file.read_bytes() == b"saved\n"
    assert [each.raw_path for each in report.kept] == [os.fsencode(file)]
    assert litter(desk.away) == []


# -- the log --------------------------------------------------------------------------------------


def test_the_table_follows_from_the_events(desk: Desk) -> None:
    """Rebuilt from the log, the table of files outside is the same, row by row."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, TEXT.replace(b"line 1\n", b"agent\n")))
    desk.project.undo(yes=True)
    file.write_bytes(TEXT + b"yours\n")
    desk.project.redo(yes=True)
    query = "SELECT * FROM outside ORDER BY number"
    before = desk.project.workspace.ledger._reader.rows(query)
    assert len(before) >= 4
    desk.project.rebuild()
    assert desk.project.workspace.ledger._reader.rows(query) == before
    assert desk.project.verify().ok


def test_a_forged_journal_reaches_no_other_file(desk: Desk) -> None:
    """A row of the journal that names a file which no tool ever named is not acted on."""
    file, other = desk.away / "rc", desk.away / "other"
    file.write_bytes(TEXT)
    other.write_bytes(b"new\n")
    desk.edit((file, b"new\n"))
    (row,) = desk.project.workspace.ledger._reader.rows("SELECT before, after FROM outside")
    forge = "INSERT OR REPLACE INTO journal VALUES ('kkkkkkkkkkkk', 'applying', ?, 1)"

    def said(folder: str, name: str) -> str:
        away = f'[["{folder}",[["{name}",{row[0]},{row[1]}]]]]'
        return f'{{"verb":"undo","title":"x","parents":[],"ops":[],"away":{away}}}'

    for folder in (str(desk.away), f"{desk.away}/../{desk.away.name}"):
        with desk.project.workspace.ledger._transaction() as db:
            db.execute(forge, (said(folder, "other"),))
        stamps = oracle.stamps(desk.away)
        with takeback.open(desk.tree, home=desk.home) as opened:
            assert "its journal is damaged" in sentence(opened.recovered[0])
        assert oracle.stamps(desk.away) == stamps
    # The true file can be named by a true row only: then recovery brings it back.
    with desk.project.workspace.ledger._transaction() as db:
        db.execute(forge, (said(str(desk.away), "rc"),))
    with takeback.open(desk.tree, home=desk.home) as opened:
        assert "was taken back" in sentence(opened.recovered[0])
    assert file.read_bytes() == TEXT


def test_a_damaged_journal_is_set_aside_with_what_it_displaced(desk: Desk) -> None:
    """If the row of a restore cannot be read, our folder beside the file gets a name to be seen."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, b"new\n"))
    (desk.away / ".takeback-stage-kkkkkkkkkkkk").mkdir()
    (desk.away / ".takeback-stage-kkkkkkkkkkkk/n0").write_bytes(b"displaced\n")
    with desk.project.workspace.ledger._transaction() as db:
        db.execute("INSERT INTO journal VALUES ('kkkkkkkkkkkk', 'applying', '{', 1)")
    made = desk.project.verify(set_aside=True)
    assert (desk.away / "takeback-found-kkkkkkkkkkkk/n0").read_bytes() == b"displaced\n"
    assert str(desk.away / "takeback-found-kkkkkkkkkkkk") in sentence(made.repaired[0])


def test_a_save_in_the_store_only_can_be_read(desk: Desk) -> None:
    """What somebody wrote to the displaced file outside is in the store, and `show` prints it."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, b"new\n"))
    with open(file, "ab", buffering=0) as late:
        report = desk.project.undo(yes=True)
        late.write(b"late\n")
    assert [each.raw_path for each in report.rescued] == [os.fsencode(file)]
    with takeback.open(desk.tree, home=desk.home) as opened, opened.workspace.held():
        pass
    assert b"".join(desk.project.rescued(report.id, os.fsencode(file))) == b"new\nlate\n"
    assert file.read_bytes() == TEXT
    assert litter(desk.away) == []


def test_a_second_request_reports_the_same(desk: Desk) -> None:
    """A retry of an undo tells the same files outside, and changes nothing."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, b"new\n"))
    first = desk.project.undo(yes=True, request="one")
    file.write_bytes(b"later\n")
    again = desk.project.undo(yes=True, request="one")
    assert again.id == first.id
    assert [(c.path, c.verb, c.outside) for c in again.plan.changes] == [
        (c.path, c.verb, c.outside) for c in first.plan.changes
    ]
    assert file.read_bytes() == b"later\n"


def test_another_project_is_outside_like_anything_else(desk: Desk, tmp_path: Path) -> None:
    """A file in another project comes back with the turn of the project in which it ran."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_bytes(TEXT)
    with takeback.open(other, home=desk.home) as second:
        second.checkpoint()
        desk.edit((other / "file", b"new\n"))
        desk.project.undo(yes=True)
        assert (other / "file").read_bytes() == TEXT
        assert isinstance(second, Project)
        assert litter(other) == []


def test_it_can_be_left_alone_in_the_interactive_preview(desk: Desk) -> None:
    """Whoever takes one of both away means the other one by its name, and nothing else."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    desk.edit((file, b"new\n"), (desk.tree / "inside", b"changed\n"))
    plan = desk.project.plan_undo()
    model = picker.begin(plan, lambda _: "")
    assert ("write", os.fsencode(file), "outside the project") in [
        (item.verb, item.path, item.said) for item in model.items
    ]
    for off, left in ((b"inside", os.fsencode(file)), (os.fsencode(file), b"inside")):
        choice = model.choice._replace(off=frozenset([off]))
        named = picker.chosen(model._replace(choice=choice))
        assert named == [left]
        chosen = desk.project.plan_undo(paths=named)
        assert [change.raw_path for change in chosen.changes] == [left]


def test_two_turns_at_once_and_one_of_them_put_back(desk: Desk) -> None:
    """Turns that are taken back together go back outside, too, and each can be put back alone."""
    file = desk.away / "rc"
    file.write_bytes(TEXT)
    first = desk.edit((file, TEXT.replace(b"line 1\n", b"first\n")), label="first")
    second = desk.edit((file, file.read_bytes().replace(b"line 9\n", b"second\n")), label="second")
    both = file.read_bytes()
    desk.project.undo([first, second], yes=True)
    assert file.read_bytes() == TEXT
    desk.project.redo(second, yes=True)
    assert file.read_bytes() == TEXT.replace(b"line 9\n", b"second\n")
    desk.project.redo(first, yes=True)
    assert file.read_bytes() == both
