"""What an agent did to the application goes back by recorded inverses."""

import pytest

import takeback
from cases import Work
from takeback.model.beyond.participants import AFTERWARDS, CONFLICTS, DONE, FAILED, STAYS, Mutation

STATE: dict[str, object] = {}
CALLS: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_before() -> None:
    STATE.clear()
    CALLS.clear()


def put_back(mutation: Mutation) -> None:
    """Set a target to what it was."""
    CALLS.append(mutation.key)
    STATE[mutation.target] = mutation.before


def do_again(mutation: Mutation) -> None:
    """Set a target to what it was made."""
    STATE[mutation.target] = mutation.after


def change(turn: takeback.Turn, target: str, after: object, **more: str) -> str:
    """Change the state as an agent would, and record it."""
    before = STATE.get(target)
    STATE[target] = after
    return turn.mutate(
        target, before, after, inverse=put_back, read=STATE.get, redo=do_again, **more
    )


def test_inverses_run_in_reverse_order(work: Work) -> None:
    """Each once; a redo does it again."""
    with work.turn() as turn:
        first = change(turn, "price", 1)
        second = change(turn, "price", 2)
        third = change(turn, "name", "x")
    plan = work.project.plan_undo()
    assert [each.how for each in plan.moves] == [AFTERWARDS] * 3
    report = work.project.apply(plan)
    assert [third, second, first] == CALLS
    assert [each.how for each in report.moves] == [DONE] * 3
    assert STATE == {"price": None, "name": None}
    work.redo()
    assert STATE == {"price": 2, "name": "x"}
    work.undo()
    assert STATE == {"price": None, "name": None}


def test_a_target_that_changed_since_is_a_conflict(work: Work) -> None:
    """Nothing is overwritten, and nothing moves until somebody decides."""
    with work.turn() as turn:
        work.write(a_txt="1\n")
        change(turn, "price", 1)
    STATE["price"] = 7
    assert [each.how for each in work.project.plan_undo().moves] == [CONFLICTS]
    with pytest.raises(takeback.ConflictError, match="price"):
        work.undo()
    assert (STATE, work.has("a.txt")) == ({"price": 7}, True)
    report = work.project.undo(decide="keep-mine")
    assert [each.how for each in report.moves] == [STAYS]
    assert (STATE, work.has("a.txt")) == ({"price": 7}, False)


def test_a_later_turn_that_changed_the_same_target_conflicts(work: Work) -> None:
    """Also if nobody can read the target."""
    with work.turn() as turn:
        turn.mutate("price", 0, 1, inverse=put_back)
    with work.turn() as later:
        later.mutate("price", 1, 2, inverse=put_back)
    with pytest.raises(takeback.ConflictError):
        work.undo(turn=turn)
    work.undo()
    work.undo()
    assert STATE == {"price": 0}


def test_a_failing_inverse_hides_no_other(work: Work) -> None:
    """It is in the report, and can be repeated."""
    broken = [True]

    def fragile(mutation: Mutation) -> None:
        if broken:
            raise OSError("the service is down")
        put_back(mutation)

    with work.turn() as turn:
        change(turn, "a", 1)
        turn.mutate("mail", None, "sent", inverse=fragile)
        change(turn, "b", 1)
    report = work.undo()
    assert [each.how for each in report.moves] == [DONE, FAILED, DONE]
    assert STATE == {"a": None, "b": None}
    broken.clear()
    told = work.project.retry_participants()
    assert [each.code for each in told] == ["participant-moved"]
    assert len(CALLS) == 3
    assert work.project.retry_participants() == ()


def test_a_key_counts_once(work: Work) -> None:
    """A retried step records no second mutation."""
    with work.turn() as turn:
        assert change(turn, "a", 1, key="k") == "k"
        assert change(turn, "a", 1, key="k") == "k"
    work.undo()
    assert CALLS == ["k"]


@takeback.tool(inverse=lambda mutation: CALLS.append(f"cancel {mutation.given}"))
def book(flight: str, *, seats: int) -> dict[str, int]:
    """Book seats on a flight."""
    if seats > 9:
        raise ValueError(flight)
    return {"seats": seats}


def test_a_tool_with_an_inverse(work: Work) -> None:
    """Its calls inside a turn are recorded by themselves; one that raised is not taken back."""
    assert book("AB1", seats=1) == {"seats": 1}
    with work.turn() as turn:
        with turn.step("book"):
            assert book("AB2", seats=2) == {"seats": 2}
        with pytest.raises(ValueError, match="AB3"):
            book("AB3", seats=10)
    work.undo()
    assert CALLS == ["cancel [['AB2'], {'seats': 2}]"]


def test_rollback_runs_the_inverses_of_all_that_was_done_since(work: Work) -> None:
    """And the undo of the rollback does it again, where something can."""
    with work.turn() as first:
        change(first, "a", 1)
    with work.turn() as second:
        change(second, "a", 2)
    work.rollback(first.id)
    assert STATE == {"a": 1}
    work.undo()
    assert STATE == {"a": 2}
    work.rollback(first.id + "-")
    assert STATE == {"a": None}


def test_an_inverse_that_no_program_knows_stays(work: Work) -> None:
    """It is listed, and runs when a program registers it."""
    with work.turn() as turn:
        work.write(a_txt="1\n")
        turn.mutate("a", 0, 1, inverse="set-price")
    report = work.undo()
    assert [(each.how, each.reason and each.reason.code) for each in report.moves] == [
        (STAYS, "no-inverse")
    ]
    work.redo()
    work.project.register(takeback.inverse("set-price", put_back))
    work.undo()
    assert STATE == {"a": 0}


def test_a_key_that_was_taken_back_counts_anew(work: Work) -> None:
    """What a retry does again can be taken back again, by a key of its own."""
    for key in ("k", "k 2", "k 3"):
        with work.turn() as turn:
            assert change(turn, "a", 1, key="k") == key
        work.undo()
        assert STATE["a"] is None
    assert CALLS == ["k", "k 2", "k 3"]


def test_a_key_is_of_one_target(work: Work) -> None:
    """A second mutation with the same key would have no inverse, so it is refused."""
    with work.turn() as turn:
        change(turn, "a", 1, key="k")
        with pytest.raises(takeback.UsageError, match="`k` is the key of a mutation of `a`"):
            change(turn, "b", 1, key="k")


def test_tuples_are_lists(work: Work) -> None:
    """A target that holds a tuple is as it was left."""
    with work.turn() as turn:
        change(turn, "a", (1, (2,)))
    work.undo()
    assert STATE == {"a": None}


def test_a_target_that_cannot_be_read_stops_only_its_own(work: Work) -> None:
    """Nothing moves, and the command without it is offered."""

    def gone(_target: str) -> object:
        raise RuntimeError("connection lost")

    with work.turn() as turn:
        work.write(a_txt="1\n")
        turn.mutate("a", 0, 1, inverse=put_back, read=gone)
    with pytest.raises(takeback.ParticipantError, match="connection lost") as problem:
        work.undo()
    assert work.has("a.txt")
    offered = next(each for each in problem.value.actions if not isinstance(each, str))
    only = str(dict(offered.facts)["only"])
    work.project.undo(only=only.split(","))
    assert (work.has("a.txt"), CALLS) == (False, [])


def test_an_inverse_that_exits_has_failed(work: Work) -> None:
    """It ends neither the program nor the restore."""

    def leave(_mutation: Mutation) -> None:
        raise SystemExit(3)

    with work.turn() as turn:
        change(turn, "a", 1)
        turn.mutate("mail", None, "sent", inverse=leave)
    assert [each.how for each in work.undo().moves] == [FAILED, DONE]
    assert STATE == {"a": None}


def test_an_inverse_that_is_owed_takes_nothing_newer_back(work: Work) -> None:
    """A key whose inverse failed counts anew, too: that inverse still runs, for what it is of."""
    broken, ran = ["down"], list[str]()

    def refund(mutation: Mutation) -> None:
        if broken:
            raise RuntimeError(broken[0])
        ran.append(mutation.key)

    with work.turn() as turn:
        turn.mutate("mail", 0, 1, inverse=refund, key="k")
    assert [each.how for each in work.undo().moves] == [FAILED]
    with work.turn() as turn:
        assert turn.mutate("mail", 0, 1, inverse=refund, key="k") == "k 2"
    broken.clear()
    work.project.retry_participants()
    assert ran == ["k"]
    work.undo()
    assert ran == ["k", "k 2"]
