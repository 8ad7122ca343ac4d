"""What is kept and how long, what goes, and that all that is kept is as it was."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import oracle
import program
import takeback
from takeback.disk import operations, programs
from takeback.errors import (
    BusyError,
    DamagedStoreError,
    NoLongerKeptError,
    NothingToTakeBackError,
    UnknownReferenceError,
    UsageError,
)
from takeback.history import retention
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent, pack_facts
from takeback.objects.git_objects import BLOB
from years import Years


@pytest.fixture
def years(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Years]:
    """A tree with a few files, and time."""
    monkeypatch.setattr(operations, "sync", False)
    made = Years(tree, home, monkeypatch)
    made.put("readme", "a project\n")
    made.put("deep/er/still", "unchanged\n")
    yield made
    made.close()


# -- the rules ---------------------------------------------------------------------------------


def test_files_of_thirty_days_are_kept(years: Years) -> None:
    """Turns of the last 30 days can be taken back, and the state of 30 days ago is there."""
    years.days(40)
    years.wait(0.5)
    done = years.gc(days=30)
    assert years.kept_turns() == list(range(10, 40))
    before = years.project.turn(years.turns[10].id).before
    assert years.kept()[0] == before == years.project.turn(years.turns[9].id).after
    assert (done.turns, done.turns_kept, done.why) == (10, 30, "age")
    assert years.wrong() == []


def test_the_newest_turns_are_kept_however_old(years: Years) -> None:
    """After a year in which nobody worked, the newest turns are all there."""
    years.days(30)
    years.wait(365)
    years.gc(days=1, turns=12)
    assert years.kept_turns() == list(range(18, 30))
    assert years.wrong() == []


def test_nothing_goes_where_nothing_shall(years: Years) -> None:
    """Kept for ever is kept for ever."""
    years.days(20)
    years.wait(5000)
    assert years.gc(days=None, turns=1).checkpoints == 0
    assert years.kept_turns() == list(range(20))


def test_states_without_turns_are_kept_by_number_and_age(years: Years) -> None:
    """A project without any turns has its states of 30 days, and as many as turns are kept."""
    made = []
    for number in range(30):
        years.wait()
        years.put("file", str(number))
        made.append(years.checkpoint())
    years.gc(days=3, turns=8)
    assert years.kept() == made[-8:]
    years.gc(days=12, turns=2)
    assert years.kept() == made[-8:], "what is gone does not come back, and nothing else goes"


def test_what_still_runs_is_kept_with_all_that_came_since(years: Years) -> None:
    """A turn that runs, however long, can be taken back when it is over."""
    years.days(5)
    slow = years.project.session("slow")
    running = slow.turn("a long one", whole=False)
    with running.step("Write", {"file_path": "slow"}):
        years.put("slow", "begun")
    years.days(27)
    running.step("Read", {"file_path": "slow"}).end()
    years.days(3)
    years.gc(days=2, turns=3)
    assert years.kept_turns() == list(range(5, 35))
    running.end("done")
    years.gc(days=2, turns=3)
    slow.end()
    assert years.wrong() == []
    years.undo(turn=running.id)
    assert years.has_none("slow")


def test_an_abandoned_turn_keeps_only_the_state_before_it(years: Years) -> None:
    """An agent that was killed in a turn does not keep all files from then on."""
    years.days(5)
    dead = years.project.session("dead").turn("killed", whole=False)
    years.put("dead", "begun")
    years.days(30)
    years.gc(days=10, turns=3)
    assert years.kept_turns() == list(range(25, 35))
    assert years.kept()[0] == dead.before
    assert years.wrong() == []
    with pytest.raises(takeback.NoLongerKeptError):
        years.undo(turn=dead.id)
    years.rollback(dead.before)
    assert years.has_none("dead")
    dead.end("done")
    years.gc(days=10, turns=3)
    assert dead.before not in years.kept()


def test_a_long_conversation_keeps_no_more_than_the_horizon(years: Years) -> None:
    """Neither an open session nor a server that it left running keeps turns that are too old."""
    years.days(3)
    agent = years.project.session("agent")
    with agent.turn("serve") as turn:
        server = turn.step("Bash", {"command": "serve &"})
        server.detach()
    for number in range(40):
        years.wait(0.5)
        with agent.turn(f"{number}"):
            years.put("file", f"{number}\n" * 20)
        years.put("server.log", f"{number}\n")
    years.gc(days=5, turns=2)
    turns = years.project.log(all=True).turns
    assert [turn.kept for turn in turns] == [True] * 10 + [False] * 34
    assert years.wrong() == []
    server.end()
    with agent.turn("last"):
        years.put("file", "last")
    years.undo()
    years.undo()
    assert years.text("file") == "38\n" * 20
    assert years.wrong() == []
    with pytest.raises(takeback.NoLongerKeptError):
        years.project.undo(whole_session=agent.id)


def test_no_turn_is_cut_in_half(years: Years) -> None:
    """A turn that ended within the time is kept, and all that it needs, also if it began before."""
    years.days(5)
    other = years.project.session("other", id="long")
    long = other.turn("over ten days")
    years.put("long", "1")
    years.days(10)
    years.put("long", "2")
    long.end("done")
    other.end()
    years.days(5)
    years.wait(0.5)
    years.gc(days=8, turns=2)
    assert years.kept_turns() == list(range(5, 20))
    years.undo(turn=long.id)
    assert years.has_none("long")
    assert years.wrong() == []


def test_a_clock_that_was_wrong_costs_nothing(years: Years) -> None:
    """States that seem very old or still to come take none of the others with them."""
    years.days(10)
    years.wait(-4000)
    years.days(1)
    years.wait(+4000)
    years.days(10)
    years.gc(days=15, turns=2)
    assert years.kept_turns() == list(range(6, 21))
    assert years.wrong() == []


@pytest.mark.parametrize(
    ("given", "days"),
    [(30, 30), ("45", 45), ("2w", 14), ("6m", 180), ("1y", 365), ("12h", 0.5), ("forever", None),
     (0, None), ("1.5d", 1.5)],
)  # fmt: skip
def test_ages_are_understood(given: object, days: float | None) -> None:
    """An age is a number of days, or has a unit."""
    assert retention.age(given) == days


@pytest.mark.parametrize(
    ("given", "size"),
    [("5 GB", 5 * 10**9), ("800M", 800 * 10**6), (12, 12), ("1.5 kB", 1500), ("0", 0), ("7b", 7),
     ("5 GiB", 5 << 30), ("5Gi", 5 << 30), ("1.5 kib", 1536)],
)  # fmt: skip
def test_sizes_are_understood(given: object, size: int) -> None:
    """A size is a number of bytes, or has a unit."""
    assert retention.size(given) == size


@pytest.mark.parametrize("given", ["", "x", "-3", "5 parsecs", "nan", "inf", True, None, "d", []])
def test_what_is_no_age_and_no_size_is_refused(given: object) -> None:
    """What cannot be understood is never taken for something."""
    for understand in (retention.age, retention.size):
        with pytest.raises(UsageError):
            understand(given)


def test_settings_are_obeyed(years: Years) -> None:
    """The table `retention` decides, and at least 20 turns stay whatever it says."""
    years.days(26)
    (years.home / "config.toml").write_text("[retention]\ndays = 2\nturns = 1\n")
    years.wait(50)
    years.project.gc()
    assert years.kept_turns() == list(range(6, 26))
    (years.home / "config.toml").write_text('[retention]\nturns = "many"\n')
    with pytest.raises(UsageError, match="turns"):
        years.project.gc()


# -- pins --------------------------------------------------------------------------------------


def test_a_kept_state_stays_until_it_is_released(years: Years) -> None:
    """It can be extracted, compared and gone back to; released, it goes with the next run."""
    years.days(20)
    pinned = years.turns[4]
    state = years.project.turn(pinned.id).after
    assert years.project.keep(pinned.id, "the good one").checkpoint == state
    for _ in range(3):
        years.gc(days=1, turns=3)
        assert years.kept()[0] == state
        assert years.wrong() == []
        years.days(3)
    assert [(each.checkpoint, each.label) for each in years.project.kept()] == [
        (state, "the good one")
    ]
    years.rollback(state)
    assert years.picture() == years.states[state]
    years.undo()
    with pytest.raises(NoLongerKeptError):
        years.undo(turn=pinned.id)
    years.project.release(state)
    years.gc(days=1, turns=3)
    assert state not in years.kept()
    assert years.wrong() == []


def test_neighbours_that_are_kept_do_not_need_each_other(years: Years) -> None:
    """Any choice of states can be kept and released, in any order."""
    years.days(24)
    states = [years.project.turn(turn.id).after for turn in years.turns]
    for place in (2, 3, 4, 8, 10):
        years.project.keep(states[place])
    years.gc(days=1, turns=3)
    assert [states.index(id) for id in years.kept() if id in states][:5] == [2, 3, 4, 8, 10]
    assert years.wrong() == []
    for place in (3, 10):
        years.project.release(states[place])
    years.gc(days=1, turns=3)
    assert [states.index(id) for id in years.kept() if id in states][:3] == [2, 4, 8]
    assert years.wrong() == []
    assert years.complaints() == []
    years.gc(days=1, turns=3, full=True)
    assert years.git("fsck", "--strict", "--full", "--no-dangling") == ""


def test_only_what_is_there_can_be_kept(years: Years) -> None:
    """What is gone cannot be kept any more, and what nobody keeps cannot be released."""
    years.days(10)
    years.gc(days=1, turns=3)
    with pytest.raises(NoLongerKeptError, match="no longer kept"):
        years.project.keep(years.turns[0].id)
    with pytest.raises(UnknownReferenceError, match="not kept"):
        years.project.release(years.turns[9].id)


# -- taking back -------------------------------------------------------------------------------


def test_undo_and_redo_are_exact_over_all_that_is_kept(years: Years) -> None:
    """Back to where the files begin, step by step, and forward again, with gc in between."""
    years.days(30)
    years.gc(days=15, turns=3)
    after = [years.states[years.project.turn(turn.id).after] for turn in years.turns]
    for place in range(29, 14, -1):
        assert years.picture() == after[place]
        years.undo()
        if place % 4 == 0:
            years.gc(days=15, turns=3, full=place % 8 == 0)
    with pytest.raises(NoLongerKeptError, match='"turn 14"'):
        years.undo()
    for place in range(15, 30):
        years.redo()
        assert years.picture() == after[place]
        if place % 4 == 0:
            years.gc(days=15, turns=3)
    with pytest.raises(NothingToTakeBackError):
        years.redo()
    assert years.wrong() == []


def test_an_undo_of_something_old_can_be_put_back(years: Years) -> None:
    """What was taken back within the time can be put back, though the turn itself is gone."""
    years.days(10)
    years.undo(turn=years.turns[0].id)
    years.days(8)
    years.put("yours", "mine")
    years.gc(days=4, turns=2)
    assert 0 not in years.kept_turns()
    with pytest.raises(NoLongerKeptError):
        years.redo(turn=years.turns[0].id)
    assert years.wrong() == []


def test_an_undo_within_the_time_is_put_back(years: Years) -> None:
    """The redo of a young undo needs nothing of the old turn."""
    years.put("alone", "as it was")
    with years.working("old"):
        years.put("alone", "changed by the old turn")
    years.days(12)
    years.undo(turn=years.turns[0].id)
    assert years.text("alone") == "as it was"
    years.gc(days=2, turns=2)
    assert 0 not in years.kept_turns()
    years.redo(turn=years.turns[0].id)
    assert years.text("alone") == "changed by the old turn"


def test_a_plan_whose_files_went_meanwhile_is_refused(years: Years) -> None:
    """Between a plan and its application files may go; then nothing is changed."""
    years.days(10)
    plans = [
        years.project.plan_undo(years.turns[0].id),
        years.project.plan_rollback(years.turns[0].id),
    ]
    was = years.picture()
    years.gc(days=1, turns=3)
    for plan in plans:
        with pytest.raises(NoLongerKeptError):
            years.project.apply(plan, yes=True)
    assert years.picture() == was


def test_a_turn_goes_on_after_its_first_files_went(years: Years) -> None:
    """An agent that resumes a very old turn is not stopped, and the log tells both parts."""
    with years.working("old", session="x"):
        years.put("first", "1\n")
    years.days(30)
    years.gc(days=1, turns=3)
    with years.project.session("agent", id="x") as agent:
        turn = agent.resume()
        assert turn is not None
        years.put("second", "2\n")
        turn.end("done")
    told = years.project.turn(years.turns[0].id)
    assert not told.kept
    assert {change.raw_path: change.verb for change in told.changes} == {
        b"first": "create",
        b"second": "create",
    }


# -- what is no longer kept --------------------------------------------------------------------


ASK: dict[str, Callable[[Years, str], object]] = {
    "extract": lambda years, ref: years.extracted(ref),
    "rollback": lambda years, ref: years.rollback(ref),
    "diff": lambda years, ref: years.project.compare(ref),
    "diff to": lambda years, ref: years.project.compare("@", ref),
    "show": lambda years, ref: b"".join(years.project.read(ref, b"readme")),
    "undo": lambda years, ref: years.undo(turn=ref),
    "plan": lambda years, ref: years.project.plan_undo(ref),
    "keep": lambda years, ref: years.project.keep(ref),
}


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
def test_whoever_asks_for_files_that_went_is_told(ask: object, years: Years) -> None:
    """Since when and why they are gone, with a hint, and nothing is changed."""
    years.days(12)
    years.gc(days=2, turns=3)
    was = years.picture()
    with pytest.raises(NoLongerKeptError, match=r"since .* older than 2 days") as problem:
        ask(years, years.turns[1].id)  # type: ignore[operator]
    assert "project.log()" in problem.value.hint
    assert problem.value.exit_code == 1
    assert years.picture() == was


def test_a_time_before_the_first_files_says_so(years: Years) -> None:
    """References by time find the state, and then that it is gone."""
    years.days(12)
    years.gc(days=2, turns=3)
    with pytest.raises(NoLongerKeptError):
        years.extracted("9d")
    assert years.extracted("1h")


def test_the_log_still_tells_everything(years: Years) -> None:
    """Turns, their changes with counted lines, and checkpoints are as they were but for `kept`."""
    years.days(12)
    before = {turn.id: turn for turn in years.project.log(all=True).turns}
    years.gc(days=2, turns=3)
    for turn in years.project.log(all=True).turns:
        was = before[turn.id]
        assert [(c.path, c.verb, c.added, c.removed) for c in turn.changes] == [
            (c.path, c.verb, c.added, c.removed) for c in was.changes
        ]
    old, young = (years.project.recorded(years.turns[place].id) for place in (0, 11))
    assert isinstance(old, takeback.RecordedTurn)
    assert isinstance(young, takeback.RecordedTurn)
    assert (old.kept, young.kept) == (False, True)
    state = years.project.recorded(old.after)
    assert isinstance(state, takeback.RecordedCheckpoint)
    assert not state.kept
    assert state.changes


def says(years: Years, *words: str) -> tuple[int, str]:
    """The exit code of a command, and all that it prints."""
    done = program.text(words, years.tree, {**os.environ, "TAKEBACK_HOME": str(years.home)})
    return done.returncode, done.stdout + done.stderr


def test_commands_say_that_files_are_no_longer_kept(years: Years) -> None:
    """`log`, `show` and `verify` say so; so does what asks for files, with exit code 1."""
    years.days(12)
    years.gc(days=2, turns=3)
    years.close()

    old = years.turns[0].id
    assert "files no longer kept" in says(years, "log", "--all")[1]
    assert "no longer kept" in says(years, "show", old)[1]
    code, said = says(years, "extract", old, str(years.tree.parent / "x"))
    assert code == 1
    assert "no longer kept (since " in said
    code, said = says(years, "verify")
    assert code == 0
    assert "9 older checkpoints are no longer kept" in said
    code, said = says(years, "gc", "--dry-run")
    assert code == 0
    assert said.startswith("Nothing would be deleted")


def test_keep_and_gc_say_what_they_do(years: Years) -> None:
    """Each says what happened, and how to turn it round where that is possible."""
    years.days(25, each=0)
    (years.home / "config.toml").write_text("[retention]\nturns = 20\n")
    (state, *_) = [years.project.turn(turn.id).after for turn in years.turns]
    years.close()
    code, said = says(years, "keep", state, "-m", "the first")
    assert (code, said.splitlines()[-1]) == (
        0,
        f"`takeback keep --release {state[:8]}` releases it",
    )
    assert '"the first"' in says(years, "keep")[1]
    code, said = says(years, "gc", "--max-age", "0.000001d")
    assert code == 0
    assert "Deleted the files of 4 checkpoints and 5 turns  (as you asked)" in said
    assert f"Pinned 1 state: {state[:8]}" in said
    assert "Kept   20 turns, 22 checkpoints" in said
    assert "keeps it again" in says(years, "keep", "--release", state)[1]
    assert says(years, "keep", "--release", state)[0] == 2
    assert says(years, "keep", "--release")[0] == 2
    assert "You keep no states" in says(years, "keep")[1]
    assert says(years, "gc", "--max-age", "soon")[0] == 2


def test_wrong_settings_do_not_hide_where_one_is(years: Years) -> None:
    """Bare `takeback` answers and says what is wrong; an agent notices nothing."""
    years.days(1)
    (years.home / "config.toml").write_text('[retention]\ndays = "soon"\n')
    code, said = says(years)
    assert code == 0
    assert "`soon` is not an age" in said
    years.days(1)


# -- packs and the view ------------------------------------------------------------------------


def test_packs_become_few_and_small(years: Years) -> None:
    """Hundreds of small packs become a few, and what they hold takes less room."""
    years.days(30)
    done = years.gc(days=None)
    assert done.packs_before > 30
    assert done.packs_after <= 3
    assert done.after < done.before / 2
    assert years.wrong() == []


def test_packs_are_copied_a_few_times_only(years: Years) -> None:
    """What was put together lately is left alone by the next run, until much came."""
    years.days(60)
    years.gc(days=None, full=True)
    (big,) = {
        name for name in os.listdir(years.project.workspace.store.packs_dir) if b".pack" in name
    }
    years.days(1)
    years.gc(days=None)
    assert big in os.listdir(years.project.workspace.store.packs_dir)


def test_gc_again_has_nothing_to_do(years: Years) -> None:
    """A run that follows at once changes no pack and appends no event."""
    years.days(20)
    years.project.keep(years.turns[3].id)
    years.gc(days=5)
    years.gc(days=5)
    last = years.project.workspace.ledger.last_event()
    before = sorted(os.listdir(years.project.workspace.store.packs_dir))
    years.gc(days=5)
    assert sorted(os.listdir(years.project.workspace.store.packs_dir)) == before
    assert years.project.workspace.ledger.last_event() == last


def test_git_finds_nothing_wrong_with_the_view(years: Years) -> None:
    """After each run `fsck --strict`, `log` and `gc --auto` are content; pins have refs."""
    for _ in range(4):
        years.days(8)
        years.project.keep("@")
        years.gc(days=6, turns=3)
        assert years.complaints() == []
        assert years.git("gc", "--auto") == ""
        kept = [line for line in years.git("for-each-ref").splitlines() if "/kept/" in line]
        assert len(kept) == len(years.project.kept())
        assert len(years.git("log", "--oneline").splitlines()) <= len(years.kept())
        assert years.git("rev-list", "--all", "--objects").count("\n") > 20


def test_the_view_is_mended_after_git_packed_its_refs(years: Years) -> None:
    """Refs that git put together do not bring released states back as broken ones."""
    years.days(10)
    years.project.keep(years.turns[2].id)
    years.gc(days=1, turns=3)
    years.git("pack-refs", "--all", "--no-prune")
    years.project.release(years.turns[2].id)
    years.days(4)
    years.gc(days=1, turns=3, full=True)
    assert years.git("fsck", "--strict", "--full", "--no-dangling") == ""
    assert years.wrong() == []


def test_the_tables_follow_from_the_events(years: Years) -> None:
    """Made anew from the log, the tables say the same about what is kept and where it is."""
    years.days(20)
    years.project.keep(years.turns[3].id)
    years.gc(days=5)
    assert years.project.upkeep.examine()[0] == ()
    kept = years.kept()
    years.project.rebuild()
    assert years.kept() == kept
    assert years.wrong() == []


# -- size --------------------------------------------------------------------------------------


def noise(years: Years, turns: int) -> None:
    """Turns of 20 kB each that cannot be compressed."""
    for _ in range(turns):
        years.wait()
        with years.working():
            years.put("noise", os.urandom(20_000))


def test_to_size_lets_the_oldest_go(years: Years) -> None:
    """It fits afterwards, the newest turns are there, and it is said why."""
    noise(years, 40)
    done = years.gc(days=None, turns=3, to_size=600_000)
    assert done.why == "size"
    assert 400_000 < done.after <= 600_000
    assert 25 <= len(years.kept_turns()) <= 30
    with pytest.raises(NoLongerKeptError, match="to make the history smaller"):
        years.undo(turn=years.turns[0].id)
    assert years.wrong() == []


def test_to_size_makes_room_also_in_large_packs(years: Years) -> None:
    """Garbage that is less than a third of its pack, and would stay else, goes."""
    noise(years, 30)
    years.gc(days=None, full=True)
    done = years.gc(days=None, turns=3, to_size=500_000)
    assert done.after <= 500_000 < done.before
    assert len(years.kept_turns()) >= 20
    assert years.wrong() == []


def test_the_newest_turns_stay_whatever_the_size(years: Years) -> None:
    """Twenty turns are kept even if they do not fit, and pins are."""
    noise(years, 30)
    years.project.keep(years.turns[1].id)
    years.gc(days=None, turns=3, to_size=1)
    assert years.kept_turns() == list(range(10, 30))
    assert years.project.turn(years.turns[1].id).after == years.kept()[0]
    assert years.wrong() == []


def test_a_large_history_warns_first(years: Years) -> None:
    """Above the cap it is said, and nothing goes because of it unless the settings say so."""
    noise(years, 30)
    (years.home / "config.toml").write_text('[retention]\nsize_cap = "500 kB"\n')
    done = years.project.gc()
    assert done.checkpoints == 0
    assert "size_cap" in done.warnings[0]
    (years.home / "config.toml").write_text(
        '[retention]\nsize_cap = "500 kB"\nsize_cap_trims = true\n'
    )
    assert years.project.gc().why == "size"
    assert len(years.kept_turns()) < 30
    assert years.wrong() == []


# -- besides trees -----------------------------------------------------------------------------


def test_files_outside_are_kept_with_their_turns(years: Years) -> None:
    """A file outside comes back by the undo of a kept turn, also what it held long ago."""
    file = years.tree.parent / "outside.txt"

    def edit(text: str) -> str:
        with (
            years.project.session("agent", id=text) as agent,
            agent.turn(text, whole=False) as turn,
            turn.step("Write", {"file_path": str(file)}),
        ):
            file.write_text(text)
        return turn.id

    edit("first, and again later")
    edit("second")
    years.days(12)
    years.gc(days=3, turns=2, full=True)
    turns = [edit("third"), edit("first, and again later"), edit("fourth")]
    years.gc(days=3, turns=2, full=True)
    assert years.wrong() == []
    for turn, text in zip(
        reversed(turns), ("first, and again later", "third", "second"), strict=True
    ):
        years.project.undo(turn, yes=True)
        assert file.read_text() == text


def test_rescued_saves_are_kept_as_long_as_their_restore(years: Years) -> None:
    """What somebody saved during a restore can be read until it is as old as what goes."""
    years.days(10)
    report = years.undo()
    data = b"typed while the restore ran\n"
    store = years.project.workspace.store
    with years.project.workspace.held():
        writer = store.pack_writer()
        oid = writer.add(BLOB, data)
        save = ["saved", 0o100644, len(data), hashlib.sha256(data).hexdigest(), oid.hex()]
        packs = pack_facts(writer.finish())
        said = {"restore": report.id, "saves": [save], "packs": packs}
        store.ledger.record(NewEvent(events.SAVES_RESCUED, said, time.time_ns()))  # type: ignore[arg-type]
    years.gc(days=1, turns=2, full=True)
    assert b"".join(years.project.rescued(report.id, b"saved")) == data
    years.days(12)
    years.gc(days=1, turns=2, full=True)
    with pytest.raises(NoLongerKeptError):
        years.project.rescued(report.id, b"saved")
    assert years.wrong() == []


# -- care --------------------------------------------------------------------------------------


def test_a_dry_run_changes_nothing(years: Years) -> None:
    """It tells what a run would do, and the store is as it was, byte for byte."""
    years.days(20)
    (years.home / "config.toml").write_text("[retention]\ndays = 2\n")
    years.wait(300)
    years.project.gc(dry_run=True)
    years.close()
    years.project.kept()
    before = {k: v for k, v in oracle.picture(years.home).items() if b"ledger" not in k}
    trial = years.project.gc(dry_run=True)
    after = {k: v for k, v in oracle.picture(years.home).items() if b"ledger" not in k}
    last = years.project.workspace.ledger.last_event()
    assert (
        oracle.differences(before, after, [b"projects/%s/lock" % years.project.id.encode()]) == []
    )
    done = years.project.gc()
    assert years.project.workspace.ledger.last_event() > last
    assert (trial.checkpoints, trial.turns, trial.kept, trial.turns_kept, trial.oldest) == (
        done.checkpoints, done.turns, done.kept, done.turns_kept, done.oldest,
    )  # fmt: skip


def test_a_damaged_store_is_left_as_it_is(years: Years) -> None:
    """Where nobody can tell what is needed, nothing is removed."""
    years.days(10)
    packs = Path(os.fsdecode(years.project.workspace.store.packs_dir))
    newest = max(packs.glob("*.pack"), key=lambda path: path.stat().st_mtime_ns)
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 0xFF
    newest.chmod(0o600)
    newest.write_bytes(data)
    years.close()
    there = sorted(path.name for path in packs.iterdir())
    with pytest.raises(DamagedStoreError):
        years.gc(days=1, turns=2)
    assert sorted(path.name for path in packs.iterdir()) == there


def test_only_one_at_a_time(years: Years) -> None:
    """Whoever puts packs in order is alone; captures go on meanwhile."""
    years.days(3)
    with takeback.open(years.tree, home=years.home) as other:
        with other.workspace.store.hold_gc():
            with pytest.raises(BusyError), years.project.workspace.store.hold_gc(patience=0):
                pass
            years.days(1)
        years.gc(days=None)
    assert years.wrong() == []


def test_litter_of_a_run_that_died_is_removed(years: Years) -> None:
    """Packs that nothing refers to and half-written ones go with the next run."""
    years.days(5)
    packs = Path(os.fsdecode(years.project.workspace.store.packs_dir))
    (packs / "tmp-1-1").write_bytes(b"half")
    (packs / f"pack-{'0' * 40}.pack").write_bytes(b"never committed")
    years.gc(days=None)
    assert not [name for name in os.listdir(packs) if name.startswith(("tmp-", "pack-000000"))]


def test_it_is_time_when_files_are_old(years: Years) -> None:
    """By itself it runs for what is old, and then not for a day."""
    rules = retention.Rules(days=5, turns=3)

    def is_due() -> bool:
        return retention.is_due(years.project.workspace.ledger, rules, time.time_ns())

    years.days(5)
    assert not is_due()
    years.days(10)
    assert is_due()
    years.gc(days=5, turns=3)
    assert not is_due()
    years.days(2, each=0.3)
    assert not is_due(), "a day has not passed"


def test_it_does_not_try_again_at_once(years: Years, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is time when packs are many; but after a run, whatever came of it, not at once."""
    begun: list[bytes] = []

    def start(_option: str, root: bytes, _verb: str, *, home: bytes) -> bool:
        del home
        begun.append(root)
        return True

    monkeypatch.setattr(programs, "start_ourselves", start)
    years.days(retention.MANY_PACKS + 1, each=0)
    assert years.project.schedule_gc()
    assert begun[-1] == years.project.workspace.root
    with years.project.workspace.store.hold_gc():
        pass
    assert not years.project.schedule_gc()
    years.wait(0.1)
    assert years.project.schedule_gc()
    (years.home / "config.toml").write_text("[gc]\nauto = false\n")
    assert not years.project.schedule_gc()


def test_it_runs_by_itself_behind_the_scenes(tree: Path, home: Path) -> None:
    """A command that ends a session leaves a process of its own, which keeps no pipe open."""
    program = (
        "import os, takeback\n"
        "project = takeback.open('.')\n"
        "with project.session('agent') as agent:\n"
        "    for number in range(60):\n"
        "        with agent.turn('x'):\n"
        "            open('file', 'w').write(str(number))\n"
        "print(len(project.workspace.ledger.packs()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        cwd=tree,
        env={**os.environ, "TAKEBACK_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    with takeback.open(tree, home=home) as project:
        end = time.monotonic() + 60
        while len(project.workspace.ledger.packs()) > 20 and time.monotonic() < end:
            pass
        assert len(project.workspace.ledger.packs()) <= 20
        assert project.verify().ok
