"""What OpenCode tests of work trees and reverts, and its fork Kilo, as tests of ours."""

import errno
import os
import subprocess
import time

import pytest

import takeback
from cases import Work, paths_of
from takeback.disk import operations

# -- linked work trees ---------------------------------------------------------------------


def linked(work: Work) -> Work:
    """A linked work tree of the repository, with a project of its own."""
    work.git("worktree", "add", "-q", "-b", "side", "../side")
    return Work(work.tree.parent / "side", work.home)


def test_opencode_patch_detects_changes_in_secondary_worktree(work: Work) -> None:
    """In a linked work tree all is recorded and taken back as in the first one."""
    work.repository(a_txt="1\n")
    side = linked(work)
    with side.turn() as turn:
        side.write(a_txt="2\n", new_txt="x\n")
    assert [c.raw_path for c in turn.recorded().changes] == [b"a.txt", b"new.txt"]
    side.undo()
    assert side.git("status", "--short") == ""
    side.close()


def test_opencode_revert_only_removes_files_in_invoking_worktree(work: Work) -> None:
    """A file of the same name in the other work tree stays."""
    work.repository(a_txt="1\n")
    side = linked(work)
    with side.turn():
        side.write(new_txt="side\n")
    work.write(new_txt="main\n")
    side.undo()
    assert side.has_none("new.txt")
    assert work.text("new.txt") == "main\n"
    side.close()


def test_opencode_diff_reports_worktree_only_edits_and_ignores_primary_only(work: Work) -> None:
    """What changes in the first work tree is no part of a plan in the other."""
    work.repository(a_txt="1\n", shared_txt="1\n")
    side = linked(work)
    ref = side.checkpoint()
    work.write(a_txt="main\n", shared_txt="main\n")
    side.write(shared_txt="side\n")
    assert paths_of(side.project.plan_rollback(ref)) == {"shared.txt": "write"}
    side.close()


def test_opencode_v2_isolates_snapshots_by_canonical_worktree(work: Work) -> None:
    """A work tree that is reached through a link is the same project."""
    work.repository(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    (work.tree.parent / "alias").symlink_to(work.tree)
    alias = Work(work.tree.parent / "alias", work.home)
    assert alias.project.id == work.project.id
    alias.undo()
    assert work.text("a.txt") == "1\n"
    alias.close()


# -- states --------------------------------------------------------------------------------


def test_opencode_track_with_no_changes_returns_same_hash(work: Work) -> None:
    """As long as nothing changes there is one checkpoint, and a plan makes no other."""
    work.write(a_txt="1\n")
    first = work.project.checkpoint()
    second = work.project.checkpoint()
    assert (second.id, second.tree, second.new) == (first.id, first.tree, False)
    work.project.plan_rollback(first.id)
    assert len(list(work.project.checkpoints())) == 1


def test_opencode_restore_function(work: Work) -> None:
    """Inverted: deleted and changed files return, and a new file does not remain."""
    work.repository(a_txt="1\n", b_txt="2\n")
    before, ref = work.picture(), work.checkpoint()
    work.remove("a.txt")
    work.write(b_txt="changed\n", new_txt="new\n")
    work.rollback(ref)
    assert work.picture() == before


def test_opencode_revert_removes_a_file_made_again_after_a_snapshot_without_it(work: Work) -> None:
    """What the state did not hold goes, also if an older state held it."""
    work.repository(a_txt="1\n")
    work.remove("a.txt")
    with work.turn():
        work.write(a_txt="again\n")
    work.undo()
    assert work.has_none("a.txt")


def test_opencode_revert_preserves_file_that_existed_when_deleted_then_recreated(
    work: Work,
) -> None:
    """The bytes of before return to a file that was deleted and made again; the new one goes."""
    work.write(a_txt="original\n")
    with work.turn():
        work.remove("a.txt")
        work.write(a_txt="recreated\n", new_txt="x\n")
    work.undo()
    assert work.text("a.txt") == "original\n"
    assert work.has_none("new.txt")


def test_opencode_revert_with_overlapping_files_uses_first_patch(work: Work) -> None:
    """Several turns wrote one file: taking them all back ends where the first began."""
    work.write(a_txt="0\n")
    for text in ("1\n", "2\n", "3\n"):
        with work.turn():
            work.write(a_txt=text, b_txt=text)
    for _ in range(3):
        work.undo()
    assert work.text("a.txt") == "0\n"
    assert work.has_none("b.txt")


def test_opencode_revert_preserves_patch_order_when_kinds_swap(work: Work) -> None:
    """File, folder, file again, link: each undo is exact, and so is each redo."""
    work.write(x="file\n")
    pictures = [work.picture()]
    for step in range(3):
        with work.turn():
            work.remove("x")
            if step == 0:
                work.put("x/inner.txt", "in a folder\n")
            elif step == 1:
                work.put("x", "file again\n")
            else:
                (work.tree / "x").symlink_to("nowhere")
        pictures.append(work.picture())
    for number in (2, 1, 0):
        work.undo()
        assert work.picture() == pictures[number]
    for number in (1, 2, 3):
        work.redo()
        assert work.picture() == pictures[number]


def test_opencode_revert_handles_large_mixed_batches(work: Work) -> None:
    """Hundreds of changed, new and deleted files are all taken back."""
    for number in range(150):
        work.put(f"d{number % 7}/old{number}.txt", f"{number}\n")
    before = work.picture()
    with work.turn():
        for number in range(150):
            work.put(f"d{number % 9}/new{number}.txt", f"{number}\n")
            if number % 3:
                work.put(f"d{number % 7}/old{number}.txt", "agent\n")
            else:
                work.remove(f"d{number % 7}/old{number}.txt")
    assert len(work.undo().plan.changes) == 302
    assert work.picture() == before


def test_opencode_v2_captures_and_restores_location_scoped_changes(work: Work) -> None:
    """A rollback of paths plans and does only these; the rest keeps what it has."""
    work.write(in__a_txt="1\n", in__b_txt="1\n", out_txt="1\n")
    ref = work.checkpoint()
    work.write(in__a_txt="2\n", in__b_txt="2\n", in__new_txt="x\n", out_txt="2\n")
    assert paths_of(work.rollback(ref, "in").plan) == {
        "in/a.txt": "write",
        "in/b.txt": "write",
        "in/new.txt": "delete",
    }
    assert work.text("out.txt") == "2\n"


# -- revert and unrevert -------------------------------------------------------------------


@pytest.mark.parametrize("files", [("a", "b", "c"), ("a", "a", "a")], ids=["several", "the same"])
def test_opencode_restore_messages_in_sequential_order(
    work: Work, files: tuple[str, str, str]
) -> None:
    """All turns undone, then redone one by one, in one file or in several: exact at each step."""
    work.write(a="0\n", b="0\n", c="0\n")
    pictures = [work.picture()]
    for number, name in enumerate(files, start=1):
        with work.turn():
            work.put(name, f"{number}\n")
        pictures.append(work.picture())
    for _ in files:
        work.undo()
    assert work.picture() == pictures[0]
    for picture in pictures[1:]:
        work.redo()
        assert work.picture() == picture
    with pytest.raises(takeback.NothingToTakeBackError):
        work.redo()


def test_opencode_snapshot_tool_race(work: Work) -> None:
    """When a step has begun, what was there is safe: a tool that acts at once is taken back."""
    work.write(a_txt="1\n")
    with work.turn() as turn:
        for text in ("2\n", "3\n"):
            with turn.step("Bash", {"command": "echo"}):
                work.write(a_txt=text)
    assert [step.tool for step in turn.recorded().steps] == ["Bash", "Bash"]
    work.undo()
    assert work.text("a.txt") == "1\n"


# -- Kilo ----------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["undo", "redo", "rollback"])
def test_kilo_keeps_everything_unchanged_when_a_checkpoint_cannot_be_fully_restored(
    work: Work, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """One file of three refuses: nothing changes, neither files nor what can be undone."""
    names = ("a.txt", "m.txt", "z.txt")
    work.write(a_txt="1\n", m_txt="1\n", z_txt="1\n")
    ref = work.checkpoint()
    with work.turn():
        work.write(a_txt="2\n", m_txt="2\n", z_txt="2\n")
    if verb == "redo":
        work.undo()
    before = work.picture()
    done: list[object] = []

    def refuse_the_second(step: str, given: tuple[object, ...]) -> None:
        if step in ("exchange", "move"):
            done.append(given)
        if len(done) == 2:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(operations, "hook", refuse_the_second)

    def again() -> None:
        work.rollback(ref) if verb == "rollback" else getattr(work, verb)()

    with pytest.raises(takeback.TakebackError):
        again()
    monkeypatch.setattr(operations, "hook", None)
    assert len(done) > 1, "the first file was put in its place before"
    assert work.picture() == before
    again()
    assert {work.text(name) for name in names} == {"2\n" if verb == "redo" else "1\n"}


def test_kilo_unreverts_deleted_files_from_a_session_rooted_in_a_subdirectory(work: Work) -> None:
    """An agent that works in a subfolder: what it did there and above is undone and redone."""
    work.repository(sub__a_txt="1\n", top_txt="1\n")
    project = takeback.open(work.tree / "sub", home=work.home)
    assert project.root == str(work.tree)
    with project.session(agent="x") as session, session.turn("delete"):
        work.remove("sub/a.txt")
        work.write(top_txt="2\n")
    after = work.picture()
    project.undo()
    assert (work.text("sub/a.txt"), work.text("top.txt")) == ("1\n", "1\n")
    project.redo()
    assert work.picture() == after
    project.close()


def test_kilo_restores_both_paths_after_moving_a_file(work: Work) -> None:
    """A file moved over another: both have their own bytes again."""
    work.repository(a_txt="of a\n", b_txt="of b\n")
    with work.turn():
        work.move("a.txt", "b.txt")
    work.undo()
    assert (work.text("a.txt"), work.text("b.txt")) == ("of a\n", "of b\n")


def test_kilo_seed_preserves_line_endings_and_filtered_bytes(work: Work) -> None:
    """No line ending, keyword, filter or encoding of git touches what comes back."""
    work.git("init", "-q")
    work.git("config", "core.autocrlf", "true")
    work.git("config", "filter.shout.smudge", "tr a-z A-Z")
    work.git("config", "filter.shout.clean", "tr A-Z a-z")
    work.write(_gitattributes="*.txt text ident eol=crlf\n*.up filter=shout\n")
    contents = {"crlf.txt": b"a\r\nb\r\n", "lf.txt": b"$Id$\nb\n", "mixed.txt": b"a\r\nb\n\r"}
    contents |= {"x.up": b"miXed", "bom.txt": "\ufeffx".encode("utf-16")}
    for name, content in contents.items():
        work.put(name, content)
    with work.turn():
        for name in contents:
            work.put(name, "agent\n")
    work.undo()
    assert {name: (work.tree / name).read_bytes() for name in contents} == contents


def test_kilo_interrupted_seed_removes_borrowed_state_after_source_gc(work: Work) -> None:
    """Nothing is borrowed from your repository: with all its objects gone, undo is exact."""
    work.repository(a_txt="1\n", b_txt="2\n")
    with work.turn():
        work.write(a_txt="agent\n")
        work.remove("b.txt")
    work.remove(".git/objects")
    work.undo()
    assert (work.text("a.txt"), work.text("b.txt")) == ("1\n", "2\n")


def test_kilo_seed_falls_back_for_unmerged_indexes_and_sparse_checkouts(work: Work) -> None:
    """In the middle of a merge conflict the tree is taken back, and git's index stays unmerged."""
    work.repository(a_txt="base\n")
    work.git("switch", "-q", "-c", "other")
    work.write(a_txt="other\n")
    work.git("commit", "-qam", "other")
    work.git("switch", "-q", "main")
    work.write(a_txt="main\n")
    work.git("commit", "-qam", "main")
    with pytest.raises(subprocess.CalledProcessError):
        work.git("merge", "-q", "other")
    before, index = work.picture(), work.dot_git()
    with work.turn():
        work.write(a_txt="solved\n")
    work.undo()
    assert work.picture() == before
    assert work.dot_git() == index


def test_kilo_revert_is_quick_to_say_what_it_did(work: Work) -> None:
    """A plan for texts that are hard to compare does not compare them, so it takes no time."""
    lines = [f"{number * 7919 % 1000}\n" for number in range(20_000)]
    work.put("hard.txt", "".join(lines))
    ref = work.checkpoint()
    work.put("hard.txt", "".join(reversed(lines)))
    work.checkpoint()
    start = time.process_time()
    work.project.plan_rollback(ref)
    assert time.process_time() - start < 1
