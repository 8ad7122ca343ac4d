"""Judges a command as all tests of the guard do: in `/work-tree`, with `/Users/user` as home."""

from takeback.guard import rules as guard_rules
from takeback.guard.judge import judge
from takeback.guard.rules import Rules
from takeback.model import words
from takeback.model.beyond.effects import Judgement

ROOT, HOME = b"/work-tree", b"/Users/user"


def judged(command: str, rules: Rules = guard_rules.NONE, cwd: bytes = ROOT) -> Judgement:
    return judge(
        "Bash", {"command": command}, kind=words.SHELL, cwd=cwd, root=ROOT, home=HOME, rules=rules
    )


def class_of(command: str) -> str:
    return judged(command).effect
