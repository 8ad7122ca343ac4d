"""A project folder that was deleted, moved or replaced: its history goes on, in one command."""

import json
import os
import shutil
from pathlib import Path

import pytest

import takeback
from agents import Agent
from history import Said, command
from hostile.stage import in_child
from oracle import picture
from takeback.disk import operations
from takeback.errors import TakebackError
from takeback.upkeep import stores
from takeback.upkeep.stores import Housekeeping

NOW = 10**18 * 2


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


class Shop:
    """A project with a turn in it, in a folder of its own below others."""

    def __init__(self, base: Path, home: Path) -> None:
        self.home = home
        self.base = base
        self.tree = base / "work" / "shop"
        (self.tree / "src").mkdir(parents=True)
        self.tree.chmod(0o750)
        (base / "work" / "other").mkdir()
        (self.tree / "src" / "a.py").write_text("a\n")
        (self.tree / "run.sh").write_text("#!/bin/sh\n")
        (self.tree / "run.sh").chmod(0o755)
        (self.tree / "link").symlink_to("src/a.py")
        (self.tree / "empty").mkdir()
        with takeback.open(self.tree, home=home) as project:
            self.id = project.id
            with project.session("claude") as session, session.turn("first"):
                (self.tree / "src" / "a.py").write_text("b\n")
        self.seen = picture(self.tree)

    def say(self, *words: str, inside: Path | None = None) -> Said:
        """Run a command outside of the project."""
        return command(inside or self.base, *words)

    def state(self) -> dict[str, str]:
        """What `projects` says of it."""
        listed = json.loads(self.say("projects", "--json").out)["projects"]
        (found,) = (each for each in listed if each["id"] == self.id)
        return {"state": found["state"], "root": found["root"]["path"]}

    def goes_on(self, folder: Path) -> None:
        """Require that the history is that of a folder, and works there."""
        with takeback.open(folder, home=self.home) as project:
            assert (project.id, project.root) == (self.id, str(folder))
            assert not project.checkpoint().new
            project.undo()
            assert (folder / "src/a.py").read_text() == "a\n"


@pytest.fixture
def shop(tmp_path: Path, home: Path) -> Shop:
    """A project."""
    return Shop(tmp_path, home)


# -- deleted -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["undo", "restore", "below", "link", "no parents"])
def test_one_command_brings_a_deleted_folder_back(shop: Shop, how: str) -> None:
    """Bytes, modes, links and empty folders are there again, and the history goes on."""
    link = shop.base / "link"
    link.symlink_to(shop.tree)
    shutil.rmtree(shop.tree.parent if how == "no parents" else shop.tree)
    assert shop.state()["state"] in ("gone", "not mounted")
    where = {"below": shop.tree / "src", "link": link}.get(how, shop.tree)
    words = (
        ("projects", "--restore", shop.id[:6]) if how == "restore" else ("undo", "-C", str(where))
    )
    said = shop.say(*words)
    assert (said.code, f"Restored {shop.tree}" in said.out) == (0, True), said.err
    assert picture(shop.tree) == shop.seen
    assert shop.state() == {"state": "here", "root": str(shop.tree)}
    shop.goes_on(shop.tree)


@pytest.mark.parametrize("target", ["new", "empty", "deep/new"])
def test_a_deleted_folder_comes_back_at_another_place(shop: Shop, target: str) -> None:
    """In a folder that is new, or there and empty; the current one keeps being the current one."""
    shutil.rmtree(shop.tree)
    folder = shop.base / target
    if target == "empty":
        folder.mkdir()
        inode = folder.stat().st_ino
        assert shop.say("projects", "--restore", shop.id, ".", inside=folder).code == 0
        assert folder.stat().st_ino == inode
    else:
        assert shop.say("projects", "--restore", shop.id, str(folder)).code == 0
    assert picture(folder) == shop.seen
    shop.goes_on(folder)
    assert not shop.tree.exists()


def test_a_dry_run_writes_nothing(shop: Shop) -> None:
    """What would come back is said, and nothing is made."""
    shutil.rmtree(shop.tree)
    said = shop.say("undo", "-C", str(shop.tree), "--dry-run")
    assert (said.code, "Would restore" in said.out, shop.tree.exists()) == (0, True, False)


def test_what_was_never_covered_is_named(shop: Shop) -> None:
    """`.git` is not in the store, so it does not come back, and that is said."""
    (shop.tree / ".git").mkdir()
    (shop.tree / ".git/HEAD").write_text("ref: refs/heads/main\n")
    with takeback.open(shop.tree, home=shop.home) as project:
        project.checkpoint()
    shutil.rmtree(shop.tree)
    said = shop.say("undo", "-C", str(shop.tree))
    assert "No checkpoint holds .git\n" in said.out
    shutil.rmtree(shop.tree)
    told = json.loads(shop.say("undo", "-C", str(shop.tree), "--json").out)["restored"]
    assert (told["project"], told["left_out"]) == (shop.id, [{"path": ".git"}])


def test_an_agent_that_deletes_the_folder(shop: Shop) -> None:
    """The user is told at once how it comes back; undo takes back all that the turn did."""
    agent = Agent(shop.tree)
    agent.prompt("clean up")
    agent.edit("src/a.py", "by the agent\n")
    call = agent.begin("Bash", {"command": f"rm -rf {shop.tree}"})
    shutil.rmtree(shop.tree)
    assert f"`takeback undo -C {shop.tree}` restores the folder" in call.over()["systemMessage"]
    agent.stop()
    said = shop.say("undo", "-C", str(shop.tree))
    assert said.code == 0, said.err
    assert picture(shop.tree) == shop.seen
    with takeback.open(shop.tree, home=shop.home) as project:
        project.redo()
        assert (shop.tree / "src/a.py").read_text() == "by the agent\n"


def test_a_command_that_deletes_the_folder(shop: Shop) -> None:
    """`run` names the command that brings it back; the turns before it stay as they are."""
    said = shop.say("run", "-C", str(shop.tree), "--", "rm", "-rf", str(shop.tree))
    assert (said.code, f"`takeback undo -C {shop.tree}` restores it" in said.err) == (0, True)
    assert shop.say("undo", "-C", str(shop.tree)).code == 0
    assert picture(shop.tree) == shop.seen


def test_other_commands_name_the_way_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever names the folder, or stands in it, is told what brings it back."""
    shutil.rmtree(shop.tree)
    for word in ("log", "checkpoint"):
        said = shop.say(word, "-C", str(shop.tree / "src"))
        assert (said.code, f"takeback undo -C {shop.tree}" in said.err) == (2, True)
    shop.tree.mkdir()
    monkeypatch.chdir(shop.tree)
    monkeypatch.setenv("PWD", str(shop.tree))
    shop.tree.rmdir()
    from takeback.cli import app

    assert app.main(["log"]) == 2
    assert f"`takeback undo -C {shop.tree}` restores it" in capsys.readouterr().err
    assert app.main(["undo", "-C", str(shop.tree)]) == 0
    monkeypatch.chdir("/")


# -- nothing is overwritten, nothing is shared -----------------------------------------------------


def test_what_is_at_its_place_stays(shop: Shop) -> None:
    """A file or a folder that is there is not touched; the command beside it is named and works."""
    shutil.rmtree(shop.tree)
    shop.tree.write_text("a file\n")
    said = shop.say("undo", "-C", str(shop.tree))
    beside = shop.tree.with_name("shop-restored")
    assert (said.code, f"takeback projects --restore {shop.id} {beside}" in said.err) == (3, True)
    assert shop.tree.read_text() == "a file\n"
    assert shop.say("projects", "--restore", shop.id, str(shop.base / "work")).code == 1
    assert shop.say("projects", "--restore", shop.id, str(beside)).code == 0
    shop.goes_on(beside)


@pytest.mark.parametrize("state", ["here", "moved"])
def test_no_two_folders_share_a_history(shop: Shop, state: str) -> None:
    """While the folder is somewhere, no second one gets its history."""
    folder = shop.tree
    if state == "moved":
        folder = shop.base / "elsewhere"
        shop.tree.rename(folder)
        said = shop.say("undo", "-C", str(shop.tree))
        assert (said.code, f"takeback undo -C {folder}" in said.err) == (3, True)
    said = shop.say("projects", "--restore", shop.id, str(shop.base / "second"))
    assert (said.code, str(folder) in said.err) == (3, True)
    assert not (shop.base / "second").exists()
    shop.goes_on(folder)


def test_not_into_another_project(shop: Shop) -> None:
    """No file has two histories."""
    with takeback.open(shop.base / "work/other", home=shop.home) as project:
        project.checkpoint()
    shutil.rmtree(shop.tree)
    said = shop.say("projects", "--restore", shop.id, str(shop.base / "work/other/shop"))
    assert (said.code, "which covers it" in said.err) == (2, True)


def test_a_restore_that_fails_changes_nothing(shop: Shop) -> None:
    """At whichever step it fails: no folder, the history as it was, and the next try works."""
    shutil.rmtree(shop.tree)
    keeping = Housekeeping(os.fsencode(shop.home))
    failed, failing = 0, 2
    while True:
        operations.hook = Failing(failing)
        try:
            keeping.restore(shop.id, None, NOW)
            break
        except TakebackError:
            assert not shop.tree.exists(), failing
        finally:
            operations.hook = None
        (known,) = keeping.projects(NOW)
        assert (known.state, known.root) == ("gone", os.fsencode(shop.tree))
        failed, failing = failed + 1, failing + 5
    assert failed > 5
    assert os.listdir(shop.tree.parent) in (["other", "shop"], ["shop", "other"])
    shop.goes_on(shop.tree)


class Failing:
    """Lets one change to the disk fail, as on a full one."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __call__(self, _step: str, _args: tuple[object, ...]) -> None:
        self._left -= 1
        if self._left == 0:
            raise OSError(28, "No space left on device")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_parent_that_may_not_be_written(tmp_path: Path) -> None:
    """It is said, nothing changes, and another place works; also in another user's folder."""
    tmp_path.chmod(0o777)
    for above in tmp_path.parents:
        if not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o055)

    def play() -> None:
        home = tmp_path / "stores"
        home.mkdir(mode=0o700)
        os.environ["TAKEBACK_HOME"] = str(home)
        shop = Shop(tmp_path, home)
        shutil.rmtree(shop.tree)
        shop.tree.parent.chmod(0o555)
        keeping = Housekeeping(os.fsencode(home))
        for place in (None, b"/shop", b"/etc/shop"):
            with pytest.raises(TakebackError, match="not restored"):
                keeping.restore(shop.id, place, NOW)
        assert [each.state for each in keeping.projects(NOW)] == ["gone"]
        keeping.restore(shop.id, os.fsencode(tmp_path / "mine"), NOW)
        assert picture(tmp_path / "mine") == shop.seen
        shop.goes_on(tmp_path / "mine")

    in_child(play, plain=True)


# -- moved -------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["work/renamed", "elsewhere", "work/other/deep/shop"])
def test_a_moved_folder_is_found(shop: Shop, place: str) -> None:
    """`projects` says where it is now, though nobody used it there, and keeps its store."""
    moved = shop.base / place
    moved.parent.mkdir(parents=True, exist_ok=True)
    shop.tree.rename(moved)
    assert shop.state() == {"state": "moved", "root": str(moved)}
    said = shop.say("projects")
    assert f"{moved}  (moved from {shop.tree})" in said.out
    assert "--remove" not in said.out + said.err
    assert shop.say("projects", "--remove", shop.id, "--yes").code == 3
    shop.goes_on(moved)


def test_a_look_at_a_moved_folder_is_remembered(shop: Shop) -> None:
    """`takeback log` in it is enough: `projects` need not search for it any more."""
    moved = shop.base / "far/away"
    moved.parent.mkdir()
    shop.tree.rename(moved)
    assert shop.say("log", inside=moved).code == 0
    assert shop.state() == {"state": "here", "root": str(moved)}


def test_the_search_is_bounded(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is far away is gone, and not searched for on the whole disk."""
    far = shop.base.joinpath("1", "2", "3", "4", "5", "6")
    far.mkdir(parents=True)
    shop.tree.rename(far / "shop")
    (found,) = Housekeeping(os.fsencode(shop.home)).projects(NOW)
    assert found.state == "gone"
    (shop.base / "work/nearer").mkdir()
    (far / "shop").rename(shop.base / "work/nearer/shop")
    (found,) = Housekeeping(os.fsencode(shop.home)).projects(NOW)
    assert found.state == "moved"
    monkeypatch.setattr(stores, "_MOST_FOLDERS", 0)
    (found,) = Housekeeping(os.fsencode(shop.home)).projects(NOW)
    assert found.state == "gone"
