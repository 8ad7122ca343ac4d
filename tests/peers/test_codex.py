"""What Codex tested of its undo, as tests of ours; `docs/contributing/cases.md` lists them."""

import os
import re
from pathlib import Path

import pytest

import takeback
from cases import Work, paths_of

PEERS = Path(__file__).parent
ROW = re.compile(r"^\| (.+?) \| (.+) \|$", re.MULTILINE)


def test_every_case_has_a_test_or_a_reason() -> None:
    """Each row of the list names a test or says why there is none, and no test is left out."""
    text = (PEERS.parents[1] / "docs" / "contributing" / "cases.md").read_text()
    rows = [(case, ours) for case, ours in ROW.findall(text) if case not in ("case", "---")]
    assert len(rows) > 200
    pattern = re.compile(
        r"`(tests/[\w/]+)?test_\w+(\.py)?`|\bno\b|merge|there are no|\bretention\b"
    )
    assert [case for case, ours in rows if not pattern.search(ours) and "](#" not in ours] == []
    named = set(re.findall(r"`(test_\w+)`", text))
    found: set[str] = set()
    for file in PEERS.glob("test_*.py"):
        found |= set(re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE))
    assert found - named == {"test_every_case_has_a_test_or_a_reason"}


# -- undo.rs -------------------------------------------------------------------------------


def test_codex_undo_removes_new_file_created_during_turn(work: Work) -> None:
    """A file that the turn made is gone after undo."""
    work.repository(a_txt="1\n")
    with work.turn():
        work.write(new_txt="new\n")
    work.undo()
    assert work.has_none("new.txt")
    assert work.text("a.txt") == "1\n"


def test_codex_undo_restores_tracked_file_edit(work: Work) -> None:
    """A tracked file gets its old bytes back, and git sees no difference."""
    work.repository(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    work.undo()
    assert work.text("a.txt") == "1\n"
    assert work.git("status", "--short") == ""


def test_codex_undo_restores_untracked_file_edit(work: Work) -> None:
    """An untracked file that was there before gets its old bytes back."""
    work.repository(a_txt="1\n")
    work.write(notes_txt="mine\n")
    with work.turn():
        work.write(notes_txt="the agent's\n")
    work.undo()
    assert work.text("notes.txt") == "mine\n"
    assert work.git("status", "--short") == "?? notes.txt\n"


def test_codex_undo_reverts_only_latest_turn(work: Work) -> None:
    """Two turns wrote one file; one undo goes to what the first left."""
    work.write(a_txt="0\n")
    for text in ("1\n", "2\n"):
        with work.turn():
            work.write(a_txt=text)
    work.undo()
    assert work.text("a.txt") == "1\n"


def test_codex_undo_does_not_touch_unrelated_files(work: Work) -> None:
    """What the turn did not change keeps content, mode and time; its temporary file goes."""
    work.repository(a_txt="1\n", tracked_txt="t\n", _gitignore="*.log\n")
    work.write(untracked_txt="u\n", ignored_log="i\n")
    others = ("tracked.txt", "untracked.txt", "ignored.log", ".gitignore")
    before = {name: work.written(name) for name in others}
    with work.turn():
        work.write(a_txt="2\n", temp_txt="x\n")
    work.undo()
    assert work.has_none("temp.txt")
    assert {name: work.written(name) for name in others} == before


def test_codex_undo_sequential_turns_consumes_snapshots(work: Work) -> None:
    """Three undos walk back three turns one by one; the fourth says that there is nothing."""
    work.write(a_txt="0\n")
    for number in (1, 2, 3):
        with work.turn():
            work.write(a_txt=f"{number}\n")
    for number in (2, 1, 0):
        work.undo()
        assert work.text("a.txt") == f"{number}\n"
    with pytest.raises(takeback.NothingToTakeBackError) as refusal:
        work.undo()
    assert str(refusal.value)
    assert work.text("a.txt") == "0\n"


def test_codex_undo_without_snapshot_reports_failure(work: Work) -> None:
    """Where no agent has worked there is nothing to undo, and that is said with an exit code."""
    work.write(a_txt="1\n")
    with pytest.raises(takeback.NothingToTakeBackError) as refusal:
        work.undo()
    assert refusal.value.exit_code == 1
    assert work.text("a.txt") == "1\n"


def test_codex_undo_restores_moves_and_renames(work: Work) -> None:
    """What was moved into a new folder and edited is back, and the folder is gone."""
    work.repository(src__a_txt="1\n")
    before = work.picture()
    with work.turn():
        work.move("src/a.txt", "lib/new/b.txt")
        work.put("lib/new/b.txt", "2\n")
    work.undo()
    assert work.picture() == before


def test_codex_undo_does_not_touch_ignored_directory_contents(work: Work) -> None:
    """Inverted: what the agent wrote into an ignored folder goes, what was there stays."""
    work.repository(_gitignore="cache/\n")
    work.put("cache/old.txt", "old\n")
    with work.turn():
        work.put("cache/new.txt", "new\n")
    work.undo()
    assert work.has_none("cache/new.txt")
    assert work.text("cache/old.txt") == "old\n"


def test_codex_undo_overwrites_manual_edits_after_turn(work: Work) -> None:
    """Inverted: your edit of the same line is never overwritten; you are asked, nothing is done."""
    work.repository(a_txt="1\n", b_txt="1\n")
    with work.turn():
        work.write(a_txt="agent\n", b_txt="agent\n")
    work.write(a_txt="you\n")
    before = work.picture()
    with pytest.raises(takeback.ConflictError) as refusal:
        work.undo()
    assert [path for path, _ in refusal.value.conflicts] == ["a.txt"]
    assert work.picture() == before


def test_codex_undo_preserves_unrelated_staged_changes(work: Work) -> None:
    """Inverted: what you edited and staged meanwhile stays in the index and in the tree."""
    work.repository(a_txt="1\n", staged_txt="v1\n")
    with work.turn():
        work.write(a_txt="2\n")
    work.write(staged_txt="v2\n")
    work.git("add", "staged.txt")
    work.undo()
    assert work.text("a.txt") == "1\n"
    assert work.text("staged.txt") == "v2\n"
    assert work.git("status", "--short") == "M  staged.txt\n"


# -- ghost_commits.rs ----------------------------------------------------------------------


def test_codex_create_and_restore_roundtrip(work: Work) -> None:
    """Tracked, deleted, untracked and ignored files return to the state; later ones go."""
    work.repository(a_txt="1\n", gone_txt="here\n", _gitignore="*.key\n")
    work.write(untracked_txt="u\n", secret_key="k\n")
    before, ref = work.picture(), work.checkpoint()
    work.write(a_txt="2\n", untracked_txt="v\n", secret_key="l\n", later_txt="x\n")
    work.remove("gone.txt")
    work.rollback(ref)
    assert work.picture() == before


def large(place: Path, mib: int = 17) -> None:
    """Make a file above the size limit, which takes no room."""
    with place.open("wb") as file:
        file.truncate(mib << 20)


def test_codex_snapshot_ignores_large_untracked_files(work: Work) -> None:
    """A file above the limit is listed as left out, and no restore removes or changes it."""
    work.repository(a_txt="1\n")
    large(work.tree / "data.bin")
    ref = work.checkpoint()
    assert work.left_out()["data.bin"] == "too large"
    with work.turn():
        work.write(a_txt="2\n")
    work.undo()
    (work.tree / "data.bin").write_bytes(b"grown")
    large(work.tree / "more.bin")
    work.rollback(ref)
    assert (work.tree / "more.bin").stat().st_size == 17 << 20
    assert (work.tree / "data.bin").read_bytes() == b"grown"


def fill(folder: Path, count: int = 201) -> None:
    """Make a folder with many small files."""
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"f{number}").write_text(f"{number}\n")


def test_codex_create_snapshot_reports_large_untracked_dirs(work: Work) -> None:
    """Better: a big untracked folder is captured like any other, and comes back."""
    work.repository(a_txt="1\n")
    fill(work.tree / "data")
    before, ref = work.picture(), work.checkpoint()
    assert "data" not in work.left_out()
    work.remove("data")
    work.rollback(ref)
    assert work.picture() == before


def test_codex_restore_preserves_large_untracked_dirs_when_threshold_disabled(work: Work) -> None:
    """What a state left out stays when the limit that left it out is gone by now."""
    work.write(a_txt="1\n")
    fill(work.tree / "node_modules")
    ref = work.checkpoint()
    assert work.left_out() == {"node_modules": "rebuildable"}
    work.close()
    (work.home / "config.toml").write_text("[limits]\nentries = 100000\n")
    work.write(a_txt="2\n")
    work.rollback(ref)
    assert work.text("a.txt") == "1\n"
    assert len(os.listdir(work.tree / "node_modules")) == 201


def test_codex_snapshot_ignores_default_ignored_directories(work: Work) -> None:
    """Better: big `node_modules` are left out and said to be; small ones are captured."""
    work.repository(a_txt="1\n")
    fill(work.tree / "node_modules")
    work.put(".venv/bin/python", "#!\n")
    work.checkpoint()
    assert work.left_out() == {".git": "version control", "node_modules": "rebuildable"}


def test_codex_restore_preserves_default_ignored_directories(work: Work) -> None:
    """A rollback to before `npm install` leaves what was installed."""
    work.write(package_json="{}\n")
    ref = work.checkpoint()
    with work.turn():
        work.write(package_json='{"a": 1}\n')
        fill(work.tree / "node_modules")
    work.rollback(ref)
    assert work.text("package.json") == "{}\n"
    assert len(os.listdir(work.tree / "node_modules")) == 201


def test_codex_create_snapshot_reports_nested_large_untracked_dirs(work: Work) -> None:
    """What is left out below a tracked folder is named where it is, not by its parent."""
    work.repository(web__index_js="1\n")
    fill(work.tree / "web" / "node_modules")
    work.checkpoint()
    assert work.left_out()["web/node_modules"] == "rebuildable"
    assert "web" not in work.left_out()


def test_codex_create_snapshot_without_existing_head(work: Work) -> None:
    """A repository without a commit is undone like any other."""
    work.git("init", "-q")
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    work.undo()
    assert work.text("a.txt") == "1\n"


def test_codex_create_ghost_commit_uses_custom_message(work: Work) -> None:
    """A checkpoint keeps the label that it was given, also in the git view."""
    made = work.project.checkpoint("before the agent")
    assert made.label == "before the agent"
    said = work.git("--git-dir", os.fsdecode(work.project.git_dir), "log", "--all", "--format=%B")
    assert "before the agent" in said


def test_codex_create_ghost_commit_rejects_force_include_parent_path(work: Work) -> None:
    """A path that leads out of the project is refused, and what it names is not touched."""
    work.write(a_txt="1\n")
    outside = work.tree.parent / "outside.txt"
    outside.write_text("mine\n")
    ref = work.checkpoint()
    outside.write_text("still mine\n")
    for path in ("../outside.txt", str(outside), "a.txt/../../outside.txt"):
        with pytest.raises(takeback.UsageError):
            work.rollback(ref, path)
    assert outside.read_text() == "still mine\n"


def test_codex_restore_requires_git_repository(work: Work) -> None:
    """Inverted: no git is needed."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    work.undo()
    assert work.text("a.txt") == "1\n"


def test_codex_restore_from_subdirectory_restores_files_relatively(work: Work) -> None:
    """Paths count from the folder one is in; files of the root keep later edits."""
    work.repository(a_txt="1\n", sub__a_txt="1\n")
    ref = work.checkpoint()
    work.write(a_txt="2\n", sub__a_txt="2\n")
    work.project.rollback(ref, paths=["a.txt"], inside=b"sub")
    assert (work.text("a.txt"), work.text("sub/a.txt")) == ("2\n", "1\n")
    work.write(sub__a_txt="3\n")
    work.project.rollback(ref, paths=["."], inside=b"sub")
    assert (work.text("a.txt"), work.text("sub/a.txt")) == ("2\n", "1\n")


def test_codex_restore_from_subdirectory_preserves_parent_vscode(work: Work) -> None:
    """Ignored files above the folder one is in survive a restore of it."""
    work.repository(_gitignore=".vscode/\n", sub__a_txt="1\n")
    ref = work.checkpoint()
    work.put(".vscode/settings.json", "{}\n")
    work.write(sub__a_txt="2\n")
    work.project.rollback(ref, paths=["."], inside=b"sub")
    assert work.text(".vscode/settings.json") == "{}\n"
    assert work.text("sub/a.txt") == "1\n"


def test_codex_restore_preserves_ignored_files(work: Work) -> None:
    """Undo keeps what you did to an ignored file after the turn, and removes the agent's file."""
    work.repository(_gitignore="local.txt\n")
    work.write(local_txt="1\n")
    with work.turn():
        work.write(agent_txt="x\n")
    work.write(local_txt="2\n")
    work.undo()
    assert work.text("local.txt") == "2\n"
    assert work.has_none("agent.txt")


@pytest.mark.parametrize("name", ["dist/out.js", "local.env", "app.cache.tmp"])
def test_codex_restore_preserves_new_ignored_things(work: Work, name: str) -> None:
    """An ignored folder, file or match of a pattern that you made after the turn survives undo."""
    work.repository(_gitignore="dist/\nlocal.env\n*.tmp\n", a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
    work.put(name, "mine\n")
    work.undo()
    assert work.text("a.txt") == "1\n"
    assert work.text(name) == "mine\n"


def test_codex_restore_respects_removed_ignored_file(work: Work) -> None:
    """Inverted: a `.env` that the agent deletes comes back, with its bytes and its mode."""
    work.repository(_gitignore=".env\n")
    work.put(".env", "KEY=1\n", 0o600)
    with work.turn():
        work.remove(".env")
    plan = work.project.plan_undo()
    assert paths_of(plan) == {".env": "create"}
    work.undo()
    assert (work.text(".env"), work.mode(".env")) == ("KEY=1\n", 0o600)
