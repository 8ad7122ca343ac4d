"""Memory and databases move with the files: when they do, when they stay, and back again."""

import os
from pathlib import Path

import pytest

import takeback
from cases import Work
from takeback.cli import app
from takeback.model.beyond.participants import AFTERWARDS, DONE, FAILED, MOVES, STAYS
from toys import Box


@pytest.fixture
def box(work: Work, tmp_path: Path) -> Box:
    """A registered participant with the text `one`."""
    (tmp_path / "db").mkdir()
    box = Box(tmp_path / "db" / "box")
    box.write("one")
    work.project.register(box)
    return box


def test_undo_and_redo_move_a_database_with_the_files(work: Work, box: Box) -> None:
    """Both come back together, and go forward together."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
        box.write("two")
    report = work.undo()
    assert (work.text("a.txt"), box.text) == ("1\n", "one")
    assert [(each.name, each.how) for each in report.moves] == [("box", DONE)]
    work.redo()
    assert (work.text("a.txt"), box.text) == ("2\n", "two")
    work.undo()
    assert (work.text("a.txt"), box.text) == ("1\n", "one")
    assert box.prepared == []


def test_a_turn_that_changed_only_a_database_can_be_undone(work: Work, box: Box) -> None:
    """It is an entry of the undo stack like any other."""
    work.write(a_txt="1\n")
    with work.turn():
        box.write("two")
    work.undo()
    assert box.text == "one"
    work.redo()
    assert box.text == "two"


def test_rollback_brings_everything_to_the_coordinate(work: Work, box: Box) -> None:
    """Also over changes of yours, and forward again when it is undone."""
    work.write(a_txt="1\n")
    with work.turn() as first:
        box.write("two")
    with work.turn():
        work.write(a_txt="2\n")
        box.write("three")
    box.write("yours")
    work.rollback(first.id)
    assert (work.text("a.txt"), box.text) == ("1\n", "two")
    work.undo()
    assert (work.text("a.txt"), box.text) == ("2\n", "yours")
    work.rollback(first.id + "-")
    assert (work.text("a.txt"), box.text) == ("1\n", "one")


def test_a_database_that_somebody_changed_since_stays(work: Work, box: Box) -> None:
    """An undo takes back what the turn did, and not what was done since."""
    with work.turn():
        work.write(a_txt="2\n")
        box.write("two")
    box.write("yours")
    plan = work.project.plan_undo()
    assert [(each.how, each.reason and each.reason.code) for each in plan.moves] == [
        (STAYS, "state-since")
    ]
    work.project.apply(plan)
    assert (work.has("a.txt"), box.text) == (False, "yours")


def test_an_undo_in_the_middle_leaves_the_database(work: Work, box: Box) -> None:
    """Only at the tail is its state that of before the turn."""
    with work.turn() as first:
        work.write(a_txt="2\n")
        box.write("two")
    with work.turn():
        work.write(b_txt="3\n")
    report = work.undo(turn=first)
    assert [each.how for each in report.moves] == [STAYS]
    assert (work.has("a.txt"), box.text) == (False, "two")


def test_only_says_what_moves(work: Work, box: Box) -> None:
    """Files alone, or databases alone; the other follows with the next undo."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
        box.write("two")
    work.project.undo(only="databases")
    assert (work.text("a.txt"), box.text) == ("2\n", "one")
    work.project.redo(only=["databases"])
    assert (work.text("a.txt"), box.text) == ("2\n", "two")
    work.project.undo(only="files")
    assert (work.text("a.txt"), box.text) == ("1\n", "two")
    with pytest.raises(takeback.UsageError):
        work.project.undo(only="tables")


def test_if_one_cannot_prepare_nothing_moves(work: Work, box: Box) -> None:
    """The error names it, and offers the command without it."""
    work.write(a_txt="1\n")
    with work.turn():
        work.write(a_txt="2\n")
        box.write("two")
    box.broken["prepare"] = "it is locked by `psql` (pid 7)"
    with pytest.raises(takeback.ParticipantError, match=r"locked by `psql`") as caught:
        work.undo()
    assert "only" in str(caught.value.hint)
    assert (work.text("a.txt"), box.text) == ("2\n", "two")
    assert not work.has(".takeback-stage")
    box.broken.clear()
    work.undo()
    assert (work.text("a.txt"), box.text) == ("1\n", "one")


def test_one_that_cannot_prepare_runs_afterwards(work: Work, tmp_path: Path) -> None:
    """A failure is in the report, and can be repeated."""
    box = Box(tmp_path / "remote", can_prepare=False)
    box.write("one")
    work.project.register(box)
    with work.turn():
        work.write(a_txt="2\n")
        box.write("two")
    assert [each.how for each in work.project.plan_undo().moves] == [AFTERWARDS]
    box.broken["commit"] = "the service is down"
    report = work.undo()
    assert not work.has("a.txt")
    assert [(each.how, box.text) for each in report.moves] == [(FAILED, "two")]
    assert "service is down" in repr(report.moves[0].reason)
    box.broken.clear()
    told = work.project.retry_participants("box")
    assert [each.code for each in told] == ["participant-moved"]
    assert box.text == "one"
    work.redo()
    assert box.text == "two"


def test_a_failed_commit_is_repeated_before_the_next_restore(work: Work, box: Box) -> None:
    """What was decided holds: it goes on until it succeeds, and other restores wait."""
    with work.turn():
        work.write(a_txt="2\n")
        box.write("two")
    box.broken["commit"] = "out of memory"
    report = work.undo()
    assert [each.how for each in report.moves] == [FAILED]
    with pytest.raises(takeback.UnfinishedError, match="out of memory"):
        work.redo()
    box.broken.clear()
    work.redo()
    assert (work.text("a.txt"), box.text) == ("2\n", "two")


def test_a_capture_that_fails_does_not_stop_the_agent(work: Work, box: Box) -> None:
    """But then nobody knows the state, so it is not moved."""
    box.broken["capture"] = "the disk is full"
    with work.turn():
        work.write(a_txt="2\n")
        box.write("two")
    box.broken.clear()
    report = work.undo()
    assert (work.has("a.txt"), box.text) == (False, "two")
    assert [each.how for each in report.moves] in ([], [STAYS])


def test_a_plan_is_refused_if_a_database_changed_since(work: Work, box: Box) -> None:
    """What was shown is what is done."""
    with work.turn():
        work.write(a_txt="2\n")
        box.write("two")
    plan = work.project.plan_undo()
    assert [each.how for each in plan.moves] == [MOVES]
    box.write("yours")
    with pytest.raises(takeback.StalePlanError, match="box"):
        work.project.apply(plan)


def test_the_memory_of_a_session_rewinds(work: Work) -> None:
    """With rollback, undo and redo; a persistent layer never does."""
    memory = work.session.memory
    facts = memory.layer("facts", persistent=True)
    memory["plan"] = ["look", "write"]
    with work.turn() as turn:
        memory["plan"] = ["test"]
        memory["note"] = {"a": 1}
        facts["learnt"] = "tabs"
    work.undo()
    assert dict(memory) == {"plan": ["look", "write"]}
    assert dict(facts) == {"learnt": "tabs"}
    work.redo()
    assert dict(memory) == {"plan": ["test"], "note": {"a": 1}}
    del memory["plan"]
    work.rollback(turn.id + "-")
    assert dict(memory) == {"plan": ["look", "write"]}
    assert [each.value for each in memory.history("plan")] == [
        ["look", "write"], None, ["test"], ["look", "write"], ["test"], ["look", "write"],
    ]  # fmt: skip
    work.undo()
    assert dict(memory) == {"note": {"a": 1}}


def test_the_memory_of_another_session_stays_with_an_undo(work: Work) -> None:
    """An undo is of one session; a rollback is of the world."""
    other = work.project.session(agent="other")
    other.memory["x"] = 1
    with work.turn() as turn:
        work.session.memory["y"] = 1
        work.write(a_txt="1\n")
    other.memory["x"] = 2
    work.undo()
    assert (dict(other.memory), dict(work.session.memory)) == ({"x": 2}, {})
    work.redo()
    work.rollback(turn.id + "-")
    assert (dict(other.memory), dict(work.session.memory)) == ({"x": 1}, {})


def test_an_object_with_state_can_be_registered(work: Work) -> None:
    """Any mapping, or anything with `get_state` and `set_state`."""
    notes: dict[str, object] = {"a": 1}

    class Agent:
        goal = "one"

        def get_state(self) -> dict[str, str]:
            return {"goal": self.goal}

        def set_state(self, state: dict[str, str]) -> None:
            self.goal = state["goal"]

    agent = Agent()
    work.project.register(takeback.memory(notes, name="notes"))
    work.project.register(takeback.memory(agent, name="agent"))
    with work.turn():
        work.write(a_txt="1\n")
        notes["b"], agent.goal = 2, "two"
    work.undo()
    assert (notes, agent.goal) == ({"a": 1}, "one")
    work.redo()
    assert (notes, agent.goal) == ({"a": 1, "b": 2}, "two")


def test_the_tables_follow_from_the_log(work: Work, box: Box) -> None:
    """Tokens, moves and memory are made again from events, and are the same."""
    with work.turn():
        box.write("two")
        work.session.memory["k"] = 1
    work.undo()
    work.redo()
    assert work.project.verify().problems == ()
    work.project.rebuild()
    assert work.project.verify().problems == ()
    assert work.session.memory["k"] == 1
    work.undo()
    assert box.text == "one"


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, {1: (2,)}, {"a": {2: (1,)}}, [1e999]])
def test_a_value_that_would_change_is_refused(work: Work, value: object) -> None:
    """Before anything is written; the memory goes on."""
    memory = work.session.memory
    with pytest.raises(takeback.UsageError):
        memory.update(good=1, bad=value)
    memory["5"] = 5
    assert "\ud800" not in memory
    assert memory.get(5) is None  # type: ignore[call-overload]
    del memory["5"]
    memory["pair"] = [(1, ())]
    assert dict(memory) == {"pair": [[1, []]]}


def test_a_layer_is_of_one_kind(work: Work) -> None:
    """Also if it was opened both ways before its first value."""
    memory = work.session.memory
    mutable, lasting = memory.layer("x"), memory.layer("x", persistent=True)
    mutable["k"] = 1
    with pytest.raises(takeback.UsageError, match="the layer `x` is not persistent"):
        lasting["k"] = 2
    assert dict(mutable) == {"k": 1}


def test_what_a_participant_says_can_be_stored(work: Work, box: Box) -> None:
    """Text that is no UTF-8, or steers a terminal, neither stops the agent nor reaches you."""
    box.broken["capture"] = "no \ud800 \x1b[31m"
    with work.turn():
        box.write("two")
    (row,) = work.project.upkeep.participants()
    assert row["problem"] == "no \N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}[31m"


def test_what_a_killed_process_had_on_the_way_is_removed(work: Work, box: Box) -> None:
    """A copy of a database does not stay where no `forget` looks."""
    store, folder = work.project.workspace.store, Path(os.fsdecode(box.shelf.folder()))
    left = folder / "sqlite-1"
    left.write_text("rows")
    (folder / "of-somebody").mkdir()
    with work.project.workspace.held():
        store.recover()
    assert not left.exists()


def test_status_usage_and_doctor_name_participants(
    work: Work, box: Box, capsys: pytest.CaptureFixture[str]
) -> None:
    """What moves beside the files, what that takes, and what could not be captured."""
    with work.turn() as turn:
        box.write("two" * 10_000)
        work.write(a_txt="2\n")
        work.session.memory["k"] = 1
        turn.mutate("a", 0, 1, inverse="known")
    used = work.project.usage()
    assert (used.captures, used.memory, used.mutations) == (2, 1, 1)
    assert {share.name for share in work.project.usage_by("path")} == {".", "(participants)"}
    assert "participants" in {share.name for share in work.project.usage_by("agent")}
    box.broken["capture"] = "the disk is full"
    work.project.checkpoint()
    with work.turn():
        work.write(a_txt="3\n")
    (named,) = work.project.status().participants
    assert (named.name, named.problem) == ("box", "the disk is full")
    where = ["-C", str(work.tree)]
    app.main(["status", *where])
    app.main(["usage", *where])
    said = capsys.readouterr().out
    assert "box (not captured)" in said
    assert "2 captures, 1 value in memory, 1 mutation" in said
    app.main(["doctor", *where])
    assert "`box` stays in undo and rollback" in capsys.readouterr().out
