"""What a turn deletes or overwrites outside cover is reported, and how to make it again.

All of it from outside: real files, the command line, and what it prints.
"""

import json
import os
import re
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

import program
import takeback
from hostile.ground import PLAIN_USER
from hostile.stage import in_child as in_own_world
from takeback.disk import operations
from takeback.model.beyond import losses
from takeback.model.beyond.losses import CHANGED, GONE, REPLACED, SHRUNK

BIG = 20_000_000
MORE = 21_000_000


class Desk:
    """A project with a big file, a big folder that can be made again, and one covered file."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        big(tree / "big.bin")
        crowd(tree / "node_modules")
        (tree / "package-lock.json").write_text("{}\n")
        (tree / "a.txt").write_text("one\n")
        self.tb("checkpoint")
        # Else nothing is lost, because it is rescued: `tests/effects`.
        settings = Path(os.environ["TAKEBACK_HOME"]) / "config.toml"
        settings.write_text('[guard]\nmode = "off"\n')

    def tb(self, *words: str) -> str:
        """What a command prints, on both streams; it succeeds."""
        done = program.text(words, self.tree)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return re.sub("   +", "  ", done.stdout + done.stderr)

    def sh(self, script: str) -> str:
        """A turn that runs a shell script; what `takeback run` prints of it."""
        return self.tb("run", "--", "/bin/sh", "-c", script)

    def json(self, *words: str) -> Any:  # noqa: ANN401 - as JSON is
        """What a command says for programs."""
        return json.loads(program.text([*words, "--json"], self.tree).stdout)

    def losses(self, turn: str = "") -> dict[str, str]:
        """What a turn lost, or the newest: path and what happened."""
        turns = self.json("log", "--all")["turns"]
        (found,) = [x for x in turns if x["id"] == (turn or turns[0]["id"])]
        return {x["path"]: x["what"] for x in found["losses"]}

    def stages(self, *scripts: str) -> str:
        """A turn of several shell steps, with a look after each; its id."""
        with (
            takeback.open(self.tree) as project,
            project.session("claude") as session,
            session.turn("stages", whole=False) as turn,
        ):
            for script in scripts:
                with turn.step("Bash", {"command": script}):
                    assert os.system(f"cd '{self.tree}' && {script}") == 0
        return turn.id


def big(path: Path, size: int = BIG) -> None:
    """Write a file that is too large to be covered."""
    with path.open("wb") as file:
        file.truncate(size)


def crowd(folder: Path, number: int = 201) -> None:
    """Make a folder with many entries."""
    folder.mkdir()
    for n in range(number):
        (folder / str(n)).touch()


@pytest.fixture
def desk(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Such a project; nothing waits for the disk."""
    assert home.is_dir()
    monkeypatch.setattr(operations, "sync", False)
    return Desk(tree)


# -- deleted -------------------------------------------------------------------------------------


def test_a_deleted_big_file_is_reported_everywhere(desk: Desk) -> None:
    """Run, log, show and bare `takeback` say what is gone, and how large it was."""
    told = desk.sh("rm big.bin")
    assert "nothing changed" not in told
    assert "big.bin  deleted, 20.0 MB" in told
    assert "cannot be restored" in told
    assert "takes it back" not in told
    assert "big.bin deleted" in desk.tb("log")
    assert "no changes" not in desk.tb("log")
    assert "big.bin deleted" in desk.tb()
    assert "big.bin  deleted, 20.0 MB" in desk.tb("show", "@~0")


def test_undo_of_a_loss_says_that_it_cannot(desk: Desk) -> None:
    """A turn whose only effect is a loss is an entry of the stack; the one before is left alone."""
    desk.sh("echo two > a.txt")
    desk.sh("rm big.bin")
    assert "big.bin  deleted, 20.0 MB" in desk.tb("undo", "--dry-run")
    told = desk.tb("undo")
    assert "restored nothing" in told
    assert "big.bin  deleted, 20.0 MB" in told
    assert (desk.tree / "a.txt").read_text() == "two\n"
    assert not (desk.tree / "big.bin").exists()
    assert "restored 1 file" in desk.tb("undo")
    assert (desk.tree / "a.txt").read_text() == "one\n"


def test_a_deleted_folder_is_named_with_what_makes_it_again(desk: Desk) -> None:
    """`undo` restores what is covered, and says what it does not bring back."""
    told = desk.sh("rm -rf node_modules; echo two > a.txt")
    assert "node_modules/  deleted, at least 2" in told
    assert "`npm ci` rebuilds it" in told
    assert "takes the rest back" in told
    told = desk.tb("undo")
    assert "restored 1 file" in told
    assert "node_modules/  deleted" in told
    assert "`npm ci` rebuilds it" in told
    assert "node_modules/" not in desk.tb("redo")


def test_what_was_made_again_since_is_not_missed(desk: Desk) -> None:
    """An undo does not complain about a folder that is there."""
    desk.sh("rm -rf node_modules; echo two > a.txt")
    crowd(desk.tree / "node_modules")
    assert "node_modules/" not in desk.tb("undo")


def test_deleted_and_made_again_in_one_turn_is_replaced(desk: Desk) -> None:
    """Whether or not somebody looked in between; and a rebuild alone is nothing to undo."""
    again = "cp -r node_modules new; rm -rf node_modules; mv new node_modules"
    told = desk.sh(again)  # with another inode
    assert desk.losses() == {"node_modules": REPLACED}
    assert "node_modules/  deleted and created again" in told
    turn = desk.stages("mv node_modules ../old", "cp -r ../old node_modules")
    assert desk.losses(turn) == {"node_modules": REPLACED}
    assert "nothing to undo" in program.text(["undo"], desk.tree).stderr


def test_made_and_deleted_in_one_turn_is_no_loss(desk: Desk) -> None:
    """What was not there before the turn is not missed after it."""
    turn = desk.stages("truncate -s 20000000 new.bin", "rm new.bin")
    assert desk.losses(turn) == {}


def test_losses_inside_a_deleted_folder(desk: Desk) -> None:
    """A covered folder comes back without what was not covered in it."""
    app = desk.tree / "app"
    app.mkdir()
    (app / "yarn.lock").write_text("")
    (app / "main.js").write_text("x\n")
    crowd(app / "node_modules")
    (app / ".git").mkdir()
    told = desk.sh("rm -rf app")
    assert desk.losses() == {"app/node_modules": GONE, "app/.git": GONE}
    assert "`yarn install` in app rebuilds it" in told
    assert "app/.git" in desk.tb("undo")
    assert (app / "main.js").exists()


# -- overwritten ---------------------------------------------------------------------------------


def test_an_overwritten_big_file_is_no_creation(desk: Desk) -> None:
    """It becomes small, and covered: the old content was not kept, and the new one stays."""
    told = desk.sh("echo small > big.bin")
    assert "create" not in told
    assert "big.bin  overwritten; its old content (20.0 MB) was not kept" in told
    assert "takes it back" not in told
    told = desk.tb("undo")
    assert "overwritten; its old content" in told
    assert (desk.tree / "big.bin").read_text() == "small\n"
    desk.tb("redo")
    assert (desk.tree / "big.bin").read_text() == "small\n"
    desk.sh("echo other > big.bin")
    desk.tb("undo")
    assert (desk.tree / "big.bin").read_text() == "small\n"


def test_a_new_file_in_the_place_of_a_lost_one_is_never_deleted(desk: Desk) -> None:
    """Also if the old one was seen to be gone in between: unknown is not absent."""
    turn = desk.stages("rm big.bin", "echo small > big.bin")
    told = desk.tb("undo", turn, "--yes")
    assert (desk.tree / "big.bin").read_text() == "small\n"
    assert "big.bin" in told


def test_a_smaller_or_new_big_file_is_overwritten(desk: Desk) -> None:
    """Another inode or fewer bytes: what was there is lost."""
    desk.sh("truncate -s 18000000 big.bin")
    assert desk.losses() == {"big.bin": REPLACED}
    desk.sh("truncate -s 21000000 other.tmp && mv other.tmp big.bin")
    assert desk.losses() == {"big.bin": REPLACED}
    assert "overwritten" in desk.tb("undo")
    assert (desk.tree / "big.bin").stat().st_size == MORE


def test_a_log_that_grows_is_only_mentioned(desk: Desk) -> None:
    """It may be a server's: it is no entry of the stack, and no reason for a checkpoint."""
    desk.sh("echo two > a.txt")
    before = desk.json()["checkpoints"]
    told = desk.sh("echo more >> big.bin")
    assert "big.bin  changed during this turn (20.0 MB before)" in told
    assert "cannot be restored" not in told
    assert desk.losses() == {"big.bin": CHANGED}
    assert desk.json()["checkpoints"] == before
    assert "big.bin changed" in desk.tb("log")
    told = desk.tb("undo")
    assert "skipped 1 newer turn" in told
    assert "not covered, and changed since: `big.bin`" in told
    assert (desk.tree / "a.txt").read_text() == "one\n"


def test_a_growing_log_is_recorded_once_a_turn(desk: Desk) -> None:
    """However often it is looked at."""
    turn = desk.stages(*["echo more >> big.bin"] * 5)
    assert desk.losses(turn) == {"big.bin": CHANGED}
    with takeback.open(desk.tree) as project:
        seen = [e for e in project.workspace.ledger.events() if e.kind == "LossesSeen"]
    assert len(seen) == 1


def test_your_own_changes_to_left_out_files_are_nobodys_loss(desk: Desk) -> None:
    """What changes between turns is no turn's."""
    big(desk.tree / "big.bin", MORE)
    shutil.rmtree(desk.tree / "node_modules")
    desk.sh("echo two > a.txt")
    assert desk.losses() == {}


def test_touching_nothing_is_no_loss(desk: Desk) -> None:
    """Neither is what changes inside a folder that is left out; that is said once."""
    told = desk.sh("touch node_modules/x; cat big.bin > /dev/null")
    assert "nothing changed" in told
    assert desk.losses() == {}
    assert "Takeback records no changes inside these folders" in desk.tb()


def test_a_left_out_folder_that_becomes_small(desk: Desk) -> None:
    """It is covered from now on, and what it held before was not kept."""
    told = desk.sh("cd node_modules && ls | tail -n +5 | xargs rm -f")
    assert desk.losses() == {"node_modules": SHRUNK}
    assert "covered from now on" in told
    assert "write" not in told
    assert "mkdir" not in told
    desk.tb("undo", "--yes")
    assert len(os.listdir(desk.tree / "node_modules")) == 4


def test_files_in_a_new_small_folder_are_listed(desk: Desk) -> None:
    """They stay with an undo: what was in the old one is unknown."""
    told = desk.sh("mkdir new; echo x > new/x; rm -rf node_modules; mv new node_modules")
    assert "node_modules/  deleted and created again" in told
    assert "node_modules/x" in told
    program.text(["undo", "--yes"], desk.tree)
    assert (desk.tree / "node_modules" / "x").exists()


def test_a_covered_file_that_becomes_big_stays_covered(desk: Desk) -> None:
    """Limits bind discovery: it comes back, and there is no loss."""
    desk.sh("truncate -s 20000000 a.txt")
    assert desk.losses() == {}
    desk.tb("undo")
    assert (desk.tree / "a.txt").read_text() == "one\n"


# -- kinds ---------------------------------------------------------------------------------------


def test_fifos_and_sockets_are_mentioned_and_nothing_to_undo(desk: Desk) -> None:
    """They have no content; a turn that only removes one changed nothing to take back."""
    os.mkfifo(desk.tree / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(desk.tree)
        try:
            server.bind("sock")
        finally:
            os.chdir(here)
    desk.tb("checkpoint")
    told = desk.sh("rm pipe sock")
    assert desk.losses() == {"pipe": GONE, "sock": GONE}
    assert "has no content" in told
    assert "nothing to undo" in program.text(["undo"], desk.tree).stderr


def test_an_unreadable_file_that_comes_back_is_no_loss() -> None:
    """Its content is known from before it was shut; one that nobody ever could read is lost."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("tree", "home"):
            (folder / part).mkdir(mode=0o700)
            if os.geteuid() == 0:
                os.chown(folder / part, PLAIN_USER, PLAIN_USER)
        in_own_world(lambda: _with_unreadable_files(folder), plain=True)


def _with_unreadable_files(folder: Path) -> None:
    known, never = folder / "tree" / "known", folder / "tree" / "never"
    known.write_text("one\n")
    never.write_text("two\n")
    never.chmod(0)
    with takeback.open(folder / "tree", home=folder / "home") as project:
        project.checkpoint()
        with project.session("claude") as session, session.turn("go", whole=False) as turn:
            with turn.step("Bash", {"command": "chmod"}):
                known.chmod(0)
            with turn.step("Bash", {"command": "rm"}):
                known.unlink()
                never.unlink()
        found = project.turn(turn.id).losses
        assert [(loss.path, loss.what, loss.size) for loss in found] == [("never", GONE, 4)]
        plan = project.undo(yes=True).plan
        assert [loss.path for loss in plan.losses] == ["never"]
        assert known.read_text() == "one\n"


def test_a_project_inside_has_a_history_of_its_own(tree: Path, home: Path) -> None:
    """It is named when it is gone, and where its own history is."""
    assert home.is_dir()
    (tree / "inner").mkdir()
    (tree / "inner" / "x.txt").write_text("x\n")
    assert program.text(["checkpoint"], tree / "inner").returncode == 0
    desk = Desk(tree)
    told = desk.sh("rm -rf inner")
    assert desk.losses() == {"inner": GONE}
    assert "`takeback projects` lists it" in told


# -- others --------------------------------------------------------------------------------------


def test_two_sessions_share_a_loss(desk: Desk) -> None:
    """Nobody knows which of them it was: both name it, and neither has something to undo."""
    with takeback.open(desk.tree) as project:
        one, other = project.session("one"), project.session("other")
        first, second = one.turn("first", whole=False), other.turn("second", whole=False)
        steps = [turn.step("Bash", {"command": "rm"}) for turn in (first, second)]
        (desk.tree / "big.bin").unlink()
        for step in steps:
            step.end()
        first.end()
        second.end()
        for turn in (first, second):
            (loss,) = project.turn(turn.id).losses
            assert (loss.path, loss.what, loss.is_shared) == ("big.bin", GONE, True)
        one.end()
        other.end()
    assert "may be another session's" in desk.tb("show", first.id)


def test_a_rollback_names_what_stays_lost(desk: Desk) -> None:
    """Whoever deleted it since the state that it goes back to."""
    start = desk.json()["newest"]["id"]
    desk.sh("rm big.bin; echo two > a.txt")
    shutil.rmtree(desk.tree / "node_modules")
    told = desk.tb("rollback", start, "--dry-run")
    assert "big.bin  deleted, 20.0 MB" in told
    assert "`npm ci` rebuilds it" in told
    told = desk.tb("rollback", start, "--yes")
    assert "big.bin  deleted, 20.0 MB" in told
    report = desk.json("undo", "--dry-run")
    assert report["losses"] == []


def test_losses_survive_a_rebuild_of_the_tables(desk: Desk) -> None:
    """They follow from the log."""
    desk.sh("rm -rf big.bin node_modules")
    before = desk.json("log")["turns"][0]
    desk.tb("doctor", "--rebuild")
    assert desk.json("log")["turns"][0] == before
    assert {x["path"]: x["command"] for x in before["losses"]} == {
        "big.bin": None,
        "node_modules": "npm ci",
    }
    assert "Intact" in desk.tb("verify")


def test_a_forgotten_path_is_no_loss_any_more(desk: Desk) -> None:
    """The name goes out of the events, too."""
    desk.sh("rm big.bin")
    desk.tb("forget", "--names", "--yes", "--", "big.bin")
    assert desk.losses(desk.json("log", "--all")["turns"][0]["id"]) == {}


@pytest.mark.parametrize(
    ("folder", "beside", "command"),
    [
        (b"node_modules", ["package.json"], "npm install"),
        (b"node_modules", ["package.json", "pnpm-lock.yaml"], "pnpm install"),
        (b".venv", ["pyproject.toml", "uv.lock"], "uv sync"),
        (b"target", ["Cargo.toml"], "cargo build"),
        (b"node_modules", ["Makefile"], ""),
        (b"data", ["package.json"], ""),
    ],
)
def test_what_makes_a_folder_again(folder: bytes, beside: list[str], command: str) -> None:
    """Lock files come before what they were made from; without a known file nothing is said."""
    names = {name.encode() for name in beside}
    source = losses.find_source(folder, [(b"", names)])
    assert losses.recipe(folder, source) == command


def test_the_nearest_lock_file_counts() -> None:
    """A lock file further up goes before a manifest without one."""
    ways = [(b"app/web", {b"package.json"}), (b"app", set()), (b"", {b"yarn.lock"})]
    assert losses.find_source(b"node_modules", ways) == b"yarn.lock"
    ways[0][1].add(b"package-lock.json")
    assert losses.find_source(b"node_modules", ways) == b"app/web/package-lock.json"
