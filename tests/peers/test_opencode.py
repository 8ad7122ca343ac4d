"""What OpenCode tests of snapshots, as tests of ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import takeback
from cases import Work, paths_of

# -- snapshot.test.ts ----------------------------------------------------------------------


def test_opencode_tracks_deleted_files_correctly(work: Work) -> None:
    """A deleted tracked file is in the turn's record and in the plan, and comes back."""
    work.repository(a_txt="1\n", b_txt="2\n")
    with work.turn() as turn:
        work.remove("a.txt")
    assert [(c.raw_path, c.verb) for c in turn.recorded().changes] == [(b"a.txt", "delete")]
    assert paths_of(work.project.plan_undo()) == {"a.txt": "create"}
    work.undo()
    assert work.text("a.txt") == "1\n"


def test_opencode_revert_should_remove_new_files(work: Work) -> None:
    """A new file goes, and what was there stays."""
    work.repository(a_txt="1\n")
    with work.turn():
        work.write(new_txt="NEW\n")
    assert paths_of(work.undo().plan) == {"new.txt": "delete"}
    assert sorted(os.listdir(work.tree)) == [".git", "a.txt"]


def test_opencode_revert_in_subdirectory(work: Work) -> None:
    """A new file in a new folder goes, and with it the folder."""
    work.repository(a_txt="1\n")
    with work.turn():
        work.put("sub/deep/file.txt", "SUB\n")
    work.undo()
    assert work.has_none("sub")


def test_opencode_multiple_file_operations(work: Work) -> None:
    """A deletion, a creation and a change in one turn are all taken back."""
    work.repository(a_txt="1\n", b_txt="2\n")
    before = work.picture()
    with work.turn():
        work.remove("a.txt")
        work.write(b_txt="changed\n", c_txt="new\n", dir__d_txt="new\n")
    assert paths_of(work.undo().plan) == {
        "a.txt": "create",
        "b.txt": "write",
        "c.txt": "delete",
        "dir": "rmdir",
        "dir/d.txt": "delete",
    }
    assert work.picture() == before


def test_opencode_empty_directory_handling(work: Work) -> None:
    """Inverted: an empty folder that was made goes, one that was removed comes back."""
    work.repository(a_txt="1\n")
    (work.tree / "old").mkdir(mode=0o750)
    with work.turn():
        (work.tree / "new" / "inner").mkdir(parents=True)
        (work.tree / "old").rmdir()
    assert paths_of(work.undo().plan) == {"new": "rmdir", "new/inner": "rmdir", "old": "mkdir"}
    assert work.has_none("new")
    assert work.mode("old") == 0o750


def test_opencode_binary_file_handling(work: Work) -> None:
    """Binary files are removed and restored like others."""
    work.repository()
    work.put("old.png", bytes(range(256)))
    with work.turn():
        work.put("new.png", b"\x89PNG\r\n\x1a\n")
        work.put("old.png", b"\0" * 300)
    work.undo()
    assert work.has_none("new.png")
    assert (work.tree / "old.png").read_bytes() == bytes(range(256))


def test_opencode_symlink_handling(work: Work) -> None:
    """A new link goes and not what it leads to; a link that led elsewhere leads back."""
    work.repository(a_txt="1\n", b_txt="2\n")
    (work.tree / "old").symlink_to("a.txt")
    with work.turn():
        (work.tree / "new").symlink_to("b.txt")
        work.remove("old")
        (work.tree / "old").symlink_to("b.txt")
    work.undo()
    assert work.has_none("new")
    assert os.readlink(work.tree / "old") == "a.txt"
    assert work.text("b.txt") == "2\n"


def test_opencode_file_under_size_limit_handling(work: Work) -> None:
    """An untracked file of a few megabytes is captured, removed and restored."""
    work.repository()
    work.put("old.bin", b"x" * (3 << 20))
    with work.turn():
        work.put("new.bin", b"y" * (1 << 20))
        work.remove("old.bin")
    work.undo()
    assert work.has_none("new.bin")
    assert (work.tree / "old.bin").read_bytes() == b"x" * (3 << 20)


def test_opencode_large_added_files_are_skipped(work: Work) -> None:
    """Inverted: a new file above the limit is not silent. It is listed, and undo leaves it."""
    work.repository(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
        with (work.tree / "dump.bin").open("wb") as file:
            file.truncate(17 << 20)
    assert work.left_out()["dump.bin"] == "too large"
    report = work.undo()
    assert work.text("a.txt") == "1\n"
    assert (work.tree / "dump.bin").stat().st_size == 17 << 20
    assert [remark.raw_path for remark in report.plan.skipped] == [b"dump.bin"]


def test_opencode_nested_directory_revert(work: Work) -> None:
    """A file deep below new folders goes with all of them."""
    work.repository(a_txt="1\n")
    before = work.picture()
    with work.turn():
        work.put("l1/l2/l3/l4/l5/deep.txt", "DEEP\n")
    work.undo()
    assert work.picture() == before


def test_opencode_special_characters_in_filenames(work: Work) -> None:
    """Names with anything but a slash in them are listed as they are, and taken back."""
    names = [
        "with spaces.txt",
        "a-b.txt",
        "a_b.txt",
        'quo"te',
        "back\\slash",
        "new\nline",
        ":(top)",
    ]
    work.repository(a_txt="1\n")
    for name in names[::2]:
        work.put(name, "old\n")
    before = work.picture()
    with work.turn():
        for name in names:
            work.put(name, "agent\n")
    assert paths_of(work.undo().plan).keys() == set(names)
    assert work.picture() == before


def test_opencode_revert_with_empty_patches(work: Work) -> None:
    """A turn that changed nothing is passed over; taken back by name it changes nothing."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    with work.turn() as idle:
        pass
    before = work.picture()
    plan = work.project.plan_undo(idle)
    assert (plan.changes, plan.conflicts) == ((), ())
    assert work.picture() == before
    assert work.project.plan_undo().passed_over == 1
    work.undo()
    assert work.text("a.txt") == "1\n"


def test_opencode_patch_with_invalid_hash(work: Work) -> None:
    """Inverted: a name that means nothing is an error and not an empty list."""
    work.write(a_txt="1\n")
    work.checkpoint()
    for ref in ("invalid-hash-12345", "zzzzzzzzzzzz", "", "--patch"):
        with pytest.raises(takeback.UsageError):
            work.project.plan_rollback(ref)
    with pytest.raises(takeback.UsageError):
        work.project.plan_undo("zzzzzzzzzzzz")


def test_opencode_revert_non_existent_file(work: Work) -> None:
    """A new file that you removed yourself is no trouble."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n", new_txt="x\n")
    work.remove("new.txt")
    assert paths_of(work.undo().plan) == {"a.txt": "write"}
    assert work.has_none("new.txt")


UNICODE = ("文件.txt", "🚀rocket.txt", "café.txt", "файл.txt", "مرحبا.txt", "cafe\u0301.txt")


def test_opencode_unicode_filenames(work: Work) -> None:
    """New files with names in any script go."""
    work.repository()
    with work.turn():
        for name in UNICODE:
            work.put(name, name)
    work.undo()
    assert os.listdir(work.tree) == [".git"]


def test_opencode_unicode_filenames_modification_and_restore(work: Work) -> None:
    """Changed files with names in any script get their bytes back."""
    for name in UNICODE:
        work.put(name, f"old {name}")
    before = work.picture()
    with work.turn():
        for name in UNICODE:
            work.put(name, "agent")
    work.undo()
    assert work.picture() == before


def test_opencode_unicode_filenames_in_subdirectories(work: Work) -> None:
    """Folders with names in any script come back with what was in them."""
    for name in UNICODE:
        work.put(f"目录/подпапка/{name}", name)
    before = work.picture()
    with work.turn():
        work.remove("目录")
    work.undo()
    assert work.picture() == before


def test_opencode_very_long_filenames(work: Work) -> None:
    """A name as long as a file system takes is as good as any."""
    longest = "n" * 255
    work.put("o" * 255, "old\n")
    with work.turn():
        work.put(longest, "agent\n")
        work.remove("o" * 255)
    work.undo()
    assert work.has_none(longest)
    assert work.text("o" * 255) == "old\n"


def test_opencode_hidden_files(work: Work) -> None:
    """Files whose names begin with a dot are taken back, `.gitignore` too."""
    work.repository(_gitignore="*.log\n")
    with work.turn():
        work.write(_hidden="x\n", _gitignore="*\n", _config__app="y\n")
    work.undo()
    assert work.has_none(".hidden", ".config")
    assert work.text(".gitignore") == "*.log\n"


def test_opencode_nested_symlinks(work: Work) -> None:
    """Links to files and folders are taken back as links; nothing is written through them."""
    work.put("dir/target.txt", "here\n")
    with work.turn():
        (work.tree / "dir" / "link").symlink_to("target.txt")
        (work.tree / "folder-link").symlink_to("dir")
        work.remove("dir/target.txt")
    work.undo()
    assert work.has_none("dir/link", "folder-link")
    assert work.text("dir/target.txt") == "here\n"


def test_opencode_file_permissions_and_ownership_changes(work: Work) -> None:
    """Every permission bit comes back, and a change that came to nothing is none."""
    work.put("run.sh", "#!/bin/sh\n", 0o640)
    with work.turn():
        (work.tree / "run.sh").chmod(0o755)
    assert paths_of(work.undo().plan) == {"run.sh": "mode"}
    assert work.mode("run.sh") == 0o640
    with work.turn() as turn:
        (work.tree / "run.sh").chmod(0o755)
        (work.tree / "run.sh").chmod(0o640)
    assert turn.recorded().changes == ()


def test_opencode_circular_symlinks(work: Work) -> None:
    """Links in a circle are captured as links, go, and come back."""
    (work.tree / "a").symlink_to("b")
    (work.tree / "b").symlink_to("a")
    with work.turn():
        work.remove("a", "b")
        (work.tree / "self").symlink_to("self")
    work.undo()
    assert (os.readlink(work.tree / "a"), os.readlink(work.tree / "b")) == ("b", "a")
    assert work.has_none("self")


def test_opencode_source_project_gitignore_is_respected(work: Work) -> None:
    """Inverted: ignored files are captured, and what the agent did to them is taken back."""
    work.repository(_gitignore="*.ignored\nbuild/\n")
    work.write(a_ignored="old\n", build__out_o="old\n")
    with work.turn():
        work.write(a_ignored="agent\n", b_ignored="agent\n", build__out_o="agent\n")
    work.undo()
    assert (work.text("a.ignored"), work.text("build/out.o")) == ("old\n", "old\n")
    assert work.has_none("b.ignored")


def test_opencode_subdirectory_snapshots_include_scoped_changes_only(work: Work) -> None:
    """Undo of one folder neither plans nor does anything beside it."""
    work.write(one__a_txt="1\n", two__a_txt="1\n")
    with work.turn():
        work.write(one__a_txt="2\n", two__a_txt="2\n")
    assert paths_of(work.project.plan_undo(paths=["one"])) == {"one/a.txt": "write"}
    work.undo("one")
    assert (work.text("one/a.txt"), work.text("two/a.txt")) == ("1\n", "2\n")


@pytest.mark.parametrize(("folder", "other"), [("src*", "srca"), (":src", "src"), ("[a]", "a")])
def test_opencode_subdirectory_snapshots_treat_wildcard_characters_literally(
    work: Work, folder: str, other: str
) -> None:
    """A path is a path: no pattern and no pathspec magic."""
    for name in (folder, other):
        work.put(f"{name}/x.txt", "1\n")
    with work.turn():
        for name in (folder, other):
            work.put(f"{name}/x.txt", "2\n")
    work.undo(folder)
    assert (work.text(f"{folder}/x.txt"), work.text(f"{other}/x.txt")) == ("1\n", "2\n")


@pytest.mark.parametrize("rules", [".gitignore", ".git/info/exclude"])
def test_opencode_gitignore_changes(work: Work, rules: str) -> None:
    """Inverted: rules that come with the turn hide nothing that it does, and go with it."""
    work.repository(_env="KEY=old\n", a_txt="1\n")
    before = work.picture()
    with work.turn():
        work.put(rules, ".env\nnew.txt\na.txt\n")
        work.write(_env="KEY=agent\n", new_txt="x\n", a_txt="2\n")
    work.undo()
    assert work.picture() == before


def test_opencode_concurrent_file_operations_during_patch(work: Work) -> None:
    """While somebody writes another file all the time, an undo is exact and loses no save."""
    work.write(a_txt="1\n", busy_txt="")
    code = (
        "import os, sys, time\n"
        "number = 0\n"
        "while True:\n"
        "    number += 1\n"
        "    with open('busy.tmp', 'w') as file: file.write(str(number))\n"
        "    os.replace('busy.tmp', 'busy.txt')\n"
        "    print(number, flush=True)\n"
    )
    with work.turn():
        work.write(a_txt="2\n")
    with subprocess.Popen([sys.executable, "-c", code], cwd=work.tree, stdout=-1) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        try:
            work.undo()
        finally:
            writer.kill()
        last = int(writer.stdout.read().split()[-1])
    assert work.text("a.txt") == "1\n"
    assert int(work.text("busy.txt")) >= last


def test_opencode_snapshot_state_isolation_between_projects(work: Work, tmp_path: Path) -> None:
    """An undo in one project leaves another one, with the same names in it, alone."""
    elsewhere = Work(tmp_path / "elsewhere", work.home)
    for one in (work, elsewhere):
        one.put("a.txt", "1\n")
        with one.turn():
            one.write(a_txt="2\n")
    work.undo()
    assert (work.text("a.txt"), elsewhere.text("a.txt")) == ("1\n", "2\n")
    elsewhere.undo()
    assert elsewhere.text("a.txt") == "1\n"
    elsewhere.close()
