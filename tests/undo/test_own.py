"""What a session may take back alone: a verdict on values, and what the ledger tells for it."""

import pytest

import takeback
from cases import Work
from takeback.model import reasons
from takeback.model.beyond.participants import DATABASES, MOVES, STAYS, Move
from takeback.model.history import RunningSession
from takeback.model.plan import Conflict, Plan, PlannedChange, Remark
from takeback.model.reasons import Reason
from takeback.model.words import DELETE, UNDO
from takeback.undo import own

MINE = frozenset({"me"})
CHANGE = PlannedChange(b"a", DELETE, None, None)


def plan(**facts: object) -> Plan:
    """A plan that takes back one turn of ours, which made `a`."""
    usual: dict[str, object] = {"changes": (CHANGE,), "turns": ("turn",)}
    return Plan(UNDO, base="", target="turn", title="t", **{**usual, **facts})  # type: ignore[arg-type]


def codes(
    plan: Plan, authors: "frozenset[str] | None" = MINE, turns: "dict[str, str] | None" = None
) -> list[str]:
    """Why the user decides about a plan."""
    known = {} if authors is None else {b"a": authors}
    return [each.code for each in own.judge(plan, "me", known, turns or {"turn": "me"})]


def running(session: str) -> RunningSession:
    """A session in the middle of a turn."""
    return RunningSession(session, "agent", "turn", "label", 0, 0)


def test_own_changes_need_nobody() -> None:
    """Nor does what stays because it is the user's anyway, or the session itself at work."""
    yours = Remark(b"b", Reason(reasons.YOURS))
    assert codes(plan()) == []
    assert codes(plan(kept=(yours,), running=(running("me"),))) == []
    assert codes(plan(changes=())) == []


@pytest.mark.parametrize(
    "authors", [None, frozenset({"me", ""}), frozenset({""}), frozenset({"x"})]
)
def test_what_others_changed_is_theirs(authors: "frozenset[str] | None") -> None:
    """Also if nobody knows who changed it."""
    assert codes(plan(), authors) == [reasons.OF_OTHERS]


def test_everything_else_is_the_users_to_decide() -> None:
    """One reason each."""
    conflict = Conflict(b"c", Reason(reasons.SAME_LINES))
    doubt = Reason(reasons.AFTER_STOP, turn="t", paths=("a",))
    mixed = Remark(b"b", Reason(reasons.MADE_AND_CHANGED))
    away = CHANGE.replace(raw_path=b"/etc/a", outside=True)
    assert codes(plan(conflicts=(conflict,))) == [reasons.IN_CONFLICT]
    assert codes(plan(doubts=(doubt,))) == [reasons.AFTER_STOP]
    assert codes(plan(kept=(mixed,))) == [reasons.OF_OTHERS]
    assert codes(plan(changes=(away,))) == [reasons.OUTSIDE_PROJECT]
    assert codes(plan(running=(running("x"),))) == [reasons.OTHERS_AT_WORK]
    moves = (Move("shop", DATABASES, MOVES),)
    assert codes(plan(moves=moves)) == [reasons.MOVES_PARTICIPANTS]
    assert codes(plan(moves=(Move("shop", DATABASES, STAYS),))) == []
    assert codes(plan(), turns={"turn": "me", "other": "x"}) == [reasons.TURNS_OF_OTHERS]


def test_who_changed_a_path_is_told_by_the_ledger(work: Work) -> None:
    """By session; the user and what nobody knows count as others, a rename by both names."""
    work.write(a="0", b="0", c="0")
    first = work.checkpoint()
    with work.turn() as turn:
        work.write(a="1")
        with turn.step("Bash", {"command": "mv c d"}):
            work.move("c", "d")
    work.write(b="mine")
    found = own.changed_by(work.project.workspace.ledger, work.project.plan_rollback(first))
    me = frozenset({work.session.id})
    assert found == {b"a": me, b"c": me, b"d": me, b"b": frozenset({""})}


def test_only_own_changes_are_applied(work: Work) -> None:
    """The verdict is on the plan as it is made under the lock, not on the one that was shown."""
    work.write(a="0")
    with work.turn():
        work.write(a="1", b="1")
    plan = work.project.plan_undo()
    with pytest.raises(takeback.DecisionNeededError) as refused:
        work.project.apply(plan, asker="somebody", only_own=True)
    assert {each.code for each in refused.value.reasons} >= {reasons.OF_OTHERS}
    assert f"project.apply({plan.id!r})" in refused.value.hint
    assert work.text("a") == "1"
    assert work.project.apply(plan, asker=work.session.id, only_own=True).id
    assert work.text("a") == "0"


def test_what_the_session_took_back_itself_stays_its_own(work: Work) -> None:
    """An undo by the user in between makes the path the user's."""
    work.write(a="0")
    for text in "123":
        with work.turn():
            work.write(a=text)
    session = work.session.id
    for _ in range(2):
        plan = work.project.plan_undo()
        assert work.project.apply(plan, asker=session, only_own=True).id
    assert work.text("a") == "1"
    work.redo()
    with pytest.raises(takeback.DecisionNeededError):
        work.project.apply(work.project.plan_undo(), asker=session, only_own=True)
    assert work.text("a") == "2"
