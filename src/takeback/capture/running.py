"""Sessions in the middle of a turn: who they are, and whom a restore concerns."""

from takeback.disk import machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from takeback.ledger.ledger import Ledger
    from takeback.ledger.sessions import SessionRow, StepRow, TurnRow
    from takeback.model.history import RunningSession


def running_sessions(ledger: "Ledger") -> "list[RunningSession]":
    """The sessions in the middle of a turn, but for those whose process is known to be gone."""
    found = []
    for turn in ledger.turns.running_but_of(""):
        row = ledger.sessions.of(turn)
        running = as_running(ledger, row, turn)
        if row.ended is None and running.is_alive is not False:
            found.append(running)
    return found


def touched_sessions(
    ledger: "Ledger", turns: "Collection[str]", paths: "set[bytes]", asker: str
) -> "tuple[RunningSession, ...]":
    """The sessions in the middle of a turn to which a restore does something, unknown to them.

    It is about turns of theirs, or changes paths that they changed, or name in the turn. A session
    that asks for it, or whose program does, knows.
    """
    here, found = machine.holder(), []
    for each in running_sessions(ledger):
        row = ledger.sessions.get(each.id)
        if each.id == asker or row.holder == here:
            continue
        steps = ledger.steps.of_turn(ledger.turns.get(each.turn).number)
        if asks_itself(step for step in steps if step.closed is None and not step.background):
            continue
        named = {name for step in steps for name in step.names}
        own = (ledger.turns.find(id) for id in turns)
        if (
            any(turn is not None and turn.session == row.number for turn in own)
            or not paths.isdisjoint(named)
            or not paths.isdisjoint(ledger.deltas.paths_of_session(row.number))
        ):
            found.append(each)
    return tuple(found)


def asks_itself(steps: "Iterable[StepRow]") -> bool:
    """Whether a command of an agent, as it runs, calls Takeback."""
    said = " ".join(f"{step.tool} {step.summary}" for step in steps)
    words = "".join(c if c.isalnum() else " " for c in said).split()
    return not {"takeback", "tb"}.isdisjoint(words)


def as_running(ledger: "Ledger", row: "SessionRow", turn: "TurnRow") -> "RunningSession":
    """What a session does in a turn that has not ended."""
    from takeback.model.history import RunningSession

    process = row.process or row.holder
    open_steps = [step for step in ledger.steps.of_turn(turn.number) if step.closed is None]
    step = next((each for each in reversed(open_steps) if not each.background), None)
    return RunningSession(
        id=row.id,
        agent=row.agent,
        turn=turn.id,
        label=turn.label,
        since=turn.started / 1e9,
        seen=row.seen / 1e9,
        tool=step.tool if step is not None else "",
        doing=step.summary if step is not None else "",
        is_alive=machine.is_alive(process) if process else None,
    )
