"""`takeback run -- aider`: one turn per prompt, by the history that aider keeps."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import takeback
from takeback.agents.dialects import aider
from terminal import PATIENCE, Terminal

STARTED = [sys.executable, "-I", "-m", "takeback"]
pytestmark = pytest.mark.usefixtures("signals_as_in_a_terminal")

STAND_IN = r"""
import os, subprocess, sys, termios, time, tty
CHAT = ".aider.chat.history.md"
def wrote(text):
    with open(CHAT, "a") as file:
        file.write(text)
def talked(prompt):
    wrote("\n" + "  \n".join("#### " + line for line in prompt.splitlines()) + "  \n")
def edited(path, text):
    with open(path, "w") as file:
        file.write(text)
    wrote(f"> Applied edit to {path}  \n")
    if os.path.isdir(".git"):
        subprocess.run(["git", "add", path], check=True)
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *author, "commit", "-qm", path], check=True)
        wrote(f"> Commit 1234567 {path}  \n")
def key(question):
    before = termios.tcgetattr(0)
    tty.setraw(0)
    print(question, end="\r\n", flush=True)
    typed = os.read(0, 1).decode()
    with open(".aider.input.history", "a") as file:
        file.write("\n# 2026-11-18 07:21:57.616988\n+" + typed + "\n")
    termios.tcsetattr(0, termios.TCSANOW, before)
wrote("\n# aider chat started at 2026-11-18 07:21:29\n\n> Aider v0.86.2  \n")
if "--message" in sys.argv:
    open(".gitignore", "w").write(".aider*\n")
    talked(sys.argv[sys.argv.index("--message") + 1])
    wrote("\nOk.\n\n#### A heading of the model\n\n")
    edited("new.txt", "new\n")
    sys.exit(3)
key("first>")
talked("first prompt")
edited("a.txt", "by the first prompt\n1\n2\n3\n")   # at once: nobody waits for us
key("second>")
talked("second\nprompt")
time.sleep(0.5)
open("made.txt", "w").write("by a command\n")
edited("b.txt", "by the second prompt\n")
key("create it? (Y)es/(N)o>")
edited("c.txt", "after a question\n")
key("third>")
talked("/drop a.txt")
key("bye>")
"""


@pytest.fixture(autouse=True)
def program(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A project in git, and a program that writes what aider writes."""
    assert home.is_dir()
    monkeypatch.chdir(tree)
    subprocess.run(["git", "init", "-q"], check=True)
    for name in ("a.txt", "b.txt", "mine.txt"):
        Path(name).write_text("before\n1\n2\n3\n")
    found = tree.parent / "aider"
    found.write_text(f"#!{sys.executable} -I\n{STAND_IN}")
    found.chmod(0o755)
    return str(found)


def contents() -> dict[str, str]:
    found = (path for path in Path().iterdir() if path.is_file())
    return {path.name: path.read_text() for path in found if not path.name.startswith(".aider")}


def test_each_prompt_is_a_turn(program: str) -> None:
    """What you save while it waits is yours; what it names is its own; the rest is a doubt."""
    terminal = Terminal([*STARTED, "run", "--", program])
    terminal.expect(b"first>")
    time.sleep(0.3)
    terminal.type(b"x")
    terminal.expect(b"second>")
    time.sleep(0.3)
    Path("mine.txt").write_text("saved while it waits\n")
    with open("a.txt", "a") as file:
        file.write("my line\n")
    time.sleep(0.1)  # stamps of files are not finer
    terminal.type(b"x")
    terminal.expect(b"create it?")
    time.sleep(0.4)
    terminal.type(b"y")
    for question in (b"third>", b"bye>"):
        terminal.expect(question)
        time.sleep(0.3)
        terminal.type(b"x")
    terminal.expect(b'"second"')
    assert terminal.status() == 0
    terminal.close()
    with takeback.open(".") as project:
        second, first = (project.turn(turn.id) for turn in project.log().turns)
        assert (first.agent, first.label, first.status) == ("aider", "first prompt", "done")
        assert second.label == "second\nprompt"
        own = [
            {c.path: c.author.how for c in turn.changes if not c.path.startswith(".aider")}
            for turn in (first, second)
        ]
        assert own == [
            {"a.txt": first.changes[-1].author.how},
            {"b.txt": "named", "c.txt": "named", "made.txt": "perhaps"},
        ]
        assert first.changes[-1].author.how in ("named", "turn"), "there is no doubt"
        heads = [state and state.head for state in (second.git_before, second.git_after)]
        assert heads[0] != heads[1], "its commit is told"
        after = contents()

        project.undo(first.id, yes=True)  # the one in the middle
        assert contents() == {**after, "a.txt": "before\n1\n2\n3\nmy line\n"}
        project.redo(yes=True)
        assert contents() == after
        with pytest.raises(takeback.DecisionNeededError) as doubt:
            project.undo(second.id)
        assert [dict(reason.facts)["paths"] for reason in doubt.value.reasons] == [("made.txt",)]
        project.undo(second.id, yes=True)
        left = {name: text for name, text in after.items() if name not in ("c.txt", "made.txt")}
        assert contents() == {**left, "b.txt": "before\n1\n2\n3\n"}
        assert Path(".aider.chat.history.md").exists()


def test_a_message_without_a_terminal_is_one_turn_without_a_doubt(program: str) -> None:
    """All that the run changed goes back, and the turn is called what was asked for."""
    before = contents()
    command = [*STARTED, "run", "--", program, "--message", "make it new"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 3
    assert b'"make it new"' in done.stderr
    with takeback.open(".") as project:
        (turn,) = project.log().turns
        assert (turn.label, turn.status, turn.agent) == ("make it new", "failed", "aider")
        project.undo()
        assert contents() == before


def test_without_a_prompt_the_run_is_the_turn(program: str) -> None:
    """A program of that name that says nothing is recorded as any other."""
    Path(program).write_text("#!/bin/sh\necho x > x.txt\n")
    subprocess.run([*STARTED, "run", "-q", "--", program], check=True, timeout=PATIENCE)
    with takeback.open(".") as project:
        (turn,) = project.log().turns
        assert turn.label == program
        project.undo()
    assert not Path("x.txt").exists()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("aider --model x", True),
        ("/opt/bin/aider", True),
        ("python3.12 -m aider --help", True),
        ("uvx aider@0.86.2", True),
        ("uv tool run aider", True),
        ("python -m pytest aider", False),
        ("vim aider", False),
        ("aiderly", False),
    ],
)
def test_aider_is_known_by_its_name(line: str, expected: bool) -> None:
    """However it is started."""
    assert aider.is_aider(line.split()) is expected


def test_where_it_keeps_its_history() -> None:
    """The option goes before the variable; without either it is at the top of the repository."""
    top = os.getcwd()
    os.mkdir("sub")
    inside = os.path.join(top, "sub")
    assert aider.history_file(aider.CHAT, ["aider"], {}, inside) == f"{top}/.aider.chat.history.md"
    named = {"AIDER_CHAT_HISTORY_FILE": "talk.md"}
    assert aider.history_file(aider.CHAT, ["aider"], named, inside) == f"{inside}/talk.md"
    words = ["aider", "--chat-history-file=/x/talk.md"]
    assert aider.history_file(aider.CHAT, words, named, inside) == "/x/talk.md"


def test_what_is_a_prompt(tmp_path: Path) -> None:
    """Headings of the model, answers and talk about the talk are none."""
    chat = tmp_path / "chat.md"
    chat.write_text("\n#### of an earlier run  \n")
    history = aider.ChatHistory(str(chat))
    said = (
        "\n# aider chat started at …\n\n> Aider  \n\n#### one  \n#### more of it  \n\nOk.\n\n"
        "#### A heading\n\n> Applied edit to src/a b.py  \n\n"
        "#### Create new file? (Y)es/(N)o/(A)ll [Yes]: all  \n\n#### /add x.py  \n\n#### /undo  \n"
    )
    found = []
    for at in range(0, len(said), 7):
        with chat.open("a") as file:
            file.write(said[at : at + 7])
        found += list(history.news())
    rest = [("edit", "src/a b.py"), ("prompt", "/undo")]
    assert found == [("prompt", "one"), *rest]
    chat.write_text("")
    assert list(history.news()) == []
    chat.write_text(said)
    assert list(history.news()) == [("prompt", "one\nmore of it"), *rest]
