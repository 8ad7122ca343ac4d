"""`--resume` and `--only`: the conversation that goes with what is taken back."""

import os

from takeback.agents import agent as reasons
from takeback.cli import planjson
from takeback.cli.arguments import Option
from takeback.cli.render import safe_line
from takeback.errors import TakebackError, UsageError
from takeback.model.counting import count
from takeback.model.plan import called
from takeback.model.safetext import shell_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.resume import Resumed
    from takeback.cli.arguments import Arguments
    from takeback.cli.render import Screen
    from takeback.model.jsontext import Json
    from takeback.model.plan import Plan
    from takeback.project import Project

FILES, CONVERSATION, MEMORY = "files", "conversation", "memory"
OPTIONS = (
    Option(("--resume",), "also make a copy of the conversation as it was then, to go on with"),
    Option(("--only",), "take back only the `files`, or only the `conversation`", "WHAT"),
)
_WHY = {
    reasons.UNREADABLE: "its file cannot be read: {fact}",
    reasons.UNKNOWN_FORMAT: "its file has an unknown format",
    reasons.UNKNOWN_AGENT: "Takeback does not know where {agent} keeps its conversations",
    reasons.NO_TRANSCRIPT: "{agent} did not report where it keeps it",
    reasons.NO_ID: "its file does not say which conversation it is",
    reasons.PROMPT_MISSING: "its prompt is no longer in the file",
    reasons.PART_MISSING: "it continues another file, which is gone",
    reasons.TOO_MANY_PARTS: "it is spread over too many files",
    reasons.BEGINS_HERE: "the conversation begins with this turn",
    reasons.LATER_TURNS_STAY: "{fact} of it would stay; the agent gets a note instead",
    reasons.UNWRITABLE: "the copy cannot be written: {fact}",
}


class Conversation:
    """What the command line says about conversations, and what is made of them."""

    def __init__(self, given: "Arguments", project: "Project") -> None:
        only = given.get("only")
        if only == MEMORY:
            raise UsageError("there is no memory yet that could be taken back")
        if given.has("only") and only not in (FILES, CONVERSATION):
            raise UsageError(
                f"`--only` takes `{FILES}` or `{CONVERSATION}`, not `{only}`",
                hint="`--resume` takes back both",
            )
        self.is_all = only == CONVERSATION
        self._is_wanted = given.has("resume") or self.is_all
        if self._is_wanted and only == FILES:
            raise UsageError(
                f"`--resume` and `--only {FILES}` exclude each other",
                hint="without both, the conversation stays as it is",
            )
        if self._is_wanted and given.rest:
            raise UsageError(
                "a conversation goes back as a whole, not for some paths",
                hint="leave out the paths, or `--resume` and `--only`",
            )
        self._project = project

    def copies(self, plan: "Plan", restore: str = "") -> "list[Resumed] | None":
        """Make the copies that go with a plan; None if nobody wants any."""
        if not self._is_wanted:
            return None
        from takeback.agents.resume import resume

        ledger, held = self._project.ledger, self._project.held
        return resume(ledger, held, plan, restore=restore, in_the_middle=self.is_all)


def trim(conversation: Conversation, plan: "Plan", screen: "Screen") -> int:
    """Only the conversation: a copy of it, and the files stay as they are."""
    made = conversation.copies(plan)
    said = in_words(made, screen)
    if not made or all(each.problem for each in made):
        raise TakebackError(f"nothing was changed: {said[0]}")
    if screen.json:
        screen.data(planjson.of_plan(plan, screen.masker, as_json(made)))
        return 0
    screen.say("The conversation was copied as it was then; the files stay as they are.")
    for text in said:
        screen.note(text)
    return 0


def in_words(made: "list[Resumed] | None", screen: "Screen") -> "list[str]":
    """What became of the conversations, a sentence each."""
    if made is None:
        return []
    found = [_sentence(each, screen.masker.words(each.label)) for each in made]
    return found or ["no conversation goes with that"]


def _sentence(made: "Resumed", label: str) -> str:
    before = f"before {called(label, is_turn=True)}"
    if made.problem:
        said = f"the conversation of {made.agent} cannot go on from {before}: {_why(made)}"
        return safe_line(said)
    repaired = " (lines were missing in the middle)" if made.repaired else ""
    said = f"goes on with the conversation as it was {before}{repaired}"
    return f"`{_where(made.folder)}{safe_line(made.command)}` {safe_line(said)}"


def _why(made: "Resumed") -> str:
    fact = made.fact
    if made.problem == reasons.LATER_TURNS_STAY:
        fact = count(int(fact), "later turn")
    return _WHY[made.problem].format(fact=fact, agent=made.agent)


def _where(folder: str) -> str:
    """How to get to where the agent worked; nothing if one is there."""
    if not folder or os.path.realpath(folder) == os.path.realpath("."):
        return ""
    return f"cd {safe_line(shell_word(folder))} && "


def as_json(made: "list[Resumed] | None") -> "list[Json]":
    """As documented in docs/json.md."""
    return [
        {
            "session": each.session,
            "agent": each.agent,
            "turn": each.turn,
            "id": each.own_id or None,
            "transcript": each.transcript or None,
            "folder": each.folder or None,
            "command": each.command or None,
            "problem": each.problem or None,
            "why": _why(each) if each.problem else None,
            "repaired": each.repaired,
        }
        for each in made or ()
    ]
