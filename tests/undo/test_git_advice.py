"""Each command that a report names is run in a real repository: it does what it says, and loses
nothing of the user's.

In every repository the user has staged, unstaged and untracked work, a stash and a branch.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from cases import Work
from hostile.ground import git_environment
from spoken import spoken
from takeback.disk import operations

FILES = {"a": "0\n1\n2\n", "b": "0\n", "staged": "0\n", "unstaged": "0\n"}
COMMAND = re.compile(r"`(git [^`]+)`")


class Git(NamedTuple):
    """All of git that a user may miss."""

    head: str
    commit: str
    refs: str
    stash: str
    staged: str
    files: dict[str, str]


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in which somebody is at work, made once."""
    made = Work(tmp_path_factory.mktemp("template") / "tree", Path("nowhere"))
    made.tree.mkdir()
    user(made)
    return made.tree


@pytest.fixture
def busy(work: Work, template: Path) -> Work:
    """The same, to work in."""
    shutil.copytree(template, work.tree, dirs_exist_ok=True)
    return work


def user(work: Work, *options: str) -> None:
    work.git("init", "-q", *options)
    for name, text in FILES.items():
        work.put(name, text)
    work.git("add", "-A")
    work.git("commit", "-q", "-m", "first")
    work.git("branch", "users")
    work.git("tag", "-m", "one", "v1")
    work.put("unstaged", "stashed\n")
    work.git("stash", "-q")
    work.put("staged", "staged\n")
    work.git("add", "staged")
    work.put("staged", "staged, and then some\n")
    work.put("unstaged", "mine\n")
    work.put("untracked", "mine\n")


def git_of(work: Work, within: str = "") -> Git:
    def told(*words: str) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=work.tree / within,
            env=git_environment(os.fsencode(work.tree.parent)),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    refs = told("for-each-ref", "--format=%(refname) %(objectname)")
    files = {
        path.name: path.read_text()
        for path in (work.tree / within).iterdir()
        if path.is_file() and path.name != ".git"
    }
    return Git(
        told("symbolic-ref", "-q", "HEAD"),
        told("rev-parse", "-q", "--verify", "HEAD"),
        "".join(line for line in refs.splitlines(keepends=True) if "refs/stash" not in line),
        told("reflog", "show", "--format=%H %gs", "refs/stash"),
        told("ls-files", "-s"),
        files,
    )


def commits(work: Work) -> set[str]:
    return set(work.git("rev-list", "--all").split())


def follow(work: Work, said: tuple[str, ...]) -> list[str]:
    """Run every command that is told, in its order; each has to work."""
    commands = [command for text in said for command in COMMAND.findall(text)]
    for command in commands:
        done = subprocess.run(
            command,
            shell=True,
            cwd=work.tree,
            env=git_environment(os.fsencode(work.tree.parent)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr, said)
    return commands


def commit(work: Work, name: str, text: str = "agent\n") -> None:
    """A commit of one file, and of nothing else."""
    work.put(name, text)
    work.git("add", name)
    work.git("commit", "-q", "-m", f"agent: {name}", "--", name)


# -- what the agent does -----------------------------------------------------------------------


def commits_twice(work: Work) -> None:
    commit(work, "a", "agent\n1\n2\n")
    commit(work, "new")


def amends(work: Work) -> None:
    work.put("a", "agent\n")
    work.git("commit", "-q", "--amend", "-m", "better", "--", "a")


def merges(work: Work) -> None:
    work.git("switch", "-q", "-c", "side")
    commit(work, "new")
    work.git("switch", "-q", "main")
    commit(work, "a", "agent\n")
    tree = work.git("rev-parse", "HEAD^{tree}").strip()
    made = work.git("commit-tree", "-p", "HEAD", "-p", "side", "-m", "merge", tree).strip()
    work.git("update-ref", "HEAD", made)
    work.git("branch", "-q", "-D", "side")


def switches(work: Work) -> None:
    work.put("new", "agent\n")
    work.git("switch", "-q", "users")


def switches_and_commits(work: Work) -> None:
    work.git("switch", "-q", "users")
    commit(work, "a", "agent\n")
    commit(work, "new")


def visits(work: Work) -> None:
    work.git("switch", "-q", "users")
    commit(work, "a", "agent\n")
    work.git("switch", "-q", "main")
    work.put("new", "agent\n")


def commits_and_leaves(work: Work) -> None:
    commit(work, "a", "agent\n")
    work.git("switch", "-q", "users")
    work.put("new", "agent\n")


def detaches(work: Work) -> None:
    work.git("switch", "-q", "--detach")
    commit(work, "a", "agent\n")


def deletes_only(work: Work) -> None:
    work.git("branch", "-D", "users")
    work.git("tag", "-d", "v1")
    work.git("stash", "drop", "-q")


def renames(work: Work) -> None:
    work.put("new", "agent\n")
    work.git("branch", "-m", "main", "trunk")


def moves(work: Work) -> None:
    commit(work, "a", "agent\n")
    work.git("branch", "-f", "users", "HEAD")
    work.git("tag", "-f", "v1", "HEAD")
    work.git("reset", "-q", "--soft", "HEAD~1")
    work.git("reset", "-q", "--", "a")


def adds_branch(work: Work) -> None:
    work.put("new", "agent\n")
    work.git("branch", "agents")


def adds_worktree(work: Work) -> None:
    work.put("new", "agent\n")
    work.git("worktree", "add", "-q", "../beside", "users")


def loses_index(work: Work) -> None:
    (work.tree / ".git" / "index").unlink()


EXACT: dict[str, Callable[[Work], None]] = {
    f.__name__: f
    for f in (
        commits_twice,
        amends,
        merges,
        switches,
        switches_and_commits,
        visits,
        commits_and_leaves,
        detaches,
        deletes_only,
        renames,
        moves,
        adds_branch,
        adds_worktree,
    )
}
LEFT = {
    # The commits of a branch that was checked out last stay on it: a fact, without a command.
    "switches_and_commits": "refs/heads/users",
}


@pytest.mark.parametrize("agent", EXACT)
def test_undo_and_its_commands_bring_everything_back(busy: Work, agent: str) -> None:
    """After both, HEAD, refs, stash, index and files are what they were before the turn."""
    work = busy
    before, known = git_of(work), commits(work)
    with work.turn() as turn:
        EXACT[agent](work)
    said = spoken(work.undo(turn=turn).plan.stays)
    assert follow(work, said)
    after = git_of(work)
    kept = LEFT.get(agent, "none")
    without = [
        "".join(line for line in git.refs.splitlines(keepends=True) if kept not in line)
        for git in (before, after)
    ]
    assert without[0] == without[1]
    assert after._replace(refs="") == before._replace(refs="")
    assert known <= commits(work)


SHAPES = {
    "sha256": ("--object-format=sha256",),
    "packed": (),
    "linked": (),
    "detached": (),
    "submodule": (),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_in_every_kind_of_repository(work: Work, shape: str, tmp_path: Path) -> None:
    """The commands work in them, too, wherever `.git` leads."""
    if shape in ("linked", "submodule"):
        other = Work(tmp_path / "other", work.home)
        other.tree.mkdir()
        user(other)
        other.git("switch", "-q", "-c", "aside") if shape == "linked" else None
        shutil.rmtree(work.tree)
        if shape == "linked":
            other.git("worktree", "add", "-q", str(work.tree), "main")
        else:
            parent = Work(work.tree.parent / "parent", work.home)
            parent.tree.mkdir()
            parent.git("init", "-q")
            allow = ("-c", "protocol.file.allow=always")
            parent.git(*allow, "submodule", "add", "-q", str(other.tree), "tree")
            work.tree = parent.tree / "tree"
            work.git("branch", "users")
        assert (work.tree / ".git").is_file()
        work.put("staged", "staged\n")
        work.git("add", "staged")
        work.put("unstaged", "mine\n")
    else:
        user(work, *SHAPES[shape])
    if shape == "packed":
        work.git("gc", "-q")
        assert not (work.tree / ".git/refs/heads/main").exists()
    if shape == "detached":
        work.git("switch", "-q", "--detach")
    before = git_of(work)
    with work.turn():
        commit(work, "a", "agent\n")
        work.git("branch", "-D", "users")
    commands = follow(work, spoken(work.undo().plan.stays))
    assert [command.split()[1] for command in commands] == ["read-tree", "branch"]
    assert git_of(work) == before


def test_a_shallow_clone(work: Work, tmp_path: Path) -> None:
    """History that is cut off is no obstacle."""
    other = Work(tmp_path / "other", work.home)
    other.tree.mkdir()
    other.repository(a="0\n")
    commit(other, "a", "1\n")
    shutil.rmtree(work.tree)
    url = f"file://{other.tree}"
    subprocess.run(["git", "clone", "-q", "--depth=1", url, str(work.tree)], check=True)
    before = git_of(work)
    with work.turn():
        commit(work, "a")
    assert follow(work, spoken(work.undo().plan.stays))
    assert git_of(work) == before


def test_the_first_commit_goes_and_its_files_stay_staged(work: Work) -> None:
    """That its files stay staged is said."""
    work.git("init", "-q")
    work.put("mine", "mine\n")
    with work.turn():
        work.put("new", "agent\n")
        work.git("add", "new")
        work.git("commit", "-q", "-m", "agent")
    (said,) = spoken(work.undo().plan.stays)
    assert "leaves its files staged" in said
    follow(work, (said,))
    assert (git_of(work).commit, git_of(work).refs) == ("", "")
    assert git_of(work).files == {"mine": "mine\n"}


def test_a_lost_index_is_made_again(busy: Work) -> None:
    """What was staged went with the index; the command makes one of HEAD, and touches no file."""
    work = busy
    files = git_of(work).files
    with work.turn() as turn:
        loses_index(work)
    assert [each.code for each in turn.recorded().git] == ["index-gone"]
    follow(work, spoken(work.undo(turn=turn).plan.stays))
    assert git_of(work).files == files
    assert not work.git("diff", "--cached", "--name-only")


def test_your_commit_on_top_is_not_wiped(busy: Work) -> None:
    """With later commits there is no command; to commit what was restored takes it back."""
    work = busy
    with work.turn():
        commit(work, "a", "agent\n1\n2\n")
    commit(work, "b", "mine\n")
    mine = work.git("rev-parse", "HEAD").strip()
    said = spoken(work.undo().plan.stays)
    assert follow(work, said) == []
    assert "below later commits" in said[0]
    work.git("commit", "-q", "-m", "without it", "--", "a")
    assert work.git("show", "HEAD:a") == FILES["a"]
    assert mine in commits(work)


def test_your_commit_while_a_turn_rests_is_not_wiped(busy: Work) -> None:
    """A turn that goes on after its stop spans what you did meanwhile; that is not its own."""
    work = busy
    with work.turn() as turn:
        commit(work, "a", "agent\n")
    commit(work, "b", "mine\n")
    recorder = work.session._recorder
    assert recorder.resume_turn(work.session.id) == turn.id
    commit(work, "new")
    recorder.end_turn(turn.id, "done")
    said = spoken(work.undo().plan.stays)
    assert said[0].startswith("3 commits stay")
    assert follow(work, said) == []


@pytest.mark.parametrize("interrupted", [False, True])
def test_what_may_be_yours_is_not_dropped(busy: Work, interrupted: bool) -> None:
    """Of an interrupted turn, or of turns with your commit between them, no commit is dropped."""
    work = busy
    turn = work.session.turn("one")
    commit(work, "a", "agent\n")
    if not interrupted:
        turn.end()
    commit(work, "b", "mine\n")
    with work.turn("two") as second:
        commit(work, "new")
    mine = work.git("rev-parse", "HEAD~1").strip()
    plan = work.project.plan_undo(turn if interrupted else [turn, second])
    assert follow(work, spoken(work.project.apply(plan, yes=True).plan.stays)) == []
    assert mine in commits(work)


def test_a_rebase_under_way_is_only_told(work: Work) -> None:
    """Whatever ends it would touch files, so only git tells how."""
    work.repository(a="0\n", new="0\n")
    work.git("switch", "-q", "-c", "side")
    commit(work, "a", "side\n")
    work.git("switch", "-q", "main")
    commit(work, "a", "main\n")
    with work.turn():
        work.put("new", "agent\n")
        work.git("commit", "-q", "-am", "agent")
        with pytest.raises(subprocess.CalledProcessError):
            work.git("rebase", "side")
    said = spoken(work.project.apply(work.project.plan_undo(), yes=True).plan.stays)
    assert any("a rebase is in progress" in text for text in said)
    assert {c for text in said for c in COMMAND.findall(text)} == {"git status"}


def test_a_rollback_drops_only_commits_of_turns(busy: Work) -> None:
    """Commits that were made between turns are yours: they are counted, and have no command."""
    work = busy
    first = work.checkpoint()
    with work.turn():
        commit(work, "a", "agent\n")
    before = git_of(work)
    sure = spoken(work.project.plan_rollback(first).stays)
    commit(work, "b", "mine\n")
    unsure = spoken(work.project.plan_rollback(first).stays)
    assert COMMAND.findall(sure[0])
    assert unsure[0].startswith("2 commits stay")
    assert not COMMAND.findall(unsure[0])
    work.git("reset", "-q", "--soft", "HEAD~1")
    work.git("reset", "-q", "--", "b")
    work.put("b", FILES["b"])
    assert git_of(work).commit == before.commit
    follow(work, spoken(work.rollback(first).plan.stays))
    assert work.git("log", "--format=%s").split() == ["first"]
    assert work.git("show", ":staged") == "staged\n"


def test_a_rollback_over_a_switch_keeps_the_other_branch(busy: Work) -> None:
    """The commits of the branch that was switched to are not those of the branch before."""
    work = busy
    work.git("switch", "-q", "users")
    commit(work, "b", "mine\n")
    mine = work.git("rev-parse", "HEAD").strip()
    work.git("switch", "-q", "main")
    before, first = git_of(work), work.checkpoint()
    with work.turn():
        work.git("switch", "-q", "users")
        commit(work, "a", "agent\n")
    said = spoken(work.rollback(first).plan.stays)
    commands = follow(work, said)
    assert commands == ["git read-tree -im HEAD main && git switch main"]
    assert git_of(work)._replace(refs="") == before._replace(refs="")
    assert mine in commits(work)


def test_a_commit_beside_another_session_has_no_command(busy: Work) -> None:
    """Two agents at once: whose commit it is, nobody knows."""
    work = busy
    other = work.project.session(agent="other").turn("meanwhile")
    with work.turn() as turn:
        commit(work, "a", "agent\n")
    other.end()
    plan = work.project.plan_undo(turn, shared=True)
    assert plan.stays[0].code == "commits-stay"
    assert not COMMAND.findall(spoken(plan.stays)[0])
