"""`takeback undo`, `redo` and `rollback` as a person and a program meet them."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from history import command
from oracle import differences
from shop import LABEL, Shop
from takeback.cli.screen import Screen
from terminal import Terminal

pytestmark = pytest.mark.usefixtures("signals_as_in_a_terminal")

DOES_IT = re.compile(
    "nothing was changed; `takeback apply ([k-z]{12})` applies this plan within 15 minutes\n"
)
STARTED = [sys.executable, "-I", "-m", "takeback"]


@pytest.fixture
def shop(tree: Path, home: Path) -> Iterator[Shop]:
    """A project with nothing to undo yet."""
    assert home.is_dir()
    made = Shop(tree)
    with made.project:
        yield made


@pytest.fixture
def terminal(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Terminal]]:
    """Runs `takeback` on a terminal that can only print; see `test_picking` for others."""
    made: list[Terminal] = []
    monkeypatch.setenv("TERM", "dumb")

    def start(*words: str) -> Terminal:
        os.chdir(shop.tree)
        made.append(Terminal([*STARTED, *words], columns=100))
        return made[-1]

    here = Path.cwd()
    yield start
    os.chdir(here)
    for one in made:
        one.close()


def masked(text: str) -> str:
    """Text in which ids are hidden."""
    return re.sub(r"(?<![a-z])[k-z]{8,12}(?![a-z])", "<id>", text)


def seen(screen: Terminal) -> str:
    """What a command that ends showed, without the terminal's line ends and colours."""
    text = screen.seen.decode().replace("\r\n", "\n")
    return re.sub(r"\x1b\[[0-9;]*[mK]", "", text)


# -- undo and redo -----------------------------------------------------------------------------

UNDONE = f"""\
Took back "{LABEL}" of claude-code: restored 3 files, removed 1
  write   src/cart.py         by shell
  write   src/pay.py
  delete  src/validate.py
  create  tests/test_cart.py  by shell
"""
REDONE = f"""\
Put back "{LABEL}" of claude-code: changed 3 files, removed 1
  write   src/cart.py         by shell
  write   src/pay.py
  create  src/validate.py
  delete  tests/test_cart.py  by shell
"""


def test_undo_takes_back_the_last_turn(shop: Shop) -> None:
    """One word, no question: the files are as they were, and the last line says how to go back."""
    before = shop.picture()
    shop.validation()
    said = shop("undo")
    assert (said.code, said.out) == (0, UNDONE)
    assert said.err == "`takeback redo` puts it back\n"
    assert not differences(before, shop.picture())


def test_redo_puts_it_back(shop: Shop) -> None:
    """`redo` mirrors `undo`, and says what it did in the same way."""
    shop.validation()
    after = shop.picture()
    shop("undo")
    said = shop("redo")
    assert (said.code, said.out) == (0, REDONE)
    assert said.err == "`takeback undo` takes it back again\n"
    assert not differences(after, shop.picture())


def test_undo_repeats(shop: Shop) -> None:
    """Each further `undo` goes one turn back, and each `redo` one forward."""
    pictures = [shop.picture()]
    for number in range(3):
        shop.turn(f"Turn {number}", {f"file{number}": "x\n"})
        pictures.append(shop.picture())
    for expected in reversed(pictures[:-1]):
        assert shop("undo").code == 0
        assert not differences(expected, shop.picture())
    assert shop("undo").code == 1
    for expected in pictures[1:]:
        assert shop("redo").code == 0
        assert not differences(expected, shop.picture())
    assert shop("redo").code == 1


def test_a_new_turn_ends_what_a_bare_redo_means(shop: Shop) -> None:
    """After an undo and a new turn, `redo` says why it waits, and the command that goes on."""
    shop.validation()
    shop("undo")
    shop.turn("Write docs", {"docs.md": "docs\n"})
    assert shop("redo", "--yes").code == 3
    said = shop("redo")
    assert (said.code, said.out) == (3, "")
    assert '"Write docs"' in said.err
    assert shop.json("redo", code=3)["error"] == "DecisionNeededError"
    again = shop(*shlex.split(found_command(said.err)), "--yes")
    assert again.code == 0, again.err
    assert (shop.tree / "src/validate.py").exists()
    assert (shop.tree / "docs.md").exists()


@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_nothing_to_take_back(shop: Shop, verb: str) -> None:
    """It says so in a sentence, with what one could do instead; the exit code is 1."""
    said = shop(verb)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"error: there is nothing to {verb}")
    assert shop.json(verb, code=1)["error"] == "NothingToTakeBackError"


def test_turns_that_changed_nothing_are_passed_over(shop: Shop) -> None:
    """They are counted, and the one before them is taken back."""
    shop.validation()
    shop.turn("Explain it", {})
    said = shop("undo")
    assert said.out == UNDONE
    assert "skipped 1 newer turn that changed nothing" in said.err


def test_what_you_did_since_stays(shop: Shop) -> None:
    """Files that the turn did not touch are as you left them."""
    shop.validation()
    shop.write({"notes.md": "# Notes\nmine\n", "mine.txt": "mine\n"})
    said = shop("undo").out.splitlines()
    assert said[0] == UNDONE.splitlines()[0] + "; kept mine.txt and notes.md (yours)"
    assert said[1:] == UNDONE.splitlines()[1:]
    assert (shop.tree / "notes.md").read_text() == "# Notes\nmine\n"
    assert (shop.tree / "mine.txt").read_text() == "mine\n"


def test_much_that_you_did_since_is_counted(shop: Shop) -> None:
    """The first line counts it, and only some of it is listed."""
    shop.validation()
    shop.write({f"mine{n}": "mine\n" for n in range(9)})
    said = shop("undo").out.splitlines()
    assert said[0].endswith("removed 1; kept 9 paths of yours")
    assert said[5:] == ["Kept", *(f"  mine{n}  yours" for n in range(5)), "  and 4 more of yours"]


def test_a_folder_that_is_not_empty_stays(shop: Shop) -> None:
    """A folder of the turn in which you put something is kept, and the report says why."""
    shop.turn("New parts", {"lib/part.py": "x\n"})
    shop.write({"lib/mine.py": "mine\n"})
    said = shop("undo")
    assert said.code == 0
    assert "removed 1 file; kept lib (not empty: it holds `mine.py`); kept lib/mine.py" in said.out
    assert sorted(os.listdir(shop.tree / "lib")) == ["mine.py"]


def test_only_some_paths(shop: Shop) -> None:
    """`-- PATH` takes back only these; named from a subfolder they are counted from there."""
    shop.validation()
    said = command(shop.tree / "src", "undo", "--", "pay.py", "../tests")
    assert said.code == 0
    assert "restored 2 files" in said.out
    assert (shop.tree / "src/pay.py").read_text() == "def pay():\n    return 1\n"
    assert (shop.tree / "tests/test_cart.py").exists()
    assert (shop.tree / "src/validate.py").exists()
    assert shop("undo").code == 0
    assert not (shop.tree / "src/validate.py").exists()


def test_paths_that_are_taken_back_already(shop: Shop) -> None:
    """Taking the same paths back once more does nothing, and leaves nothing to put back."""
    shop.validation()
    after = shop.picture()
    assert shop("undo", "--", "src/pay.py").code == 0
    said = shop("undo", "--", "src/pay.py")
    assert said.code == 0
    assert said.out == f'Nothing to do: that is as it was before "{LABEL}"\n'
    assert shop("redo").code == 0
    assert not differences(after, shop.picture())
    assert shop("redo").code == 1


@pytest.mark.parametrize("name", ["it's here.py", "a b$c.py", "~x", "größe.py", 'q"q', "`tick`"])
def test_names_are_quoted_as_a_shell_wants_them(shop: Shop, name: str) -> None:
    """What a hint says can be pasted into a shell, whatever the file is called."""
    shop.write({name: "old\n"})
    id = shop.turn("Odd names", {name: "x\n"})
    shop.write({name: "mine\n"})
    said = shop("undo")
    assert said.code == 3
    call = said.err.splitlines()[-1].strip().removesuffix("` shows what changed since")
    assert shlex.split(call.removeprefix("`")) == ["takeback", "diff", id[:8], "@", "--", name]


def test_a_path_without_its_mark(shop: Shop) -> None:
    """Who forgets `--` is told the command with it."""
    shop.validation()
    said = shop("undo", "src/pay.py")
    assert said.code == 2
    assert found_command(said.err) == "undo -- src/pay.py"
    said = shop("undo", LABEL, "src/pay.py", "src/cart.py")
    assert said.code == 2
    assert found_command(said.err) == f"undo '{LABEL}' -- src/pay.py src/cart.py"


@pytest.mark.parametrize(
    ("verb", "hint"),
    [
        ("undo", "`takeback undo -- src/pay.py` treats it as a path"),
        ("rollback", "`takeback rollback REF -- src/pay.py` brings it back to that state"),
        ("diff", "for a path: `takeback diff -- src/pay.py`"),
        ("show", "`takeback log src/pay.py` lists the turns that touched it"),
    ],
)
def test_a_deleted_path_without_its_mark(shop: Shop, verb: str, hint: str) -> None:
    """The agent deleted it, so that it is only known from the history."""
    (shop.tree / "src/pay.py").unlink()
    said = shop(verb, "src/pay.py")
    assert said.code == 2
    assert f"hint: {hint}\n" in said.err
    unknown = shop(verb, "src/never.py").err
    assert "src/never.py" not in unknown.partition("hint: ")[2]


def test_the_project_may_be_named(shop: Shop, tmp_path: Path) -> None:
    """`-C DIR` works from anywhere."""
    shop.validation()
    said = command(tmp_path, "-C", str(shop.tree), "undo")
    assert (said.code, said.out) == (0, UNDONE)


def test_modification_times_can_come_back(shop: Shop) -> None:
    """A restored file has the present time, with `--keep-mtime` the one it had."""
    path = shop.tree / "old.py"
    shop.write({"old.py": "old\n"})
    os.utime(path, (1_000_000_000, 1_000_000_000))
    shop.turn("Edit", {"old.py": "new\n"})
    shop("undo", "--keep-mtime")
    assert path.stat().st_mtime == 1_000_000_000
    shop("redo")
    shop("undo")
    assert path.stat().st_mtime > 1_700_000_000


def test_why_is_kept(shop: Shop) -> None:
    """`--because` is in the report, and a plan needs no reason."""
    shop.validation()
    assert shop.json("undo", "--dry-run", "--because", "x")["because"] is None
    assert shop.json("undo", "--because", "tests fail")["because"] == "tests fail"


def test_show_tells_of_a_restore(shop: Shop) -> None:
    """A restore can be shown by its id: what it took back, and why."""
    shop.validation()
    made = shop.json("undo", "--because", "it broke the cart")
    said = shop("show", str(made["id"])).out
    assert "Add payment validation" in said
    assert "it broke the cart" in said
    shown = shop.json("show", str(made["id"]))["checkpoint"]
    assert isinstance(shown, dict)
    assert (shown["restore"]["verb"], shown["restore"]["because"]) == ("undo", "it broke the cart")


def test_the_last_line_reverses_what_was_done(shop: Shop) -> None:
    """Also after undo and redo of a turn in the middle: what is named undoes just that."""
    first = later_turn(shop)
    pictures = [shop.picture()]
    said = shop("undo", first, "--yes")
    pictures.append(shop.picture())
    for _ in range(4):
        said = shop(*shlex.split(found_command(said.err)), "--yes")
        assert said.code == 0, said.err
        assert not differences(pictures[-2], shop.picture())
        pictures.append(shop.picture())


def test_the_last_line_reverses_a_redo_of_some_paths(shop: Shop) -> None:
    """A redo puts back the paths that were taken; what is named takes back only these."""
    shop.validation()
    shop("undo", "--", "src/pay.py")
    before = shop.picture()
    said = shop("redo")
    assert said.code == 0
    assert shop(*shlex.split(found_command(said.err)), "--yes").code == 0
    assert not differences(before, shop.picture())


# -- consent -----------------------------------------------------------------------------------


def later_turn(shop: Shop) -> str:
    """Two turns on different files; the id of the first."""
    first = shop.validation()
    shop.turn("Write docs", {"docs.md": "docs\n"})
    return first


def test_a_turn_in_the_middle_needs_a_yes(shop: Shop) -> None:
    """Without a terminal there is the preview, and the call that would do it; nothing is done."""
    first = later_turn(shop)
    before = shop.picture()
    said = shop("undo", first[:8])
    assert said.code == 3
    assert said.out.startswith(f'Would take back "{LABEL}" of claude-code: restore 3 files, ')
    assert said.out.splitlines()[1].startswith(f"  turn {first[:8]} of session ")
    assert f"hint: `takeback undo {first[:8]} --yes` applies" in said.err
    assert not differences(before, shop.picture())
    again = shop(*shlex.split(found_command(said.err)))
    assert again.code == 0
    assert again.out.startswith(f'Took back "{LABEL}"')
    assert (shop.tree / "docs.md").exists()


def found_command(text: str, verb: str = "") -> str:
    """The first command of ours that a text names, without its first word."""
    found = re.search(rf"`takeback ({verb}[^`]*)`", text)
    assert found is not None, text
    return found[1]


def test_a_rollback_needs_a_yes(shop: Shop) -> None:
    """A rollback shows what goes, whose it is, and that your edits are kept; then it waits."""
    first = shop.validation()
    shop.write({"notes.md": "mine\n"})
    before = shop.picture()
    said = shop("rollback", f"{first[:8]}-")
    assert said.code == 3
    assert "Would roll back to " in said.out
    assert "  write   notes.md            by you\n" in said.out
    assert f'  write   src/cart.py         by "{LABEL}" (claude-code), by shell\n' in said.out
    assert "! 1 change of your own is removed; the safety checkpoint keeps it" in said.out
    assert "takes back 1 turn" in said.out
    assert f"`takeback rollback {first[:8]}- --yes` applies" in said.err
    assert not differences(before, shop.picture())


def test_a_rollback_with_yes_and_back(shop: Shop) -> None:
    """With `--yes` everything is as it was then; `undo` brings back what came after, yours too."""
    start = shop.picture()
    first = shop.validation()
    shop.write({"notes.md": "mine\n"})
    before = shop.picture()
    said = shop("rollback", f"{first[:8]}-", "--yes")
    assert said.code == 0
    assert said.out.startswith("Rolled back to ")
    assert said.err.endswith("`takeback undo` takes this back\n")
    assert not differences(start, shop.picture())
    again = shop("undo")
    assert again.code == 0
    assert again.err.endswith("`takeback redo` puts it back\n")
    assert not differences(before, shop.picture())


def test_a_rollback_of_nothing_asks_nothing(shop: Shop) -> None:
    """Where everything is as it was, it says so, and nobody has to agree."""
    said = shop("rollback", "@")
    assert (said.code, said.err) == (0, "")
    assert said.out == 'Nothing to do: everything is as it was at "start"\n'


@pytest.mark.parametrize("answer", [b"y\r", b"YES\r"])
def test_a_yes_is_a_yes(shop: Shop, terminal: Callable[..., Terminal], answer: bytes) -> None:
    """On a terminal the question comes after the preview; a yes does what was shown."""
    first = later_turn(shop)
    screen = terminal("undo", first)
    shown = screen.expect(b"Take this back?")
    assert b"src/validate.py" in shown
    screen.type(answer)
    screen.expect(b"Took back")
    screen.type(b"\r")
    assert screen.status() == 0
    assert not (shop.tree / "src/validate.py").exists()
    # What was shown is not shown again.
    assert "src/validate.py" not in seen(screen)
    assert "`takeback redo` puts it back\nWhy?" in seen(screen)


@pytest.mark.parametrize("answer", [b"\r", b"n\r", b"yes please\r", b"\xff\r", b"\x04"])
def test_anything_else_is_a_no(
    shop: Shop, terminal: Callable[..., Terminal], answer: bytes
) -> None:
    """Enter, Ctrl-D and whatever is not a yes change nothing; the exit code is 3."""
    first = later_turn(shop)
    before = shop.picture()
    screen = terminal("undo", first)
    screen.expect(b"[y/N] ")
    screen.type(answer)
    screen.expect(b"nothing was changed")
    assert screen.status() == 3
    assert not differences(before, shop.picture())


def test_ctrl_c_at_the_question(shop: Shop, terminal: Callable[..., Terminal]) -> None:
    """Ctrl-C is a no with exit code 130."""
    first = later_turn(shop)
    before = shop.picture()
    screen = terminal("rollback", f"{first}-")
    screen.expect(b"[y/N] ")
    screen.insist(b"\x03", b"nothing was changed")
    assert screen.status() == 130
    assert not differences(before, shop.picture())


def test_what_changes_meanwhile_is_not_overwritten(
    shop: Shop, terminal: Callable[..., Terminal]
) -> None:
    """If a file is saved between the preview and the yes, nothing is done."""
    first = later_turn(shop)
    screen = terminal("undo", first, "--take-back")
    screen.expect(b"[y/N] ")
    shop.write({"src/pay.py": "saved meanwhile\n"})
    before = shop.picture()
    screen.type(b"y\r")
    assert screen.status() == 3
    assert not differences(before, shop.picture())


@pytest.mark.parametrize("answer", [b"\r", b"\x04", b"\x03"])
def test_a_clean_undo_only_asks_why(
    shop: Shop, terminal: Callable[..., Terminal], answer: bytes
) -> None:
    """The newest turn goes without a question; the reason is asked for when that is done."""
    shop.validation()
    screen = terminal("undo")
    screen.expect(b"puts it back")
    screen.expect(b"Why?")
    assert not (shop.tree / "src/validate.py").exists()
    screen.type(answer)
    assert screen.status() == 0
    assert shop.project.lessons.list() == ()


def test_the_reason_that_was_typed_is_a_lesson(
    shop: Shop, terminal: Callable[..., Terminal]
) -> None:
    """The log has it, too; with `--because` nobody is asked, and a redo needs no reason."""
    shop.validation()
    screen = terminal("undo")
    screen.expect(b"Why?")
    screen.type(b"it rejects  free orders\r")
    screen.expect(b"takeback lessons drop")
    assert screen.status() == 0
    (lesson,) = shop.project.lessons
    assert (lesson.text, lesson.source) == ("it rejects free orders", "user")
    assert f"Because  {lesson.text}\n" in shop("why", lesson.turns[0]).out
    shop("config", "lessons.ask", "false")
    for words in (("redo",), ("undo", "--because", "again"), ("redo",), ("undo",)):
        screen = terminal(*words)
        assert screen.status() == 0
        assert b"Why?" not in screen.seen


def test_nobody_is_asked_who_does_not_see_the_preview(shop: Shop) -> None:
    """With stdout in a file there is no question, although somebody sits at the terminal."""
    first = later_turn(shop)
    words = shlex.join([*STARTED, "undo", first])
    screen = Terminal(["/bin/sh", "-c", f"cd {shlex.quote(str(shop.tree))} && {words} > ../out"])
    assert screen.status() == 3
    screen.close()
    assert "Would take back" in (shop.tree.parent / "out").read_text()


# -- conflicts ---------------------------------------------------------------------------------


def conflict(shop: Shop) -> None:
    """You change a file that the last turn changed."""
    shop.validation()
    shop.write({"src/pay.py": "mine\n"})


@pytest.mark.parametrize("words", [[], ["--yes"], ["--dry-run"]], ids=str)
def test_a_conflict_is_listed_first_and_nothing_is_done(shop: Shop, words: list[str]) -> None:
    """Whoever says yes, and whether or not it is a trial: exit code 3, the path and the reason."""
    conflict(shop)
    before = shop.picture()
    said = shop("undo", *words)
    assert said.code == 3
    lines = said.out.splitlines()
    assert lines[0] == f'Would take back "{LABEL}" of claude-code, but 1 path is in conflict'
    assert lines[2:7] == [
        "  conflict  src/pay.py          you changed the same lines since",
        "            line 1",
        "            the turn left | def pay():",
        "                          |     return 2",
        "            now it is     | mine",
    ]
    assert said.err.startswith("error: nothing was taken back: 1 path is in conflict\n")
    assert not differences(before, shop.picture())


DECISIONS = {
    "keep-mine": "mine\n",
    "take-back": "def pay():\n    return 1\n",
    "skip-conflicts": "mine\n",
    "markers": (
        "<<<<<<< as it is now\nmine\n||||||| as the turn left it\ndef pay():\n    return 2\n"
        "=======\ndef pay():\n    return 1\n>>>>>>> before the turn\n"
    ),
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_conflict_is_decided_by_an_option(shop: Shop, decision: str) -> None:
    """The hint names it; the file becomes what was decided, and the rest is taken back."""
    conflict(shop)
    before = shop.picture()
    said = command(shop.tree / "src", "undo")
    assert said.code == 3
    call = found_command(said.err, f"undo --{decision}")
    again = command(shop.tree / "src", *shlex.split(call))
    assert again.code == 0, again.err
    assert (shop.tree / "src/pay.py").read_text() == DECISIONS[decision]
    assert not (shop.tree / "src/validate.py").exists()
    assert ("<<<<<<<" in again.err) == (decision == "markers")
    assert ("since; your change is removed, too" in again.out) == (decision == "take-back")
    assert shop("redo").code == 0
    assert not differences(before, shop.picture())


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_decision_can_be_looked_at_first(shop: Shop, decision: str) -> None:
    """With `--dry-run` the plan with the decision is shown, and the command that does just that."""
    conflict(shop)
    trial = shop("undo", f"--{decision}", "-n")
    assert trial.code == 0
    assert DOES_IT.fullmatch(trial.err)
    plan = shop.json("undo", f"--{decision}", "-n")
    done = shop.json("apply", str(plan["plan"]))
    assert {key: plan[key] for key in ("changes", "kept", "skipped", "conflicts")} == {
        key: done[key] for key in ("changes", "kept", "skipped", "conflicts")
    }


def test_decisions_exclude_each_other(shop: Shop) -> None:
    """Two of them are an error in the call, and nothing is done."""
    conflict(shop)
    said = shop("undo", "--markers", "--keep-mine")
    assert said.code == 2
    assert said.err.startswith("error: `--keep-mine` and `--markers` exclude each other\n")


def test_markers_do_not_decide_everything(shop: Shop) -> None:
    """What is no text is still in conflict; the message says so, and what would decide it."""
    shop.write({"logo": "\0old"})
    shop.turn("Logo", {"logo": "\0new", "src/pay.py": "def pay():\n    return 2\n"})
    shop.write({"logo": "\0mine!", "src/pay.py": "mine\n"})
    said = shop("undo", "--markers")
    assert said.code == 3
    assert "1 path is in conflict; `--markers` cannot settle that" in said.err
    assert "--take-back" in said.err
    assert "undo --markers" not in said.err
    assert [line.strip() for line in said.out.splitlines()[3:6]] == [
        "the turn left | file, 4 bytes",
        "now it is     | file, 6 bytes",
        "undo wants    | file, 4 bytes",
    ]


def test_the_hint_of_a_redo_that_conflicts(shop: Shop) -> None:
    """What the hint names puts the turn's version back over yours."""
    shop.validation()
    shop("undo")
    shop.write({"src/pay.py": "mine\n"})
    said = shop("redo", "--yes")
    assert said.code == 3
    assert "redo wants" in said.out
    assert "markers" in said.err
    trial = shop.json("redo", "--dry-run", code=3)
    (marked,) = [each["marked"] for each in listed(trial["conflicts"])]
    assert [line for line in str(marked).splitlines() if line[:1] in "<|>"] == [
        "<<<<<<< as it is now",
        "||||||| as the undo left it",
        ">>>>>>> before the undo",
    ]
    taken = shop(*shlex.split(found_command(said.err, "redo --take-back")))
    assert taken.code == 0, taken.err
    assert (shop.tree / "src/pay.py").read_text() == "def pay():\n    return 2\n"


def test_a_conflict_for_programs(shop: Shop) -> None:
    """With `--json` the error has the plan besides; a trial prints the plan alone."""
    conflict(shop)
    error = shop.json("undo", "--yes", code=3)
    assert (error["error"], error["exit_code"]) == ("ConflictError", 3)
    plan = shop.json("undo", "--dry-run", code=3)
    assert isinstance(error["plan"], dict)
    assert {**plan, "plan": ""} == {**error["plan"], "plan": ""}
    assert plan["conflicts"] == [
        {
            "path": "src/pay.py",
            "reason": {
                "code": "same-lines",
                "by": ["you"],
                "text": "you changed the same lines since",
            },
            "base": {"kind": "file", "size": 24, "mode": "0644"},
            "ours": {"kind": "file", "size": 5, "mode": "0644"},
            "theirs": {"kind": "file", "size": 24, "mode": "0644"},
            "marked": DECISIONS["markers"],
            "hunks": [
                {
                    "index": 0,
                    "line": 1,
                    "base": "def pay():\n    return 2\n",
                    "ours": "mine\n",
                    "theirs": "def pay():\n    return 1\n",
                }
            ],
        }
    ]
    assert plan["done"] is False


# -- merging -----------------------------------------------------------------------------------

LINES = [f"line {number}\n" for number in range(20)]


def with_lines(**changed: str) -> str:
    """A text of twenty lines, some of which are others: `l3="x"`."""
    lines = list(LINES)
    for name, text in changed.items():
        lines[int(name[1:])] = f"{text}\n"
    return "".join(lines)


def test_your_lines_stay(shop: Shop) -> None:
    """What you changed elsewhere in the file is merged, and the report counts what changed now."""
    shop.write({"long": with_lines()})
    shop.turn("Edit", {"long": with_lines(l3="turn")})
    shop.write({"long": with_lines(l3="turn", l15="mine")})
    minus = "\N{MINUS SIGN}"
    trial = shop("undo", "-n")
    assert f"  merge   long  merged with your changes  +1 {minus}1\n" in trial.out
    said = shop("undo")
    assert said.code == 0
    assert said.out.splitlines()[0].startswith('Took back "Edit" of claude-code: merged 1 file')
    assert f"  merge   long  merged with your changes  +1 {minus}1\n" in said.out
    assert (shop.tree / "long").read_text() == with_lines(l15="mine")
    assert shop("redo").code == 0
    assert (shop.tree / "long").read_text() == with_lines(l3="turn", l15="mine")


def test_the_lines_of_another_session_stay(shop: Shop) -> None:
    """And it says whose they are."""
    shop.write({"long": with_lines()})
    first = shop.turn("Edit", {"long": with_lines(l3="turn")})
    other = shop.project.session("codex")
    with other.turn("Polish") as turn, turn.step("Write", {"file_path": "long"}):
        shop.write({"long": with_lines(l3="turn", l15="codex")})
    said = shop("undo", first[:8], "--yes")
    assert said.code == 0
    assert 'merged with the changes of "Polish" (codex)' in said.out
    assert (shop.tree / "long").read_text() == with_lines(l15="codex")


# -- several turns -----------------------------------------------------------------------------


def test_several_turns_at_once(shop: Shop) -> None:
    """All that are named go, what came between stays, and one `redo` puts them back."""
    ids = [shop.turn(f"Turn {n}", {f"file{n}": "x\n"}) for n in range(4)]
    said = shop("undo", ids[0], ids[2], "--yes")
    assert said.code == 0
    assert said.out.startswith('Took back "Turn 2" and 1 more turn of claude-code: removed 2 files')
    assert sorted(p.name for p in shop.tree.glob("file*")) == ["file1", "file3"]
    assert shop("redo").code == 0
    assert len(list(shop.tree.glob("file*"))) == 4


def test_a_whole_session(shop: Shop) -> None:
    """`--session` without a turn takes back all that it did, and nothing of others."""
    for number in range(2):
        shop.turn(f"Turn {number}", {f"file{number}": "x\n"})
    other = shop.project.session("codex")
    with other.turn("Docs"):
        shop.write({"docs.md": "x\n"})
    said = shop("undo", "--session", shop.session.id[:8])
    assert said.code == 3
    assert '"Turn 1" and 1 more turn of claude-code' in said.out
    again = shop(*shlex.split(found_command(said.err)))
    assert again.code == 0
    assert not list(shop.tree.glob("file*"))
    assert (shop.tree / "docs.md").exists()


def test_a_session_that_changed_nothing(shop: Shop) -> None:
    """There is nothing to take back, and it says so."""
    idle = shop.project.session("codex")
    said = shop("undo", "--session", idle.id[:8])
    assert said.code == 0, said.err
    assert said.out.startswith(f"Nothing to do: the session `{idle.id[:8]}` changed nothing")


def test_a_turn_that_others_build_on(shop: Shop) -> None:
    """The later turn is named, and the command that takes both back; JSON has it, too."""
    first = shop.validation()
    later = shop.turn("Use it", {"src/validate.py": "ok = False\n"})
    said = shop("undo", first[:8])
    assert said.code == 3
    assert "Later turns build on it and are kept\n" in said.out
    assert f'  {later[:8]}  "Use it" of claude-code: src/validate.py\n' in said.out
    plan = shop.json("undo", first[:8], "-n")
    assert plan["dependents"] == [
        {
            "id": later,
            "title": "Use it",
            "agent": "claude-code",
            "paths": [{"path": "src/validate.py"}],
        }
    ]
    both = found_command(said.out)
    assert both == f"undo {first[:8]} {later[:8]}"
    assert shop(*shlex.split(both), "--yes").code == 0
    assert not (shop.tree / "src/validate.py").exists()


def test_shared_changes_can_be_taken_along(shop: Shop) -> None:
    """What may be another session's stays, unless `--shared` says otherwise."""
    other = shop.project.session("codex")
    turns = [shop.session.turn("One"), other.turn("Two")]
    shop.write({"both.txt": "x\n"})
    for turn in turns:
        turn.end()
    refused = shop("undo", turns[0].id, "-n")
    assert (refused.code, turns[1].id[:8] in refused.err) == (3, True), refused.err
    plan = shop.json("undo", turns[0].id, "--shared", "-n")
    assert [each["path"] for each in listed(plan["changes"])] == ["both.txt"]
    assert plan["shared"] == []
    assert shop("undo", turns[0].id, "--shared", "--yes").code == 0
    assert not (shop.tree / "both.txt").exists()
    assert shop("redo").code == 0
    assert (shop.tree / "both.txt").exists()


def listed(value: object) -> list[dict[str, object]]:
    """A list of objects, out of JSON."""
    assert isinstance(value, list)
    return value


# -- looking first -----------------------------------------------------------------------------


def test_a_trial_changes_nothing_and_shows_the_outcome(shop: Shop) -> None:
    """What `--dry-run` lists is what is done then, line by line."""
    shop.validation()
    before = shop.picture()
    trial = shop("undo", "-n")
    assert trial.code == 0
    told = DOES_IT.fullmatch(trial.err)
    assert told
    assert not differences(before, shop.picture())
    done = shop("apply", told[1])
    listed = [line for line in trial.out.splitlines()[1:] if not line.startswith("  turn ")]
    assert listed == done.out.splitlines()[1:]


def test_a_plan_is_applied_by_its_id(shop: Shop) -> None:
    """Once, with a reason; then the report is repeated. What moved since is named."""
    shop.validation()
    plan = shop.json("undo", "-n")
    done = shop("apply", str(plan["plan"]), "--because", "tests fail")
    assert (done.code, done.err) == (0, "`takeback redo` puts it back\n")
    again = shop("apply", str(plan["plan"]))
    assert again.code == 0
    counted = "restored 3 files, removed 1"
    assert counted in done.out.splitlines()[0]
    assert counted in again.out.splitlines()[0]
    assert again.err.startswith("this plan was applied before; nothing was changed now\n")
    assert shop("apply", "kkkkkkkkkkkk").code == 2
    stale = shop.json("redo", "-n")
    change: object = stale["changes"]
    assert isinstance(change, list)
    (shop.tree / change[0]["path"]).write_text("mine\n")
    refused = shop("apply", str(stale["plan"]))
    assert refused.code == 3
    assert f"`{change[0]['path']}` changed since this was planned" in refused.err


def test_a_rollback_names_what_changed_since_its_preview(shop: Shop) -> None:
    """As text and as JSON, with where it is."""
    shop.validation()
    for words in ([], ["--json"]):
        plan = shop.json("rollback", "@~1", "-n")
        (shop.tree / "later").write_text("mine\n")
        done = shop("apply", str(plan["plan"]), *words)
        assert done.code == 0
        if words:
            assert json.loads(done.out)["since_preview"] == [{"path": "later"}]
        else:
            assert "Changed since the preview, and rolled back, too\n  later" in done.out
        shop("undo")
        (shop.tree / "later").unlink()


def test_json_of_a_plan_and_its_report(shop: Shop) -> None:
    """Both have the same fields; the report says what became of it."""
    turn = shop.validation()
    plan = shop.json("undo", "--dry-run")
    report = shop.json("undo")
    assert list(plan) == list(report)
    same = ("verb", "base", "entry", "title", "changes", "conflicts", "newest")
    assert {key: plan[key] for key in same} == {key: report[key] for key in same}
    assert (plan["entry"], plan["agent"], plan["newest"]) == (turn, "claude-code", True)
    assert (plan["done"], plan["id"], report["done"], report["undo"]) == (
        False,
        None,
        True,
        "takeback redo",
    )
    changes = report["changes"]
    assert isinstance(changes, list)
    assert all(change.pop("along") is None for change in changes)
    assert all(change.pop("merged") is None for change in changes)
    assert not any(change.pop("outside") for change in changes)
    assert changes == [
        {"path": "src/cart.py", "verb": "write", "whose": ["claude-code"], "how": "shell"},
        {"path": "src/pay.py", "verb": "write", "whose": ["claude-code"], "how": "named"},
        {"path": "src/validate.py", "verb": "delete", "whose": ["claude-code"], "how": "named"},
        {"path": "tests/test_cart.py", "verb": "create", "whose": ["claude-code"], "how": "shell"},
    ]


def test_consent_for_programs(shop: Shop) -> None:
    """With `--json` nobody is asked: exit code 3 and the plan, or `--yes`."""
    first = later_turn(shop)
    error = shop.json("rollback", f"{first}-", code=3)
    assert error["error"] == "DecisionNeededError"
    assert "--yes" in str(error["hint"])
    assert shop.json("rollback", f"{first}-", "--yes")["done"] is True


def test_names_cannot_act(shop: Shop) -> None:
    """Escape sequences in names, prompts and agents are shown, not obeyed, before and after."""
    evil = "evil\x1b[2J\n\N{RIGHT-TO-LEFT OVERRIDE}.py"
    shop.session = shop.project.session("bad\x1b[1magent")
    shop.turn("clear \x1b[2J\rall\nof it", {evil: "x\n", "ok.py": "x\n"})
    for words in (["undo", "--dry-run"], ["undo"], ["redo"], ["rollback", "@~1"]):
        said = shop(*words)
        text = said.out + said.err
        assert not {"\x1b", "\r", "\N{RIGHT-TO-LEFT OVERRIDE}"} & set(text)
        assert r"evil\x1b[2J\x0a\u202e.py" in text
    shop.turn("again", {evil: "y\x1b[2J\n"})
    shop.write({evil: "mine\x1b[2J\n"})
    said = shop("undo")
    assert said.code == 3
    assert "\x1b" not in said.out + said.err


@pytest.mark.parametrize(
    ("surroundings", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colour_is_for_terminals(
    shop: Shop,
    terminal: Callable[..., Terminal],
    monkeypatch: pytest.MonkeyPatch,
    surroundings: dict[str, str],
    coloured: bool,
) -> None:
    """A terminal has colours unless it is told not to; a pipe never."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    shop.validation()
    assert "\x1b" not in shop("undo", "--dry-run").out
    screen = terminal("undo", "--dry-run")
    assert screen.status() == 0
    assert (b"\x1b[31mdelete" in screen.seen) is coloured


def test_many_paths_are_counted(shop: Shop) -> None:
    """A long report lists the first and counts the others; JSON has all."""
    shop.turn("Many", {}, {f"many/{n:03}": "x\n" for n in range(100)})
    plan = shop.json("undo", "--dry-run")
    assert isinstance(plan["changes"], list)
    assert len(plan["changes"]) == 101
    said = shop("undo")
    assert said.out.splitlines()[0].endswith("removed 100 files and 1 folder")
    assert said.out.splitlines()[-1] == "  and 81 more"


# -- sessions, branches, commits ---------------------------------------------------------------


def test_a_session_can_be_named(shop: Shop) -> None:
    """`--session` takes back the newest turn of that session, which then needs a yes."""
    shop.validation()
    other = shop.project.session("codex")
    with other.turn("Docs"):
        shop.write({"docs.md": "x\n"})
    said = shop("undo", "--session", shop.session.id[:8], "--yes")
    assert said.code == 0
    assert said.out.startswith(f'Took back "{LABEL}" of claude-code')
    assert (shop.tree / "docs.md").exists()


def test_a_rollback_counts_the_turns_of_a_session(shop: Shop) -> None:
    """With `--session`, `@~1` is before the newest turn of that session."""
    shop.validation()
    other = shop.project.session("codex")
    for name in ("docs.md", "more.md"):
        with other.turn(f"Write {name}"):
            shop.write({name: "x\n"})
    said = shop("rollback", "@~1", "--session", shop.session.id[:8], "--yes")
    assert said.code == 0
    assert not (shop.tree / "docs.md").exists()
    assert not (shop.tree / "src/validate.py").exists()


git = shutil.which("git")


def in_git(tree: Path, *words: str) -> str:
    """Run git as the user would."""
    assert git is not None
    who = [
        "-c",
        "user.name=ada",
        "-c",
        "user.email=ada@example.org",
        "-c",
        "init.defaultBranch=main",
    ]
    done = subprocess.run([git, *who, *words], cwd=tree, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.skipif(git is None, reason="needs git")
def test_another_branch_is_a_doubt(shop: Shop) -> None:
    """If another branch is checked out than when the turn ended, it asks; `--yes` goes on."""
    in_git(shop.tree, "init", "-q")
    in_git(shop.tree, "commit", "-qm", "x", "--allow-empty")
    shop.validation()
    in_git(shop.tree, "checkout", "-qb", "other")
    said = shop("undo")
    assert said.code == 3
    assert "other" in said.out
    assert "`takeback undo --yes` applies" in said.err
    assert (shop.tree / "src/validate.py").exists()
    assert shop("undo", "--yes").code == 0
    assert not (shop.tree / "src/validate.py").exists()


@pytest.mark.skipif(git is None, reason="needs git")
def test_commits_that_stay_are_named(shop: Shop) -> None:
    """The report counts the commits of the turn and prints the git command that takes them back."""
    in_git(shop.tree, "init", "-q")
    in_git(shop.tree, "commit", "-qm", "x", "--allow-empty")
    with shop.session.turn("Commit it") as turn, turn.step("Bash", {"command": "git commit"}):
        shop.write({"new.py": "x\n"})
        in_git(shop.tree, "add", "new.py")
        in_git(shop.tree, "commit", "-qm", "new")
    head = in_git(shop.tree, "rev-parse", "HEAD")
    said = shop("undo")
    assert said.code == 0
    assert "1 commit stays" in said.out.splitlines()[0]
    assert "`git " in said.err
    assert in_git(shop.tree, "rev-parse", "HEAD") == head


# -- listeners and recovery --------------------------------------------------------------------


def test_listeners_of_the_settings_are_told(shop: Shop, home: Path, tmp_path: Path) -> None:
    """A command named in the user's settings hears of undo and redo; one that fails is noted."""
    listener = tmp_path / "listener"
    listener.write_text(f'#!/bin/sh\ncat >> "{tmp_path}/heard"\n')
    listener.chmod(0o700)
    (home / "config.toml").write_text(f'[restore]\nlisteners = [["{listener}"], ["false"]]\n')
    shop.validation()
    said = shop("undo")
    assert said.code == 0
    assert "the listener `false` failed: exit code 1" in said.err
    assert shop("redo").code == 0
    heard = [json.loads(line) for line in (tmp_path / "heard").read_text().splitlines()]
    assert [event["verb"] for event in heard] == ["undo", "redo"]
    assert {"path": "src/pay.py"} in heard[0]["paths"]


DYING = """
import os, signal
from takeback.ledger.journal import Journals
write = Journals.write
def die(*given):
    write(*given)
    os.kill(os.getpid(), signal.SIGKILL)
Journals.write = die
from takeback.cli.app import main
main(["undo"])
"""


@pytest.mark.parametrize(
    "words", [["log"], ["log", "--json"], ["checkpoint"], ["undo"], []], ids=str
)
def test_whatever_comes_next_recovers_and_says_so(shop: Shop, words: list[str]) -> None:
    """After a kill in the middle, the next command says what it mended, once, on stderr."""
    shop.validation()
    before = shop.picture()
    died = subprocess.run([sys.executable, "-I", "-c", DYING], cwd=shop.tree, check=False)
    assert died.returncode == -signal.SIGKILL
    said = shop(*words)
    assert said.code == 0
    first = said.err.splitlines()[0]
    assert first.startswith(f'note: the undo of "{LABEL}" was interrupted')
    if words != ["undo"]:
        assert not differences(before, shop.picture())
    if "--json" in words:
        json.loads(said.out)
    assert "note:" not in shop("log").err


def test_what_recovery_did_is_told_once_and_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Each sentence is one note on stderr, before whatever the command prints next."""
    told: list[str] = ["one"]
    screen = Screen()
    screen.listen(lambda: told)
    screen.say("result")
    first = capsys.readouterr()
    assert (first.out, first.err) == ("result\n", "note: one\n")
    told.append("two\x1b[2J")
    screen.say("more")
    assert capsys.readouterr().err == "note: two\\x1b[2J\n"
    told.append("three")
    screen.finish()
    screen.finish()
    assert capsys.readouterr().err == "note: three\n"


@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_ctrl_c_ends_before_or_after(shop: Shop, verb: str) -> None:
    """Whenever Ctrl-C comes, the tree is as before or as after, and what is said of it is so."""
    shop.turn("Many", {}, {f"many/{n:03}": f"{n}\n" for n in range(300)})
    after = shop.picture()
    shop("undo")
    before = shop.picture()
    start, goal = (before, after) if verb == "redo" else (after, before)
    if verb == "undo":
        shop("redo")
    endings = set()
    for moment in range(1, 15):
        words = [*STARTED, verb]
        process = subprocess.Popen(
            words, cwd=shop.tree, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            process.wait(moment * 0.03)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        said = process.communicate()[1].decode()
        now = shop.picture()
        endings.add(process.returncode)
        # Python itself ends with 1 if it is interrupted before it gets to us.
        assert process.returncode in {0, 1, 130, -signal.SIGINT}, said
        is_done = not differences(goal, now)
        assert is_done or not differences(start, now)
        if process.returncode == 0 or "after it was done" in said:
            assert is_done
        if "as it was before" in said:
            assert not is_done
        if is_done:
            assert shop("redo" if verb == "undo" else "undo").code == 0
    assert endings & {1, 130, -signal.SIGINT}
