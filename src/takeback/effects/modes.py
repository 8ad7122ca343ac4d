"""Who may make the guard lighter, or allow what it refused: the user, at a terminal of theirs.

A terminal that an agent opened is its own: then an agent is among the processes above, one of
those that reported a session here, or one by its name, or an agent's mark is in an environment.
Whoever wants to hide that can; this stops mistakes.
"""

import os
import time

from takeback.disk import machine
from takeback.disk.failures import FailingAs
from takeback.effects.verdict import MODES, is_lighter
from takeback.errors import DecisionNeededError, TakebackError, UnknownReferenceError, UsageError
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model.reasons import Action
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from takeback.capture.workspace import Workspace
    from takeback.disk.machine import Ancestor
    from takeback.ledger.beyond.effects import RefusalRow

_MARK = b"AI_AGENT"
"""The variable that several agents agreed on."""


class Signs(Value):
    """By what the processes of agents are known, and what runs inside them."""

    programs: "frozenset[bytes]" = frozenset()
    folders: "tuple[bytes, ...]" = ()
    """Parts of the paths of programs."""
    marks: "frozenset[bytes]" = frozenset()
    """Environment variables."""


class Terminal(Value):
    """Where a command was typed: whether that is a terminal, and by what agents are known."""

    is_there: bool
    signs: Signs = Signs()
    agents: "tuple[str, ...]" = ()
    """The processes of agents, as `machine.holder` names them."""


def agent_above(ancestors: "Iterable[Ancestor]", signs: Signs, processes: "Collection[str]") -> str:
    """Which agent runs a process, by the processes above it; empty if none does."""
    for each in ancestors:
        mark = next(iter(sorted((signs.marks | {_MARK}) & each.variables)), b"")
        if mark:
            return os.fsdecode(mark)
        if each.holder in processes:
            return os.fsdecode(b" ".join(each.words[:1])) or str(each.pid)
        for word in each.words[:2]:
            name = os.path.basename(word)
            if name in signs.programs or any(folder in word for folder in signs.folders):
                return os.fsdecode(name)
    return ""


def require_user(work: "Workspace | None", terminal: Terminal) -> None:
    """An error unless a user types at a terminal that no agent opened."""
    if not terminal.is_there:
        raise DecisionNeededError(
            "only you can allow a call or make the guard lighter, at a terminal",
            hint="run this command again in a terminal that no agent opened",
        )
    processes = set(terminal.agents)
    if work is not None:
        processes |= set(work.ledger.effects.agent_processes())
    above = agent_above(machine.ancestors(os.getpid()), terminal.signs, processes)
    if above:
        raise DecisionNeededError(
            f"an agent (`{above}`) runs this terminal, so it decides nothing about the guard",
            hint="run it in a terminal of your own",
        )


def change(
    work: "Workspace | None",
    before: str,
    after: str,
    terminal: Terminal,
    write: "Callable[[], object]",
) -> None:
    """Set the mode; `write` puts it into the settings. A lighter one needs the user."""
    if after not in MODES:
        raise UsageError(f"`{after}` is not a mode of the guard", hint=f"one of {', '.join(MODES)}")
    if is_lighter(after, before):
        require_user(work, terminal)
    write()
    if before == after or work is None:
        return
    with FailingAs(TakebackError, "it could not be recorded"), work.held():
        said = {"before": before, "after": after, "by": machine.account()}
        work.ledger.record(NewEvent(events.GUARD_MODE_SET, said, time.time_ns()))


def refusals(work: "Workspace", limit: int = 20) -> "list[RefusalRow]":
    """What was refused, newest first; not what the user was only asked about."""
    with FailingAs(TakebackError, "the store could not be read"):
        return [row for row in work.ledger.effects.refusals() if row.verdict == "deny"][:limit]


def allow(work: "Workspace", id: str, scope: str, terminal: Terminal) -> "RefusalRow":
    """Let the same call run, `once` or for the rest of its `session`."""
    require_user(work, terminal)
    with FailingAs(TakebackError, "nothing was allowed"), work.held():
        found = work.ledger.effects.refusals_with_prefix(id)
        if len(found) != 1 or not id:
            what = "several refused calls match" if found and id else "no refused call matches"
            raise UnknownReferenceError(f"{what} `{id}`", hint=Action("guard-refusals"))
        (row,) = found
        said = {"refusal": row.id, "scope": scope, "by": machine.account()}
        work.ledger.record(NewEvent(events.GUARD_ALLOWED, said, time.time_ns()))
        return row
