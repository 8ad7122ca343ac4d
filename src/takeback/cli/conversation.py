"""The conversation that goes with what is taken back: options, copies, what is printed of them."""

import os

from takeback.arguments import only_of
from takeback.cli.parser import Arguments, Option
from takeback.cli.screen import Screen, safe_line
from takeback.cli.text.restores import plan_text
from takeback.errors import TakebackError, UsageError
from takeback.model.beyond.participants import CONVERSATION, EVERY
from takeback.model.plan import called
from takeback.model.reasons import Action
from takeback.model.text.safe_text import shell_word
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.agents.resume import Resumed
    from takeback.model.plan import Plan
    from takeback.model.text.json_text import Json
    from takeback.project import Project


RESUME_OPTIONS = (
    Option(("--resume",), "also copy the conversation as it was then, so that you can continue it"),
    Option(
        ("--only",),
        "take back only some of `files`, `conversation`, `memory`, `databases`",
        "WHAT,…",
        EVERY,
    ),
)


class Conversation:
    """What the command line says about conversations, and what is made of them."""

    def __init__(self, given: "Arguments", project: "Project") -> None:
        only = only_of(given.get("only"))
        if given.has("only") and not only:
            raise UsageError("`--only` names nothing", hint=f"use {', '.join(EVERY)}")
        self.is_all = only == (CONVERSATION,)
        self.only = () if self.is_all else only
        """What a restore may move, if not everything."""
        self._is_wanted = given.has("resume") or CONVERSATION in only
        if given.has("resume") and only and CONVERSATION not in only:
            raise UsageError(
                f"`--resume` and `--only {','.join(only)}` exclude each other",
                hint="without both, the conversation stays as it is",
            )
        if self._is_wanted and given.rest:
            raise UsageError(
                "a conversation can only be taken back as a whole, not for some paths",
                hint="leave out the paths, or `--resume` and `--only`",
            )
        self._project = project

    def copies(self, plan: "Plan", restore: str = "") -> "list[Resumed] | None":
        """Make the copies that go with a plan; None if nobody wants any."""
        if not self._is_wanted:
            return None
        return self._project.copy_conversations(plan, restore=restore, in_the_middle=self.is_all)


def trim(conversation: Conversation, plan: "Plan", screen: "Screen") -> int:
    """Only the conversation: a copy of it, and the files stay as they are."""
    made = conversation.copies(plan)
    said = in_words(made, screen)
    if not made or all(each.problem for each in made):
        raise TakebackError(f"nothing was changed: {said[0]}", hint=Action("sessions"))
    if screen.json:
        screen.data(plan_text.as_json(plan, screen.masker, conversations=as_json(made)))
        return 0
    screen.say("Copied the conversation as it was then; the files stay as they are.")
    for text in said:
        screen.note(text)
    return 0


def in_words(made: "list[Resumed] | None", screen: "Screen") -> "list[str]":
    if made is None:
        return []
    found = [_sentence(each, screen.masker.words(each.label)) for each in made]
    return found or ["there is no conversation to continue"]


def _sentence(made: "Resumed", label: str) -> str:
    before = f"before {called(label, is_turn=True)}"
    if made.problem:
        said = f"the conversation of {made.agent} cannot continue from {before}: {_why(made)}"
        return safe_line(said)
    repaired = " (lines were missing in the middle)" if made.repaired else ""
    said = f"continues the conversation as it was {before}{repaired}"
    return f"`{_where(made.folder)}{safe_line(made.command)}` {safe_line(said)}"


def _why(made: "Resumed") -> str:
    from takeback.agents import agent

    sentences = {
        agent.UNREADABLE: "its file cannot be read: {fact}",
        agent.UNKNOWN_FORMAT: "its file has an unknown format",
        agent.UNKNOWN_AGENT: "Takeback does not know where {agent} keeps its conversations",
        agent.NO_TRANSCRIPT: "{agent} did not report where the file is",
        agent.NO_ID: "its file does not name the conversation",
        agent.PROMPT_MISSING: "its prompt is no longer in the file",
        agent.PART_MISSING: "it continues another file, which is gone",
        agent.TOO_MANY_PARTS: "it is spread across too many files",
        agent.BEGINS_HERE: "the conversation begins with this turn",
        agent.LATER_TURNS_STAY: "{fact} of it would stay; the agent gets a note instead",
        agent.UNWRITABLE: "the copy cannot be written: {fact}",
    }
    is_number = made.problem == agent.LATER_TURNS_STAY
    fact = count(int(made.fact), "later turn") if is_number else made.fact
    return sentences[made.problem].format(fact=fact, agent=made.agent)


def _where(folder: str) -> str:
    """How to get to where the agent worked; nothing if one is there."""
    if not folder or os.path.realpath(folder) == os.path.realpath("."):
        return ""
    return f"cd {safe_line(shell_word(folder))} && "


def as_json(made: "list[Resumed] | None") -> "list[Json]":
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
