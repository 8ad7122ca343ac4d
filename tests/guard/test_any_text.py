"""Any text at all is judged: nothing raises, and quoting makes nothing lighter."""

import json
import shlex
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from guarding import HOME, ROOT, judged
from takeback.guard import judge as judging
from takeback.guard import rules, tools
from takeback.model import words
from takeback.model.beyond.effects import CLASSES, gravity

COMMANDS = [
    str(json.loads(line)["command"])
    for line in (Path(__file__).parent / "commands_own.jsonl").read_text().splitlines()
]
PIECES = st.sampled_from(
    ["'", '"', "$(", "`", ")", "{", "}", "|", ";", "&&", "<<E\n", "\n", "\\", "${", "*", "<(", ">",
     "\0", "é", "\udcff", " ", "#", "$'", "rm", "sh -c", "eval", "=", "|&", "<<<", "[["]
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A command with pieces put in and cut out."""
    text = draw(st.sampled_from(COMMANDS))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 4))
        text = text[:at] + draw(PIECES) + text[at + cut :]
    return text


def raw(text: str) -> str:
    """The class of a command, without the net that makes an error opaque."""
    scope = judging._scope(ROOT, ROOT, HOME)
    given = {"command": text}
    return tools.judge_call("Bash", given, words.SHELL, scope, rules.NONE, None, None).effect


@settings(max_examples=80, deadline=None)
@given(st.one_of(mutated(), st.text(max_size=60), st.lists(PIECES, max_size=12).map(" ".join)))
def test_nothing_raises(text: str) -> None:
    """Whatever text there is, it has a class."""
    assert raw(text) in CLASSES


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([each for each in COMMANDS if each.isascii()]), st.integers(0, 3))
def test_a_command_in_a_shell_of_its_own_is_no_lighter(command: str, how: int) -> None:
    """`sh -c`, `eval`, a here-document and an alias for the same text keep its gravity."""
    inner = shlex.quote(command)
    shape = (
        f"sh -c {inner}",
        f"eval {inner}",
        f"bash <<'END_'\n{command}\nEND_",
        f"bash <<< {inner}",
    )
    assert gravity(judged(shape[how]).effect) >= gravity(judged(command).effect)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(COMMANDS), st.sampled_from("'\"\\"))
def test_quoting_the_name_makes_no_command_lighter(command: str, quote: str) -> None:
    """Quotes and a backslash around the name of a program change nothing."""
    name, blank, rest = command.partition(" ")
    if not name.isalnum() or name in {"for", "while", "if", "time", "case", "until"}:
        return
    quoted = f"\\{name}" if quote == "\\" else f"{quote}{name}{quote}"
    before, after = judged(command).effect, judged(quoted + blank + rest).effect
    assert gravity(after) >= gravity(before)
