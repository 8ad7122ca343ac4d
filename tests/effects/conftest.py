"""A judge that knows a few commands, for tests of what is done about a judgement."""

from typing import Any

import pytest

from takeback.guard import judge
from takeback.model import effects, words
from takeback.model.effects import Judgement, Outside
from takeback.model.reasons import Reason

_KNOWN = {
    "git push": ("push", effects.IRREVERSIBLE, ""),
    "curl -X POST": ("request", effects.IRREVERSIBLE, ""),
    "gh release create": ("publish", effects.COMPENSABLE, "touch undone"),
}


def judged(tool: str, given: dict[str, Any], *, kind: str, **_: object) -> Judgement:
    """A judgement as the judge makes it."""
    command = str(given.get("command", ""))
    if kind == words.EDIT:
        return Judgement(effects.INSIDE, "tool", Reason("tool", tool=tool))
    if command.startswith(("ls", "cat")):
        return Judgement(effects.READ, "ls", Reason("known"))
    for begin, (what, effect, inverse) in _KNOWN.items():
        if command.startswith(begin):
            outside = Outside(what, command, "", effect, inverse)
            reason = Reason("known", text="others can see it")
            return Judgement(effect, begin, reason, "ask the user", inverse, outside=(outside,))
    if command.startswith("git reset"):
        return Judgement(effects.DESTRUCTIVE, "git reset", Reason("known"), git=("worktree",))
    if command.startswith("psql"):
        outside = Outside("database", command, "localhost", effects.DESTRUCTIVE)
        return Judgement(effects.DESTRUCTIVE, "drop", Reason("known"), outside=(outside,))
    return Judgement(effects.PROGRAM, "tool", Reason("tool", tool=tool))


@pytest.fixture(autouse=True)
def _knows_a_few_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "judge", judged)
