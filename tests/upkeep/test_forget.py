"""Forget: what it means for paths, contents, texts and turns, and what everything else keeps."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import oracle
import takeback
from cases import Work
from history import command
from spoken import of_remark
from takeback.model.forgotten import as_texts
from takeback.upkeep.forget import Forgetter
from terminal import Terminal

SECRET = "KEY=sekrit-4711\n"


def read(work: Work, ref: str, path: str) -> str:
    """What a file held in a state."""
    return b"".join(work.project.read(ref, os.fsencode(path))).decode()


def require_sound(work: Work) -> None:
    """The store is whole, live tables are rebuilt ones, and git has nothing to complain of."""
    found = work.project.verify()
    assert [damage.what for damage in found.damage] == []
    assert list(found.repaired) == []
    git = os.fsdecode(work.project.git_dir)
    done = subprocess.run(
        ["git", "--git-dir", git, "fsck", "--strict", "--no-dangling"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def extracted(work: Work, ref: str, name: str) -> oracle.Picture:
    """A state, written into a folder of its own."""
    folder = work.tree.parent / name
    work.project.extract(ref, folder)
    return oracle.picture(folder)


def story(work: Work) -> dict[str, str]:
    """A secret in two versions, in a turn and before it, with others around."""
    work.put(".env", SECRET)
    work.put("src/pay.py", "one\n")
    ids = {"first": work.project.checkpoint("first").id}
    with work.turn("change the key") as turn:
        work.put(".env", "KEY=second-one\n")
        work.put("src/pay.py", "two\n")
    ids["turn"] = turn.id
    with work.turn("only the code") as turn:
        work.put("src/pay.py", "two\nthree\n")
    ids["code"] = turn.id
    return ids


# -- paths ---------------------------------------------------------------------------------------


def test_a_path_goes_from_every_checkpoint_and_the_rest_stays(work: Work) -> None:
    """What a file held can be read in no state any more; all other bytes are as they were."""
    ids = story(work)
    before = {ref: extracted(work, ref, f"before-{ref}") for ref in ids.values()}
    done = work.project.forget([".env"])
    assert done.touched is not None
    assert done.touched.paths == [b".env"]
    assert (done.touched.versions, done.touched.checkpoints, done.touched.turns) == (2, 3, 1)
    for ref in ids.values():
        with pytest.raises(takeback.UnknownReferenceError, match="forgotten"):
            read(work, ref, ".env")
        rest = {path: told for path, told in before[ref].items() if path != b".env"}
        assert extracted(work, ref, f"after-{ref}") == rest
    require_sound(work)
    assert work.text(".env") == "KEY=second-one\n"


def test_the_log_still_knows_which_turn_touched_a_path(work: Work) -> None:
    """Without --names the name stays: what a turn changed is still told."""
    ids = story(work)
    work.project.forget([".env"])
    changed = {change.path for change in work.project.turn(ids["turn"]).changes}
    assert changed == {".env", "src/pay.py"}


def test_a_folder_is_forgotten_with_all_below(work: Work) -> None:
    """Nothing below the folder can be read, and that it was a folder is all that is known."""
    work.put("keys/deep/a", "a secret\n")
    work.put("keys/b", "another\n")
    work.put("other", "stays\n")
    state = work.checkpoint()
    work.project.forget(["keys"])
    assert {path for path in extracted(work, state, "out") if path not in (b"", b".")} == {b"other"}
    require_sound(work)


def test_a_restore_never_removes_what_was_forgotten(work: Work) -> None:
    """Unknown is not absent: going back to a state leaves the file in the tree alone."""
    ids = story(work)
    work.project.forget([".env"])
    work.project.rollback(ids["first"], yes=True)
    assert work.text(".env") == "KEY=second-one\n"
    assert work.text("src/pay.py") == "one\n"


@pytest.mark.parametrize("folder", ["", "in/"])
def test_nor_if_its_name_was_forgotten_too(work: Work, folder: str) -> None:
    """A folder in which names were forgotten does not tell what was not in it."""
    work.put(f"{folder}secret", SECRET)
    work.put(f"{folder}plain", "one\n")
    state = work.checkpoint()
    work.put(f"{folder}plain", "two\n")
    work.put("later", "made since\n")
    work.checkpoint()
    work.project.forget([f"{folder}secret"], names=True)
    work.project.rollback(state, yes=True)
    assert work.text(f"{folder}secret") == SECRET
    assert work.text(f"{folder}plain") == "one\n"
    assert work.has("later") is (folder == "")
    require_sound(work)


def test_undo_of_a_turn_says_that_a_path_is_forgotten(work: Work) -> None:
    """The rest of the turn is taken back; the forgotten file stays, and that is said."""
    work.put("a", "one\n")
    work.put("s", SECRET)
    work.checkpoint()
    with work.turn("both") as turn:
        work.put("a", "two\n")
        work.put("s", "changed by the turn\n")
    work.project.forget(["s"])
    done = work.project.undo(turn)
    assert work.text("a") == "one\n"
    assert work.text("s") == "changed by the turn\n"
    assert {remark.raw_path: of_remark(remark) for remark in done.plan.skipped} == {
        b"s": "not covered (forgotten)"
    }
    require_sound(work)


def test_the_next_checkpoint_captures_again_what_is_still_there(work: Work) -> None:
    """The work tree is not touched, so what is in it is protected like everything else."""
    ids = story(work)
    work.project.forget([".env"])
    made = work.project.checkpoint("again")
    assert made.new
    assert read(work, made.id, ".env") == "KEY=second-one\n"
    with pytest.raises(takeback.UnknownReferenceError):
        read(work, ids["first"], ".env")
    work.project.forget([".env"])
    require_sound(work)


def test_a_content_that_has_another_name_stays_and_that_is_said(work: Work) -> None:
    """A copy under a name that was not forgotten is not taken away silently."""
    work.put("s", SECRET)
    work.put("copy", SECRET)
    state = work.checkpoint()
    done = work.project.forget(["s"])
    assert done.touched is not None
    assert done.touched.elsewhere == [(b"s", b"copy")]
    assert done.touched.versions == 0
    assert read(work, state, "copy") == SECRET
    require_sound(work)


def test_names_go_from_manifests_log_and_words(work: Work) -> None:
    """With names, nothing tells any more that there was such a file."""
    work.put("names-of-patients", "Ada\n")
    with work.turn("sort names-of-patients, please") as turn:
        work.put("names-of-patients", "Ada\nBob\n")
        work.put("other", "x\n")
    work.project.checkpoint("with names-of-patients.")
    work.project.forget(["names-of-patients"], names=True)
    assert {change.raw_path for change in work.project.turn(turn.id).changes} == {b"other"}
    assert work.project.turn(turn.id).label == "sort (forgotten), please"
    work.close()
    assert b"names-of-patients" not in everything(work.home)


def test_a_file_outside_is_forgotten_by_its_whole_path(work: Work) -> None:
    """What an edit tool named outside the project goes like what is inside."""
    place = work.tree.parent / "outside.txt"
    place.write_text(SECRET)
    with work.turn("edit it") as turn, turn.step("Write", {"file_path": str(place)}):
        place.write_text("changed\n")
    work.project.forget([str(place)])
    rows = work.project.workspace.ledger._reader.rows("SELECT before, after, reason FROM outside")
    assert rows == [(None, None, "forgotten")]
    assert place.read_text() == "changed\n"
    require_sound(work)


# -- contents and texts --------------------------------------------------------------------------


def test_a_content_goes_under_every_name(work: Work) -> None:
    """Exactly these bytes are gone, whatever they were called, and where somebody said them."""
    work.put("a", SECRET)
    work.put("deep/er/b", SECRET)
    work.put("c", "more of " + SECRET)
    with work.turn(f"use {SECRET.strip()} now") as turn:
        pass
    state = work.project.checkpoint("all").id
    done = work.project.forget(content=SECRET.encode())
    assert done.touched is not None
    assert done.touched.paths == [b"a", b"deep/er/b"]
    assert read(work, state, "c") == "more of " + SECRET
    assert work.project.turn(turn.id).label == "use (forgotten) now"
    require_sound(work)


def test_a_text_goes_from_files_names_and_words(work: Work) -> None:
    """Files that hold it are forgotten whole; prompts and names lose it."""
    work.put("a", "before sekrit-4711 after\n")
    work.put("sekrit-4711.txt", "nothing\n")
    work.put("rest", "stays\n")
    state = work.project.checkpoint("about sekrit-4711").id
    work.project.forget(text="sekrit-4711")
    assert read(work, state, "rest") == "stays\n"
    work.close()
    found = everything(work.home)
    assert all(way not in found for way in as_texts(b"sekrit-4711"))
    require_sound(work)


def test_the_same_can_be_forgotten_twice(work: Work) -> None:
    """What came again since is forgotten again, and the log still verifies."""
    for number in range(2):
        work.put("s", SECRET)
        work.project.checkpoint(f"sekrit-4711 {number}")
        work.project.forget(text="sekrit-4711")
    assert work.project.workspace.ledger._reader.rows(
        "SELECT count(*) FROM care WHERE kind = 'forget'"
    ) == [(2,)]
    require_sound(work)


# -- turns ---------------------------------------------------------------------------------------


def test_a_turn_loses_its_words_and_its_own_states(work: Work) -> None:
    """What was asked for is gone, and what was only there in between; before and after stay."""
    work.put("a", "one\n")
    work.checkpoint()
    with work.turn("a very private question") as turn:
        with turn.step("Bash", {"command": "private command"}):
            work.put("a", "only in between\n")
        inner = work.checkpoint()
        with turn.step("Bash", {"command": "another command"}):
            work.put("a", "after it\n")
    after = work.checkpoint()
    done = work.project.forget(turn=turn.id)
    assert done.touched is not None
    assert done.touched.gone >= 1
    told = work.project.turn(turn.id)
    assert told.label == "(forgotten)"
    assert {step.summary for step in told.steps} == {"(forgotten)"}
    assert read(work, after, "a") == "after it\n"
    with pytest.raises(takeback.UnknownReferenceError, match="forgotten"):
        read(work, inner, "a")
    assert work.text("a") == "after it\n"
    work.close()
    found = everything(work.home)
    for text in (b"private question", b"private command", b"only in between"):
        assert text not in found
    require_sound(work)


def test_a_forgotten_turn_cannot_be_taken_back_and_says_so(work: Work) -> None:
    """It is no entry of the undo stack any more; named, the answer tells why."""
    ids = story(work)
    work.project.forget(turn=ids["code"])
    with pytest.raises(takeback.NothingToTakeBackError, match="was forgotten"):
        work.project.undo(ids["code"])
    assert work.project.plan_undo().turn == ids["turn"]


def test_a_turn_that_runs_is_not_forgotten(work: Work) -> None:
    """First it has to be over."""
    with (
        work.turn("go on and on") as turn,
        pytest.raises(takeback.UsageError, match="is still running"),
    ):
        work.project.forget(turn=turn.id)


# -- the log -------------------------------------------------------------------------------------


def test_a_tombstone_tells_that_when_and_by_whom_and_not_what(work: Work) -> None:
    """The event says the kind and an id; nothing of what it was."""
    story(work)
    done = work.project.forget([".env"])
    (event,) = work.project.workspace.ledger.events_of("Forgotten")
    assert event.payload is not None
    assert (event.payload["forgotten"], event.payload["what"]) == (done.id, "path")
    assert event.author
    assert ".env" not in json.dumps(event.payload)


def test_tables_are_what_the_events_say(work: Work) -> None:
    """A rebuild makes the same tables again."""
    story(work)
    work.project.forget([".env"])
    before = list(work.project.workspace.ledger._reader.rows("SELECT * FROM checkpoints"))
    work.project.rebuild()
    assert list(work.project.workspace.ledger._reader.rows("SELECT * FROM checkpoints")) == before


# -- the command ---------------------------------------------------------------------------------


def test_it_asks_and_without_a_terminal_needs_yes(work: Work) -> None:
    """Nothing goes without consent; the preview says what would."""
    ids = story(work)
    work.close()
    said = command(work.tree, "forget", ".env")
    assert said.code == 3
    assert "Would forget 1 path, 2 versions of" in said.out
    assert "--yes" in said.err
    assert read(work, ids["first"], ".env") == SECRET
    work.close()
    said = command(work.tree, "forget", ".env", "--dry-run")
    assert (said.code, "nothing was forgotten yet" in said.err) == (0, True)
    said = command(work.tree, "forget", ".env", "--yes")
    assert said.code == 0
    assert re.search(r"Searched .*found nothing left of it", said.out)
    assert ".env is still in the work tree" in said.err
    assert "out of reach: backups" in said.err


def test_its_json_says_the_same(work: Work) -> None:
    """One object, also when nobody agreed."""
    story(work)
    work.close()
    refused = command(work.tree, "forget", ".env", "--json")
    assert refused.code == 3
    assert json.loads(refused.out)["would"]["paths"] == [{"path": ".env"}]
    done = json.loads(command(work.tree, "forget", ".env", "--json", "--yes").out)
    assert done["done"] is True
    assert (done["versions"], done["checkpoints"], done["turns"]) == (2, 3, 1)


def test_a_text_comes_from_stdin(work: Work) -> None:
    """The text is never an argument, which everybody on the machine can see."""
    work.put("s", SECRET)
    work.checkpoint()
    work.close()
    done = subprocess.run(
        [sys.executable, "-m", "takeback", "forget", "--text", "--yes", "--json"],
        cwd=work.tree, input=b"sekrit-4711\n", capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["what"] == "text"


def on_terminal(work: Work, *words: str) -> Terminal:
    """The command, with somebody in front of it."""
    work.close()
    return Terminal([sys.executable, "-m", "takeback", "-C", str(work.tree), "forget", *words])


def test_on_a_terminal_somebody_decides(work: Work) -> None:
    """After the preview, anything but yes leaves everything as it was."""
    ids = story(work)
    for answer, code in ((b"n\n", 3), (b"yes\n", 0)):
        screen = on_terminal(work, ".env")
        assert b"Would forget 1 path" in screen.expect(b"[y/N]")
        screen.type(answer)
        assert screen.status() == code
        screen.close()
        if code:
            assert read(work, ids["first"], ".env") == SECRET
    with pytest.raises(takeback.UnknownReferenceError, match="forgotten"):
        read(work, ids["first"], ".env")


def test_a_text_is_typed_unseen(work: Work) -> None:
    """On a terminal the text is asked for, and not shown."""
    work.put("s", SECRET)
    work.checkpoint()
    screen = on_terminal(work, "--text", "--yes")
    screen.expect(b"Text to forget")
    screen.type(b"sekrit-4711\n")
    assert screen.status() == 0
    assert b"sekrit-4711" not in screen.seen
    screen.close()


def test_a_path_is_known_by_the_history_alone(work: Work) -> None:
    """What is not in the tree any more is found all the same, from any folder."""
    work.put("sub/keys/a", SECRET)
    work.put("sub/other", "x\n")
    state = work.checkpoint()
    work.remove("sub/keys")
    for known in (False, True):
        if known:
            work.checkpoint()
        assert Forgetter(work.project.workspace).is_path(b"sub/keys")
        assert Forgetter(work.project.workspace).is_path(b"keys/a", b"sub")
        assert not Forgetter(work.project.workspace).is_path(b"sub/key")
    work.close()
    said = command(work.tree / "sub", "forget", "keys", "--yes")
    assert said.code == 0, said.err
    with pytest.raises(takeback.UnknownReferenceError, match="forgotten"):
        read(work, state, "sub/keys/a")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "needs one of PATH, TURN"),
        (["never-was-there"], 2, "no turn, checkpoint or prompt matches"),
        (["--", "never-was-there"], 2, "nothing of it is in the history"),
        (["--content", "missing"], 2, "cannot be read"),
        (["--names", "--text"], 2, "is for paths"),
        (["."], 2, "the whole project"),
    ],
)
def test_errors_tell_what_to_do(work: Work, words: list[str], code: int, said: str) -> None:
    """What makes no sense is refused with a hint, and nothing is changed."""
    story(work)
    events = work.project.workspace.ledger.last_event()
    work.close()
    answer = command(work.tree, "forget", *words, "--yes")
    assert (answer.code, said in answer.err) == (code, True), answer.err
    assert "hint:" in answer.err
    assert work.project.workspace.ledger.last_event() == events


def everything(home: Path) -> bytes:
    """All bytes in a folder, with what git makes of the packs in it."""
    files = [path for path in sorted(home.rglob("*")) if path.is_file()]
    found = [os.fsencode(path.name) + b"\0" + path.read_bytes() for path in files]
    for git in home.glob("projects/*/git"):
        objects = subprocess.run(
            ["git", "--git-dir", git, "cat-file", "--batch-all-objects", "--batch"],
            capture_output=True, check=True,
        )  # fmt: skip
        found.append(objects.stdout)
    return b"".join(found)
