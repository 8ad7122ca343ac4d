"""What a command destroys outside cover is saved before, and comes back with undo."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import takeback
from destroyed import BIG, Place
from takeback.cli import app
from takeback.cli.text.restores import git_text
from takeback.effects import rescue
from takeback.effects.saved import area, care
from takeback.errors import TakebackError
from takeback.model import reasons
from takeback.model.beyond import effects
from takeback.model.beyond.effects import DELETE, OVERWRITE, Judgement, Target
from takeback.model.reasons import Reason
from takeback.testing import Sandbox


@pytest.fixture
def place() -> Iterator[Place]:
    with Sandbox() as box:
        box.write("covered", b"covered")
        yield Place(box)


def test_a_folder_beside_the_project_comes_back(place: Place) -> None:
    """All of it: files, modes, empty folders, links; and no file shares blocks with the rescue."""
    notes = place.around / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "a.txt").write_bytes(b"one")
    (notes / "a.txt").chmod(0o640)
    (notes / "deep" / "b.bin").write_bytes(b"two" * 1000)
    (notes / "empty").mkdir(mode=0o750)
    (notes / "link").symlink_to("a.txt")
    found = place.run(lambda: shutil.rmtree(notes), notes)
    assert found.is_whole
    assert [(each.raw_path, each.files, each.how) for each in found.kept] == [
        (os.fsencode(notes), 3, "link")
    ]
    place.undo()
    assert (notes / "deep" / "b.bin").read_bytes() == b"two" * 1000
    assert (notes / "a.txt").stat().st_mode & 0o7777 == 0o640
    assert (notes / "a.txt").stat().st_nlink == 1
    assert (notes / "empty").stat().st_mode & 0o7777 == 0o750
    assert os.readlink(notes / "link") == "a.txt"


def test_a_large_file_in_a_covered_folder_comes_back_with_the_folder(place: Place) -> None:
    """What the checkpoint holds and what it left out come back together."""
    content = place.big("data/big.bin")
    (place.tree / "data" / "small").write_bytes(b"small")
    found = place.run(lambda: shutil.rmtree(place.tree / "data"), place.tree / "data")
    assert [each.path for each in found.kept] == [str(place.tree / "data" / "big.bin")]
    plan = place.project.plan_undo()
    assert not plan.losses
    assert "data/big.bin" in {change.path for change in plan.changes}
    place.undo()
    assert (place.tree / "data" / "big.bin").read_bytes() == content
    assert (place.tree / "data" / "small").read_bytes() == b"small"


def test_what_is_still_there_after_the_command_is_dropped(place: Place) -> None:
    """Only what is gone is held; nothing keeps a second name of a file that is there."""
    place.big("big.bin")
    place.big("other.bin")
    place.run((place.tree / "big.bin").unlink, place.tree)
    assert place.held() == 2  # the list, and the one that is gone
    assert (place.tree / "other.bin").stat().st_nlink == 1


def test_a_path_that_is_there_again_is_never_overwritten(place: Place) -> None:
    """Neither in the project nor outside; the plan says so."""
    place.big("big.bin")
    notes = place.around / "note.txt"
    notes.write_bytes(b"old")
    big = place.tree / "big.bin"
    place.run(lambda: [each.unlink() for each in (big, notes)], big, notes)  # type: ignore[func-returns-value]
    notes.write_bytes(b"mine")
    (place.tree / "big.bin").write_bytes(b"mine, too")
    plan = place.project.plan_undo()
    kept = {each.path: each.reason.code for each in plan.kept}
    assert kept[str(notes)] == kept["big.bin"] == reasons.THERE_AGAIN
    place.undo()
    assert (notes.read_bytes(), (place.tree / "big.bin").read_bytes()) == (b"mine", b"mine, too")


def test_a_file_that_is_overwritten_in_place_is_copied_and_comes_back(place: Place) -> None:
    """A second name would hold the new bytes, so the old ones are copied."""
    content = place.big("big.bin")
    note = place.around / "note.txt"
    note.write_bytes(b"old")
    other = place.tree / "big.bin"

    def overwrite() -> None:
        other.write_bytes(b"gone")
        note.write_bytes(b"new")

    found = place.run(overwrite, other, note, loss=OVERWRITE)
    assert {each.how for each in found.kept} <= {"copy", "reflink"}
    place.undo()
    assert other.read_bytes() == content
    assert note.read_bytes() == b"old"


def test_a_rescued_file_that_changed_under_another_name_is_not_given_out(place: Place) -> None:
    """A hard link holds what was written through another name; that is no old content."""
    note, second = place.around / "note.txt", place.around / "second.txt"
    note.write_bytes(b"old")
    os.link(note, second)
    place.run(note.unlink, note)
    second.write_bytes(b"new")
    plan = place.project.plan_undo()
    assert [(each.path, each.reason.code) for each in plan.skipped] == [
        (str(note), reasons.RESCUED_CHANGED)
    ]
    place.undo()
    assert not note.exists()


def test_a_folder_that_can_be_made_again_is_named_with_its_command(place: Place) -> None:
    """It is not saved."""
    modules = place.tree / "node_modules"
    for number in range(250):
        (modules / f"p{number}").mkdir(parents=True)
        (modules / f"p{number}" / "index.js").write_bytes(b"1")
    (place.tree / "package-lock.json").write_bytes(b"{}")
    found = place.run(lambda: shutil.rmtree(modules), modules)
    assert [(each.path, each.command) for each in found.rebuildable] == [(str(modules), "npm ci")]
    assert not found.kept


def test_what_cannot_be_kept_is_said(place: Place) -> None:
    """Before the command runs, path by path."""
    place.project.workspace.rules.setting = (  # type: ignore[method-assign]
        lambda table, name, default: 1000 if (table, name) == ("rescue", "copy") else default
    )
    place.big("big.bin")
    found = place.run(
        lambda: (place.tree / "big.bin").write_bytes(b""), place.tree / "big.bin", loss=OVERWRITE
    )
    assert [(each.path, each.reason.code) for each in found.missed] == [
        (str(place.tree / "big.bin"), reasons.TOO_LARGE_TO_COPY)
    ]


def test_a_git_folder_that_is_gone_comes_back_whole(place: Place) -> None:
    """With refs, stash and objects; git finds nothing wrong."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=place.tree, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip

    git("init", "-q", "-b", "main")
    git("add", "covered")
    git("commit", "-qm", "one")
    (place.tree / "covered").write_bytes(b"stashed")
    git("stash")
    git("branch", "other")
    told = [git("status", "--porcelain"), git("stash", "list"), git("branch", "-v"), git("fsck")]
    place.run(lambda: shutil.rmtree(place.tree / ".git"), place.tree / ".git")
    plan = place.project.plan_undo()
    assert reasons.GIT_GONE not in {each.code for each in plan.stays}
    place.undo()
    assert told == [
        git("status", "--porcelain"), git("stash", "list"), git("branch", "-v"), git("fsck"),
    ]  # fmt: skip


@pytest.mark.parametrize("is_over", [False, True])
def test_a_deleted_project_folder_comes_back_with_what_no_checkpoint_held(
    place: Place,
    is_over: bool,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With one command; also if nobody reported that the step is over."""
    content = place.big("deep/big.bin")
    repository = Repository(place)
    work = place.project.workspace
    target = Target(os.fsencode(place.tree), DELETE, is_recursive=True)
    judged = Judgement(effects.DESTRUCTIVE, "test", Reason("test"), targets=(target,))
    turn = place.project.session(agent="test").turn("destroy")
    step = turn.step("Bash", {"command": "find . -delete"}, kind="shell")
    with work.held():
        assert rescue.before(work, step.id, judged).is_whole
    shutil.rmtree(place.tree)
    if is_over:
        with work.held():
            rescue.after(work, step.id)
    monkeypatch.setenv("TAKEBACK_HOME", str(place.around / "home"))
    code = app.main(["undo", "-C", str(place.tree), "--yes"])
    assert code == 0, capfd.readouterr()
    assert (place.tree / "deep" / "big.bin").read_bytes() == content
    assert repository.state() == repository.before


class Repository:
    """A git repository with staged, unstaged, untracked, ignored and stashed work."""

    def __init__(self, place: Place) -> None:
        self.place = place
        tree = place.tree
        self.git("init", "-q", "-b", "main")
        (tree / ".gitignore").write_text("ignored\n")
        for name in ("staged", "unstaged", "both"):
            (tree / name).write_text("one\n")
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        for text in ("first", "second"):
            (tree / "unstaged").write_text(f"{text}\n")
            self.git("stash", "push", "-qm", text)
        self.git("switch", "-qc", "feature")
        (tree / "more").write_text("more\n")
        self.git("add", ".")
        self.git("commit", "-qm", "two")
        self.git("switch", "-q", "main")
        (tree / "staged").write_text("staged\n")
        (tree / "both").write_text("staged\n")
        self.git("add", "staged", "both")
        (tree / "both").write_text("unstaged, too\n")
        (tree / "unstaged").write_text("unstaged\n")
        (tree / "untracked").write_text("untracked\n")
        (tree / "ignored").write_text("ignored\n")
        self.before = self.state()

    def git(self, *words: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            ["git", *names, *words],
            cwd=self.place.tree, check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout

    def state(self) -> dict[str, object]:
        """What git and the tree look like."""
        tree = self.place.tree
        files = {
            str(path.relative_to(tree)): path.read_bytes()
            for path in sorted(tree.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(tree).parts
        }
        told = {
            "status": self.git("status", "--porcelain=v2", "--branch"),
            "stash": self.git("stash", "list"),
            "branch": self.git("branch", "-v"),
            "fsck": self.git("fsck", "--no-dangling", "--no-progress"),
        }
        return {"files": files, **told}

    def destroy(self, *words: str, git: tuple[str, ...]) -> None:
        """Let an agent run git, then take it back, with all commands that are printed."""
        folder = os.fsencode(self.place.tree)
        why = Reason("test")
        judged = Judgement(effects.DESTRUCTIVE, "test", why, git=git, git_dirs=(folder,))
        self.place.judged(lambda: self.git(*words), judged)
        assert self.state() != self.before
        try:
            plan = self.place.project.plan_undo()
        except TakebackError:
            plan = None
        told = plan.stays if plan is not None else self.place.project.plan_undo().stays
        if plan is not None:
            self.place.project.apply(plan, yes=True)
        for reason in told:
            for command in commands_in(text_of(reason)):
                subprocess.run(
                    ["sh", "-ec", command], cwd=self.place.tree, check=True, capture_output=True
                )


def text_of(reason: Reason) -> str:
    """What is printed of something that stays."""
    return git_text.STAYING[reason.code](dict(reason.facts))


def commands_in(text: str) -> list[str]:
    """The commands in a sentence."""
    return [each for each in text.split("`")[1::2] if each.split()[0] in ("git", "cp", "mkdir")]


@pytest.mark.parametrize(
    ("words", "git"),
    [
        (("reset", "-q", "--hard"), (effects.WORKTREE, effects.INDEX)),
        (("reset", "-q", "--hard", "feature"), (effects.WORKTREE, effects.INDEX, effects.REFS)),
        (("clean", "-fdxq"), (effects.WORKTREE,)),
        (("stash", "drop", "-q"), (effects.STASH,)),
        (("stash", "drop", "-q", "stash@{1}"), (effects.STASH,)),
        (("stash", "clear"), (effects.STASH,)),
        (("branch", "-qD", "feature"), (effects.REFS,)),
        (("restore", "--staged", "--worktree", "."), (effects.WORKTREE, effects.INDEX)),
    ],
    ids=" ".join,
)
def test_what_git_destroyed_comes_back_with_undo_and_the_printed_commands(
    place: Place, words: tuple[str, ...], git: tuple[str, ...]
) -> None:
    """Files, index, branches and stashes are as before, and nothing was written to `.git`."""
    repository = Repository(place)
    repository.destroy(*words, git=git)
    assert repository.state() == repository.before


def test_objects_that_git_prunes_are_kept_and_the_commands_bring_them_back(place: Place) -> None:
    """Commits that nothing but a reflog names come back with their log."""
    repository = Repository(place)
    repository.git("commit", "-qam", "three")
    lost = repository.git("rev-parse", "HEAD").strip()
    repository.git("reset", "-q", "--keep", "HEAD~1")
    repository.before = repository.state()
    logs = repository.git("reflog")

    def prune() -> None:
        repository.git("reflog", "expire", "--expire=now", "--all")
        repository.git("gc", "-q", "--prune=now")
        (place.tree / "untracked").unlink()

    folder = os.fsencode(place.tree)
    git = (effects.REFLOG, effects.OBJECTS)
    why = Reason("test")
    place.judged(prune, Judgement(effects.DESTRUCTIVE, "t", why, git=git, git_dirs=(folder,)))
    plan = place.project.plan_undo()
    place.undo()
    for reason in plan.stays:
        for command in commands_in(text_of(reason)):
            subprocess.run(["sh", "-ec", command], cwd=place.tree, check=True)
    assert repository.state()["fsck"] == repository.before["fsck"]
    assert repository.git("reflog") == logs
    assert repository.git("cat-file", "-t", lost) == "commit\n"


def test_a_command_of_an_agent_is_judged_saved_and_taken_back(place: Place) -> None:
    """From the payload of a hook to the undo, with nothing in between but what is shipped."""
    notes = place.around / "notes"
    notes.mkdir()
    (notes / "a").write_bytes(b"a note")
    content = place.big("big.bin")
    common = {"session_id": "S1", "cwd": str(place.tree), "transcript_path": "/dev/null"}
    tool = {"tool_name": "Bash", "tool_use_id": "1"}
    tool |= {"tool_input": {"command": f"rm -rf {notes} big.bin"}}  # type: ignore[dict-item]
    place.box.play(
        {**common, "hook_event_name": "UserPromptSubmit", "prompt": "clean up"},
        {**common, "hook_event_name": "PreToolUse", **tool},
    )
    shutil.rmtree(notes)
    (place.tree / "big.bin").unlink()
    place.box.play(
        {**common, "hook_event_name": "PostToolUse", **tool, "tool_response": {}},
        {**common, "hook_event_name": "Stop"},
    )
    place.undo()
    assert (notes / "a").read_bytes() == b"a note"
    assert (place.tree / "big.bin").read_bytes() == content


def test_the_log_says_rescued_and_not_lost(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an undo brings all of it back, no command says that it is lost or not covered."""

    def said(*words: str) -> str:
        assert app.main([words[0], "-C", str(place.tree), *words[1:]]) == 0
        return capsys.readouterr().out

    monkeypatch.setenv("TAKEBACK_HOME", place.box.home)
    place.big("big.bin")
    git = place.tree / ".git"
    (git / "refs").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")

    def destroy() -> None:
        (place.tree / "big.bin").unlink()
        shutil.rmtree(git)

    place.run(destroy, place.tree / "big.bin", git)
    (turn,) = place.project.log().turns
    assert (turn.raw_rescued, turn.losses) == ((b".git", b"big.bin"), ())
    assert "2 rescued" in said("log")
    page = said("show", "@~0")
    assert "Rescued before it was destroyed" in page
    assert "not covered" not in page
    assert "stays" not in page
    assert "leave" not in page
    lines = said("undo", "--dry-run").splitlines()
    (folder,) = [line for line in lines if ".git" in line]
    assert folder.startswith("  mkdir   .git ")
    assert folder.endswith("rescued before it was destroyed, with 1 file and 1 folder")
    said("undo", "--yes")
    assert "what was rescued stays; redo does not delete it again" in said("redo")
    assert (git / "HEAD").exists()


def test_the_oldest_rescue_goes_when_there_is_too_much(place: Place) -> None:
    """What is dropped takes no space, and the undo of its turn says that it is gone."""
    settings = place.store / "config.toml"
    settings.write_text(f"[rescue]\nlimit = {BIG * 3 // 2}\n")
    with takeback.open(place.tree, home=place.box.home) as project:
        place.project = project
        for name in ("one", "two"):
            path = place.around / name
            path.write_bytes(os.urandom(BIG))
            place.run(path.unlink, path)
        rows = project.workspace.ledger.rescues.there()
        usage = project.usage()
    assert [row.tops for row in rows] == [(os.fsencode(place.around / "two"),)]
    assert (usage.rescues, usage.rescued >= BIG, place.held()) == (1, True, 2)


def test_what_a_dead_process_left_in_a_rescue_goes(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies between the list without a file and the file: the next sweep removes it alone."""
    gone, stays = place.around / "gone", place.around / "stays"
    gone.write_bytes(b"gone\n")
    stays.write_bytes(b"stays\n")
    with monkeypatch.context() as patch:
        patch.setattr(area, "discard", lambda _path: None)
        place.run(gone.unlink, gone, stays)
    work = place.project.workspace
    (row,) = work.ledger.rescues.there()
    (folder,) = row.areas
    saved = Path(os.fsdecode(folder)) / row.id
    assert len(list(saved.iterdir())) == 2
    with work.held():
        care.sweep(work)
    assert [each.read_bytes() for each in saved.iterdir()] == [b"gone\n"]
    place.undo()
    assert (gone.read_bytes(), stays.read_bytes()) == (b"gone\n", b"stays\n")


def test_on_another_disk_than_the_store_the_rescue_lies_beside_the_project() -> None:
    """In a folder of its own, which only the user can open, and which goes when it is empty."""
    with ExitStack() as stack:
        box = stack.enter_context(Sandbox())
        own = Path(box.tree).stat().st_dev
        disks = [disk for disk in ("/dev/shm", "/var/tmp") if os.stat(disk).st_dev != own]
        if not disks:
            pytest.skip("there is one disk only")
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=disks[0]))
        tree = Path(folder) / "above" / "tree"
        (tree / "deep").mkdir(parents=True)
        with takeback.open(tree, home=box.home) as project:
            place = Place(box, project)
            content = place.big("deep/big.bin")
            place.run(lambda: shutil.rmtree(tree / "deep"), tree / "deep")
            (beside,) = tree.parent.glob(".takeback-rescue-*")
            assert beside.stat().st_mode & 0o7777 == 0o700
            place.undo()
            assert (tree / "deep" / "big.bin").read_bytes() == content
            work = project.workspace
            with work.held():
                care.drop(work, work.ledger.rescues.there(), care.AGE)
            assert not beside.exists()
