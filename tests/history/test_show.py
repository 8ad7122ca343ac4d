"""`takeback show`: a turn in full, a checkpoint, a file as it was."""

import json
import os
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from history import Story, command
from takeback.cli import app

TURN = """\
Turn FORMFORMFORM
  Add a login form
  and keep it simple
Session  CLAUDECLAUDE  claude  <account>
When     <when>, took <took>
Status   ○ done
Before   STARTSTARTST
After    <id>
Steps
  ○ Task (agent)  look into it  <took>
    ○ Write (edit)  login.py  <took>
        create login.py
  ○ Bash (shell)  mv a.py b.py; mkfifo pipe  <took>
      rename a.py → b.py
Changes  2 files  +50 -0
  rename  a.py → b.py  +0 -0   by shell
  create  login.py     +50 -0  named
Not covered: appeared in this turn and cannot be taken back
  pipe  special: a FIFO, socket or device has no content
"""
SHARED = """\
Turn ONEONEONEONE
  One of two
Session  CLAUDECLAUDE  claude  <account>
When     <when>, took <took>
Status   ○ done
Before   <id>
After    <id>
Shared with "The other" (codex)
  create  both.txt  SESSIONS
"""
CHECKPOINT = """\
Checkpoint <id>
When     <when>
Entries  4
Of       session CLAUDECLAUDE  turn ONEONEONEONE
Changes  1 path
  create  both.txt  shared by SESSIONS
Not covered
  pipe  special: a FIFO, socket or device has no content
"""


@pytest.fixture
def story(tree: Path, home: Path) -> Iterator[Story]:
    """A project with a history."""
    assert home.is_dir()
    told = Story(tree)
    with told.project:
        yield told


def masked(story: Story, text: str) -> str:
    """A screen with names instead of ids; the order of ids is chance."""
    both = " ".join(sorted((story.ids["claude"], story.ids["codex"])))
    one, other = both.split()
    text = text.replace(f"{one[:8]} {other[:8]}", "SESSIONS")
    return story.masked(text).replace("\N{MINUS SIGN}", "-")


@pytest.mark.parametrize(
    ("ref", "expected"),
    [("{form}", TURN), ("login form", TURN), ("one of two", SHARED), ("{newest}", CHECKPOINT)],
)
def test_the_pages(story: Story, ref: str, expected: str) -> None:
    """A turn is told with its steps, changes and authors; a checkpoint with what it holds."""
    newest = next(story.project.checkpoints()).id
    said = command(story.tree, "show", ref.format(**story.ids, newest=newest))
    assert (said.code, masked(story, said.out)) == (0, expected)


def test_a_page_names_what_to_do_next(story: Story) -> None:
    """The commands that the last lines name work as they stand."""
    said = command(story.tree, "show", "login form")
    diff, show, undo = (line.split("`")[1] for line in said.err.splitlines())
    words = diff.split()
    assert words[:3] == ["takeback", "show", "-p"]
    assert "+x" in command(story.tree, *words[1:]).out
    before = show.replace("PATH", "a.py").split()
    assert command(story.tree, *before[1:]).out == "a\nb\n"
    assert command(story.tree, *undo.split()[1:], "--dry-run").out.startswith("Would take back ")


def test_a_step_means_its_turn(story: Story) -> None:
    """The page of a step is the page of the turn that it is in."""
    step = story.project.turn(story.ids["form"]).steps[1]
    by_step = command(story.tree, "show", step.id).out
    assert masked(story, by_step) == TURN


def test_steps_that_go_on_and_steps_that_failed_say_so(story: Story) -> None:
    """What runs in the background, what failed and what still runs is told in words."""
    turn = story.codex.turn("Start the server")
    turn.step("Bash", {"command": "serve"}).detach()
    turn.step("Bash", {"command": "false"}).end("failed")
    turn.step("Read", {"file_path": "b.py"})
    lines = command(story.tree, "show", turn.id).out.splitlines()
    steps = lines[lines.index("Steps") + 1 :]
    assert steps[0] == "  ▶ Bash (shell)  serve  in the background  running"
    assert steps[1].startswith("  ✗ Bash (shell)  false  ")
    assert steps[1].endswith(" s  failed")
    assert steps[2] == "  ▶ Read (read)  b.py  running"
    assert "After    still running" in lines


def test_commits_made_in_the_turn_are_told(tree: Path, home: Path) -> None:
    """Branch and commits before and after are there, and that they differ is said."""
    assert home.is_dir()
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "commit", "-qm", "x", "--allow-empty"], check=True)
    story = Story(tree)
    with story.project, story.codex.turn("Commit it"):
        subprocess.run([*git, "commit", "-qm", "y", "--allow-empty"], check=True)
    listed = subprocess.run([*git, "log", "--format=%H"], check=True, capture_output=True)
    new, old = listed.stdout.decode().split()
    page = command(tree, "show", "commit it").out
    assert f"Git      main  {old[:10]} → {new[:10]}  (new commits)\n" in page
    assert f"Git      main  {old[:10]}\n" in command(tree, "show", "login form").out
    turn = json.loads(command(tree, "show", "commit it", "--json").out)["turn"]
    assert (turn["git_before"]["head"], turn["git_after"]["head"]) == (old, new)
    assert turn["git_after"]["branch"] == "main"


def test_the_json_of_a_turn(story: Story) -> None:
    """A program gets steps with parents, kinds, names and their own changes."""
    answer = json.loads(command(story.tree, "show", story.ids["form"], "--json").out)
    assert (answer["checkpoint"], answer["file"]) == (None, None)
    turn = answer["turn"]
    task, write, bash = turn["steps"]
    assert (task["parent"], write["parent"], bash["parent"]) == (None, task["id"], None)
    assert [step["kind"] for step in turn["steps"]] == ["agent", "edit", "shell"]
    assert write["names"] == [{"path": "login.py"}]
    assert [(change["path"], change["verb"]) for change in bash["changes"]] == [("b.py", "rename")]
    assert turn["account"].count("@") == 1


def test_the_json_of_a_checkpoint(story: Story) -> None:
    """A checkpoint says what it was taken for, and of each change who made it."""
    (story.tree / "mine.txt").write_text("by hand\n")
    made = story.project.checkpoint("by hand")
    answer = json.loads(command(story.tree, "show", made.id, "--json").out)
    assert (answer["turn"], answer["file"]) == (None, None)
    checkpoint = answer["checkpoint"]
    assert (checkpoint["id"], checkpoint["label"], checkpoint["turn"]) == (made.id, "by hand", None)
    (change,) = checkpoint["changes"]
    assert (change["path"], change["verb"], change["author"]["who"]) == (
        "mine.txt",
        "create",
        "you",
    )
    assert checkpoint["left_out"] == [{"path": "pipe", "reason": "special"}]


BYTES = bytes(range(256)) * 300


def test_a_file_as_it_was(story: Story) -> None:
    """The bytes come out as they went in, and nothing else does, on no stream."""
    (story.tree / "sub").mkdir()
    (story.tree / "sub" / "data").write_bytes(BYTES)
    os.symlink("sub/data", story.tree / "link")
    with open(os.fsencode(story.tree) + b"/\xff odd", "wb") as file:
        file.write(b"odd\n")
    story.project.checkpoint()
    (story.tree / "sub" / "data").unlink()
    made = next(story.project.checkpoints()).id
    for where, words in (
        (story.tree, (made, "sub/data")),
        (story.tree / "sub", (made, "data")),
        (story.tree / "sub", (made, "sub/data")),
    ):
        said = command(where, "show", *words)
        assert (said.code, said.raw, said.err) == (0, BYTES, "")
    assert command(story.tree, "show", "@", "link").raw == b"sub/data"
    assert command(story.tree, "show", "@", os.fsdecode(b"\xff odd")).raw == b"odd\n"
    assert command(story.tree, "show", "login form", "login.py").out == "x\n" * 50
    assert command(story.tree, "show", story.ids["form"] + "-", "a.py").out == "a\nb\n"
    file_json = json.loads(command(story.tree, "show", made, "sub/data", "--json").out)["file"]
    assert (file_json["path"], b64decode(file_json["content_b64"])) == ("sub/data", BYTES)


def test_a_file_on_a_terminal_does_nothing(story: Story) -> None:
    """Bytes that would act on a terminal are shown as escapes there; lines stay lines."""
    (story.tree / "evil.txt").write_bytes(b"one\n\x1b[2J two\\\xff\nthree")
    story.project.checkpoint()
    ours, theirs = os.openpty()
    done = subprocess.run(
        [sys.executable, "-I", "-m", "takeback", "show", "@", "evil.txt"],
        cwd=story.tree,
        stdout=theirs,
        check=True,
    )
    os.close(theirs)
    with open(ours, "rb", buffering=0) as screen:
        assert screen.read(1000) == b"one\r\n\\x1b[2J two\\\\xff\r\nthree\r\n"
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nope nope"], "no turn, checkpoint or prompt matches"),
        (["it"], "use one of these"),
        (["{claude}"], "is a session"),
        (["@", "nowhere"], "`nowhere` is not in `@`"),
        (["@", "pipe"], "was left out"),
        (["@", "../../etc/passwd"], "outside the project"),
        ([], "needs REF"),
    ],
)
def test_what_cannot_be_shown_is_said(story: Story, words: list[str], message: str) -> None:
    """A wrong reference or path gives exit code 2 and prints nothing as a result."""
    said = command(story.tree, "show", *(word.format(**story.ids) for word in words))
    assert (said.code, said.raw) == (2, b"")
    assert message in said.err


def test_nothing_shown_acts_on_a_terminal(
    story: Story, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts, tools, commands and names from outside are shown, never obeyed."""
    evil = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"
    monkeypatch.setenv("COLUMNS", "60")
    (story.tree / ("before" + evil)).write_text("b\n")
    story.project.checkpoint(evil)
    with story.project.session(agent=evil, title=evil) as session, session.turn(evil) as turn:
        with turn.step(evil, {"command": evil}):
            (story.tree / ("before" + evil)).rename(story.tree / ("after" + evil))
        os.mkfifo(story.tree / ("pipe" + evil))
    for words in (
        "",
        "log",
        "sessions",
        f"show {turn.id}",
        "show @",
        "show @-",
        f"show {session.id}",
    ):
        app.main(["-C", str(story.tree), *words.split()])
    for given in (["show", evil], ["show", "@", evil], ["log", "--session", evil]):
        app.main(["-C", str(story.tree), *given])
    said = capsys.readouterr()
    lines = (said.out + said.err).split("\n")
    assert len(lines) > 50
    assert [line for line in lines if not line.isprintable()] == []


def test_many_steps_below_each_other_stay_on_the_screen(story: Story) -> None:
    """However deep sub-agents go, the page stays as wide as the screen."""
    turn = story.codex.turn("Dig")
    above = turn.step("Task", {"description": "deep " * 30})
    for _ in range(20):
        above = above.step("Task", {"description": "deep " * 30})
    turn.end()
    for room in ("40", "80"):
        page = command(story.tree, "show", turn.id, COLUMNS=room).out
        steps = page.partition("Steps\n")[2].splitlines()
        assert len(steps) == 21
        assert max(map(len, steps)) <= int(room)
