"""A folder that is not the one it was: it is covered at once, and the old history is offered."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import takeback
from agents import Agent
from history import command
from hostile.stage import in_child
from takeback.disk import operations
from takeback.project import Project
from terminal import Terminal

NAMES = ("a.py", "b.py", "c.py")


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


def known(tree: Path, home: Path) -> str:
    """A project with a turn in it; its id."""
    for name in NAMES:
        (tree / name).write_text(f"{name}\n")
    with takeback.open(tree, home=home) as project:
        with project.session("claude") as session, session.turn("old work"):
            (tree / "a.py").write_text("old\n")
        return project.id


def clone(tree: Path) -> None:
    """Another folder at the place of a project, with other files of the same names."""
    tree.mkdir()
    for name in NAMES:
        (tree / name).write_text(f"{name} of the clone\n")


def replace(tree: Path, how: str) -> Path:
    """Let another folder be at the place of a project, or a copy of it elsewhere."""
    kept = tree.with_name("kept")
    if how == "copy":
        shutil.copytree(tree, kept)
        shutil.rmtree(tree)
        return kept
    if how == "moved and cloned":
        tree.rename(kept)
    else:
        shutil.rmtree(tree)
        tree.with_name("holds its inode").mkdir()
    clone(tree)
    return tree


def project_at(tree: Path, home: Path) -> str:
    """The project of a folder, and what is in its log."""
    with takeback.open(tree, home=home) as project:
        return project.id


@pytest.mark.parametrize("how", ["cloned", "moved and cloned", "copy"])
def test_hooks_cover_a_replaced_folder_at_once(tree: Path, home: Path, how: str) -> None:
    """The first event is recorded in a new history; the offer is made once, and works."""
    old = known(tree, home)
    tree = replace(tree, how)
    agent = Agent(tree)
    offer = f"takeback relocate --join {old} -C {tree}"
    assert f"`{offer}` continues the old one" in agent.prompt("go")["systemMessage"]
    agent.shell(new="new\n")
    for said in (agent.stop(), agent.prompt("on")):
        assert "systemMessage" not in said
    agent.stop()
    new = project_at(tree, home)
    shown = f"takeback relocate --join {old}" in command(tree).err
    assert shown == (how != "copy")
    with takeback.open(tree, home=home) as project:
        assert (project.id != old, [turn.label for turn in project.log().turns][-1]) == (True, "go")
        project.undo()
    assert not (tree / "new").exists()
    assert command(tree, *offer.split()[1:]).code == 3  # turns are in the new one by now
    assert command(tree, *offer.split()[1:], "--yes").code == 0
    assert project_at(tree, home) == old
    back = command(tree, "relocate", "--join", new, "--yes")
    assert (back.code, project_at(tree, home)) == (0, new)


@pytest.mark.parametrize("how", ["cloned", "copy"])
def test_run_covers_a_replaced_folder(tree: Path, home: Path, how: str) -> None:
    """The command runs, can be taken back, and stderr names the command that joins."""
    old = known(tree, home)
    tree = replace(tree, how)
    said = command(tree, "run", "--only-covered", "--", "sh", "-c", "echo new > a.py")
    assert (said.code, (tree / "a.py").read_text()) == (0, "new\n")
    assert f"takeback relocate --join {old} -C {tree}" in said.err
    assert command(tree, "undo").code == 0
    assert (tree / "a.py").read_text() != "new\n"
    assert "relocate" not in command(tree, "run", "--", "true").err


def test_an_agent_that_makes_its_folder_anew(tree: Path, home: Path) -> None:
    """`rm -rf P; mkdir P` in a turn: `undo` names the history, which takes the whole turn back."""
    old = known(tree, home)
    agent = Agent(tree)
    agent.prompt("start over")
    call = agent.begin("Bash", {"command": "…"})
    replace(tree, "cloned")
    assert "a new history begins here" in call.over()["systemMessage"]
    agent.stop()
    with takeback.open(tree, home=home) as project:
        assert (project.id != old, project.status().checkpoints) == (True, 1)
    offer = f"takeback relocate --join {old} -C {tree}"
    said = command(tree, "undo")
    assert (said.code, f"`{offer}` continues it" in said.err) == (1, True)
    assert [command(tree, *words).code for words in (offer.split()[1:], ["undo"])] == [0, 0]
    assert (tree / "a.py").read_text() == "old\n"


def test_run_says_so_as_json(tree: Path, home: Path) -> None:
    """Programs find the command in `join`, and only then."""
    old = known(tree, home)
    tree = replace(tree, "cloned")
    for expected in (f"takeback relocate --join {old} -C {tree}", None):
        told = json.loads(command(tree, "run", "--json", "--", "true").err.splitlines()[-1])
        assert told.get("join") == expected


def test_a_moved_original_keeps_its_history(tree: Path, home: Path) -> None:
    """`mv P Q; git clone P`: the clone has a new history, and Q continues the old one."""
    old = known(tree, home)
    replace(tree, "moved and cloned")
    assert command(tree, "run", "-q", "--", "true").code == 0
    listed = json.loads(command(tree, "projects", "--json").out)["projects"]
    states = {each["id"]: (each["state"], each["root"]["path"]) for each in listed}
    assert states[old] == ("moved", str(tree.with_name("kept")))
    assert project_at(tree.with_name("kept"), home) == old
    assert project_at(tree, home) != old


def test_a_copy_beside_the_original_gets_its_own_unasked(tree: Path, home: Path) -> None:
    """`cp -a P Q` with P in place: Q has a history of its own, and nothing is offered."""
    old = known(tree, home)
    copy = tree.with_name("copy")
    subprocess.run(["cp", "-a", tree, copy], check=True)
    assert "systemMessage" not in (Agent(copy).prompt("go") or {})
    assert (project_at(copy, home) != old, project_at(tree, home)) == (True, old)


def test_two_agents_begin_one_new_history(tree: Path, home: Path) -> None:
    """Whoever comes second finds the history that the first one began."""
    known(tree, home)
    replace(tree, "cloned")
    found = [Project.open(os.fsencode(tree), home=os.fsencode(home), begin=True) for _ in range(2)]
    assert len({project.id for project in found}) == 1
    assert [bool(project.workspace.instead_of) for project in found] == [True, False]
    for project in found:
        project.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
def test_a_disk_that_comes_back_has_its_history(tmp_path: Path, home: Path) -> None:
    """An agent may work in the empty mount point meanwhile; mounted again, the old one goes on."""
    in_child(lambda: _mount_again(tmp_path, home), mounts=True)


def _mount_again(folder: Path, home: Path) -> None:
    disk, place = folder / ".disk", folder / "place"
    disk.mkdir()
    place.mkdir()
    subprocess.run(["mount", "--bind", disk, place], check=True)
    old = known(place, home)
    subprocess.run(["umount", place], check=True)
    with Project.open(os.fsencode(place), home=os.fsencode(home), begin=True) as project:
        assert (project.id != old, project.workspace.instead_of) == (True, old)
        project.checkpoint()
    subprocess.run(["mount", "--bind", disk, place], check=True)
    assert project_at(place, home) == old
    subprocess.run(["umount", place], check=True)
    assert project_at(place, home) == project.id


# -- relocate --------------------------------------------------------------------------------------


def test_relocate_asks_before_it_detaches(tree: Path, home: Path) -> None:
    """Without a terminal it is exit 3; with `--yes` the way back is named, and works."""
    old = known(tree, home)
    asked = command(tree, "relocate", "--new")
    assert (asked.code, f"takeback relocate --join {old} -C {tree}" in asked.err) == (3, True)
    assert project_at(tree, home) == old
    done = command(tree, "relocate", "--new", "--yes")
    assert (done.code, project_at(tree, home) != old) == (0, True)
    assert f"`takeback relocate --join {old} -C {tree}` joins it" in done.err
    listed = command(tree, "projects")
    assert f"{tree}  (detached)" in listed.out
    assert f"takeback relocate --join {old} -C {tree}" in listed.err
    assert "--remove" not in listed.out + listed.err
    assert command(tree, "projects", "--remove", old, "--yes").code == 3
    assert command(tree, "relocate", "--join", old).code == 0
    with takeback.open(tree, home=home) as project:
        assert (project.id, [turn.label for turn in project.log().turns]) == (old, ["old work"])
        assert not project.checkpoint().new


def test_somebody_is_asked(tree: Path, home: Path) -> None:
    """On a terminal a clear yes begins a new history, and anything else does not."""
    old = known(tree, home)
    for answer, code in ((b"n\n", 3), (b"y\n", 0)):
        assert project_at(tree, home) == old
        words = [sys.executable, "-I", "-m", "takeback", "relocate", "--new", "-C", str(tree)]
        terminal = Terminal(words)
        try:
            terminal.expect(b"Begin a new history?")
            terminal.type(answer)
            assert terminal.status() == code
        finally:
            terminal.close()
    assert project_at(tree, home) != old


def test_join_asks_before_it_takes_a_history_away(tree: Path, home: Path) -> None:
    """Neither a folder's own history is replaced, nor another folder's taken, without a yes."""
    old = known(tree, home)
    other = tree.with_name("other")
    other.mkdir()
    new = known(other, home)
    (other / "own").write_text("own\n")
    said = command(other, "relocate", "--join", old)
    assert (said.code, f"--join {old} --yes -C {other}" in said.err) == (3, True)
    assert f"that of project `{new}`" in said.err
    assert f"project `{old}` belongs to `{tree}`, which still exists" in said.err
    bare = tree.with_name("bare")
    bare.mkdir()
    said = command(bare, "relocate", "--join", old)
    assert (said.code, f"belongs to `{tree}`, which still exists" in said.err) == (3, True)
    assert (project_at(tree, home), project_at(other, home)) == (old, new)


def test_a_detached_history_is_not_found_by_a_name(tree: Path, home: Path) -> None:
    """A folder of the user that is called `tree (before)` has nothing to do with it."""
    old = known(tree, home)
    assert command(tree, "relocate", "--new", "--yes").code == 0
    before = tree.with_name("tree (before)")
    before.mkdir()
    assert project_at(before, home) not in (old, project_at(tree, home))
    tree.rename(tree.with_name("moved"))
    assert project_at(tree.with_name("moved"), home) != old


# -- damaged and deleted stores ------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["ledger", "packs", "store"])
def test_a_store_that_cannot_be_used_names_the_way_back(
    tree: Path, home: Path, damage: str
) -> None:
    """Status, undo, run and hooks name one command; it works without a question, and covers."""
    old = known(tree, home)
    store = home / "projects" / old
    if damage == "ledger":
        (store / "ledger.db").write_bytes(b"garbage" * 9999)
    else:
        shutil.rmtree(store / "git" if damage == "packs" else store)
    way = f"takeback relocate --new -C {tree}"
    for words in ((), ("undo",), ("checkpoint",), ("run", "--", "true")):
        assert way in command(tree, *words).err, words
    assert way in Agent(tree).prompt("go")["systemMessage"]
    assert command(tree, *way.split()[1:]).code == 0
    assert "systemMessage" not in (Agent(tree).prompt("go") or {})
    assert command(tree, "run", "--only-covered", "--", "true").code == 0


def test_a_damaged_history_is_neither_offered_nor_joined(tree: Path, home: Path) -> None:
    """`relocate --join` of a damaged store is exit 4, and the healthy history stays."""
    old = known(tree, home)
    with (home / "projects" / old / "ledger.db").open("r+b") as ledger:
        ledger.write(b"garbage" * 2)
    begun = command(tree, "relocate", "--new")
    assert (begun.code, "--join" in begun.err, "cannot read it" in begun.err) == (0, False, True)
    assert command(tree, "run", "-q", "-m", "good", "--", "touch", "f").code == 0
    new = project_at(tree, home)
    assert f"--join {old}" not in command(tree, "projects").err
    for words in ((), ("--yes",)):
        said = command(tree, "relocate", "--join", old, *words)
        assert (said.code, "nothing was changed" in said.err) == (4, True)
        assert project_at(tree, home) == new
    listed = json.loads(command(tree, "projects", "--json").out)["projects"]
    assert {each["id"]: each["state"] for each in listed} == {old: "detached", new: "here"}


def test_joining_back_asks_if_work_was_done_since(tree: Path, home: Path) -> None:
    """A new history that holds more than its first checkpoint is not replaced without a yes."""
    old = known(tree, home)
    assert command(tree, "relocate", "--new", "--yes").code == 0
    assert command(tree, "checkpoint").code == 0
    new = project_at(tree, home)
    assert command(tree, "relocate", "--join", old).code == 0
    asked = command(tree, "relocate", "--join", new)
    assert (asked.code, f"that of project `{old}`" in asked.err) == (3, True)
    assert project_at(tree, home) == old
    assert command(tree, "relocate", "--join", new, "--yes").code == 0
    (tree / "a.py").write_text("more\n")
    assert command(tree, "checkpoint").code == 0
    assert command(tree, "relocate", "--join", old).code == 3
    assert project_at(tree, home) == new
