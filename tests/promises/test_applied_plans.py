"""A preview is a plan: any process applies it by its id, and it does what was shown or nothing."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import takeback
from cases import Work, paths_of
from faults.children import Child, Tell, in_child
from takeback.cli.text import action_text
from takeback.errors import DecisionNeededError, StalePlanError, UnknownReferenceError
from takeback.ledger import journal

Meddle = Callable[[Work], None]


@pytest.fixture
def edited(work: Work) -> Work:
    """A turn has changed a file, made a folder and removed one."""
    work.write(a="0\n", old__file="0\n", other__log="")
    work.checkpoint()
    with work.turn("change it"):
        work.write(a="1\n", new__file="1\n")
        work.remove("old")
    return work


def apply_elsewhere(work: Work, id: str, **options: bool) -> str:
    """Apply a plan in another process; the id of its restore, or the error."""

    def play(tell: Tell) -> None:
        with takeback.open(work.tree, home=work.home) as project:
            try:
                tell({"id": project.apply(id, yes=options.get("yes", False)).id})
            except takeback.TakebackError as problem:
                tell({"id": type(problem).__name__})

    work.close()
    return str(in_child(play).last("id"))


def appender(work: Work) -> "Child":
    """A process that appends to a log every two milliseconds until it is killed."""

    def play(tell: Tell) -> None:
        with (work.tree / "other/log").open("ab", buffering=0) as log:
            tell({"writes": True})
            while True:
                log.write(b"GET /\n")
                time.sleep(0.002)

    child = Child(play)
    assert child.hear() == {"writes": True}
    return child


def test_a_log_that_grows_elsewhere_stops_nobody(edited: Work) -> None:
    """A dev server writes between the preview and the undo: it is applied, and the log stays."""
    server = appender(edited)
    try:
        plan = edited.project.plan_undo()
        size = (edited.tree / "other/log").stat().st_size
        while (edited.tree / "other/log").stat().st_size == size:
            time.sleep(0.001)
        report = edited.project.apply(plan)
    finally:
        os.kill(server.pid, signal.SIGKILL)
        server.end()
    assert report.id
    assert report.plan.id == plan.id
    assert edited.text("a") == "0\n"
    assert edited.text("old/file") == "0\n"
    assert edited.has_none("new")
    assert (edited.tree / "other/log").stat().st_size > size


def change_file(work: Work) -> None:
    """A touched file is saved."""
    work.write(a="mine\n")


def change_mode(work: Work) -> None:
    """A touched file gets another mode."""
    (work.tree / "a").chmod(0o600)


def revert_file(work: Work) -> None:
    """A touched file is taken back by hand."""
    work.write(a="0\n")


def fill_folder(work: Work) -> None:
    """A folder that shall go gets a new file."""
    work.write(new__mine="mine\n")


def make_folder(work: Work) -> None:
    """A folder that shall come is made by hand."""
    (work.tree / "old").mkdir()


@pytest.mark.parametrize(
    ("meddle", "moved"),
    [
        (change_file, "a"),
        (change_mode, "a"),
        (revert_file, "a"),
        (fill_folder, "new"),
        (make_folder, "old"),
    ],
)
@pytest.mark.parametrize("verb", ["undo", "rollback"])
def test_what_is_touched_must_be_as_it_was_shown(
    edited: Work, meddle: Meddle, moved: str, verb: str
) -> None:
    """Else it is refused, the paths are named, and nothing is written; planned again it is done."""
    first = list(edited.project.checkpoints())[-1].id
    some = ["a", "new", "old"]

    def make() -> takeback.Plan:
        if verb == "undo":
            return edited.project.plan_undo(decide="take-back")
        return edited.project.plan_rollback(first, paths=some)

    plan = make()
    meddle(edited)
    edited.write(other__log="more\n")
    before = edited.picture()
    with pytest.raises(StalePlanError, match=f"^`{moved}") as caught:
        edited.project.apply(plan, yes=True)
    assert all(path.startswith(moved) for path in caught.value.paths)
    assert f"takeback {verb}" in action_text.hint(caught.value.actions)
    assert edited.picture() == before
    assert edited.project.apply(make(), yes=True).id
    assert edited.text("a") == "0\n"
    assert edited.text("other/log") == "more\n"


def test_a_whole_rollback_takes_back_what_changed_since(edited: Work) -> None:
    """It goes back, too, is in the safety checkpoint, and is named; what was shown is not."""
    first = list(edited.project.checkpoints())[-1].id
    plan = edited.project.plan_rollback(first)
    edited.write(a="mine\n", later="mine, too\n")
    report = edited.project.apply(plan)
    assert report.raw_since_preview == (b"a", b"later")
    assert edited.text("a") == "0\n"
    assert edited.has_none("later", "new")
    assert b"".join(edited.project.read(report.before, b"later")) == b"mine, too\n"
    assert b"".join(edited.project.read(report.before, b"a")) == b"mine\n"


def test_a_rollback_without_changes_since_names_nothing(edited: Work) -> None:
    """What the preview has shown went back as shown."""
    plan = edited.project.plan_rollback(list(edited.project.checkpoints())[-1].id)
    assert edited.project.apply(plan).since_preview == ()


@pytest.mark.parametrize("verb", ["undo", "redo", "rollback"])
def test_another_process_applies_a_plan(edited: Work, verb: str) -> None:
    """By its id alone, with what was decided; and what is newest by then does not matter."""
    first = list(edited.project.checkpoints())[-1].id
    if verb == "redo":
        edited.undo()
    plan = {
        "undo": edited.project.plan_undo,
        "redo": edited.project.plan_redo,
        "rollback": lambda: edited.project.plan_rollback(first, paths=["a"]),
    }[verb]()
    with edited.turn("something else"):
        edited.write(elsewhere="1\n")
    assert len(apply_elsewhere(edited, plan.id)) == 12
    assert edited.text("a") == ("1\n" if verb == "redo" else "0\n")
    assert edited.text("elsewhere") == "1\n"


def test_decisions_are_part_of_a_plan(work: Work) -> None:
    """What was decided path by path is applied elsewhere as it was shown."""
    work.write(a="0\n", b="0\n")
    with work.turn() as turn:
        work.write(a="1\n", b="1\n")
    work.write(a="mine\n", b="mine\n")
    decide = {b"a": "take-back", b"b": "keep-mine"}
    plan = work.project.plan_undo(turn, decide=decide)
    assert len(apply_elsewhere(work, plan.id, yes=True)) == 12
    assert (work.text("a"), work.text("b")) == ("0\n", "mine\n")


def test_several_turns_and_sessions_are_planned_again_by_id(work: Work) -> None:
    """What a session does after the preview is not taken back with it."""
    work.write(a="0\n", b="0\n", c="0\n")
    for name in ("a", "b"):
        with work.turn(name):
            work.put(name, "1\n")
    plan = work.project.plan_undo(whole_session=work.session.id)
    with work.turn("c"):
        work.write(c="1\n")
    assert paths_of(work.project.apply(plan).plan) == {"a": "write", "b": "write"}
    assert (work.text("a"), work.text("b"), work.text("c")) == ("0\n", "0\n", "1\n")
    again = work.project.plan_redo()
    work.write(c="2\n")
    work.project.apply(again.id)
    assert (work.text("a"), work.text("b"), work.text("c")) == ("1\n", "1\n", "2\n")


def test_a_rollback_is_undone_and_redone_by_plans(edited: Work) -> None:
    """A rollback has no turns; its plans are made again all the same."""
    edited.project.rollback(list(edited.project.checkpoints())[-1].id)
    for plan in (edited.project.plan_undo, edited.project.plan_redo):
        shown = plan()
        edited.write(other__log=str(plan))
        assert edited.project.apply(shown.id).id
    assert edited.text("a") == "0\n"


def test_a_plan_that_had_nothing_to_do_is_over(edited: Work) -> None:
    """Applied again it takes nothing back that came later."""
    shown = edited.project.plan_rollback("@")
    assert not edited.project.apply(shown).id
    edited.write(a="mine\n")
    assert not edited.project.apply(shown).id
    assert edited.text("a") == "mine\n"


def test_a_plan_is_applied_once(edited: Work) -> None:
    """The second call repeats the first's report and does nothing, also in another process."""
    told: list[takeback.Report] = []
    edited.project.on_restore(told.append)
    plan = edited.project.plan_undo()
    first = edited.project.apply(plan)
    edited.redo()
    assert edited.project.apply(plan.id).id == first.id
    assert len(told) == 2
    assert apply_elsewhere(edited, plan.id) == first.id
    assert edited.text("a") == "1\n"


def test_a_plan_of_what_is_undone_by_now_is_refused(edited: Work) -> None:
    """Somebody else was faster."""
    plan = edited.project.plan_undo()
    edited.undo()
    with pytest.raises(takeback.NothingToTakeBackError):
        edited.project.apply(plan)


def test_a_plan_handed_in_is_made_again(edited: Work) -> None:
    """What a value says that somebody changed, or that never was a plan here, is not done."""
    plan = edited.project.plan_undo()
    only_a = tuple(change for change in plan.changes if change.raw_path == b"a")
    edited.project.apply(plan.replace(changes=only_a))
    assert edited.has_none("new")
    with pytest.raises(UnknownReferenceError):
        edited.project.apply(plan.replace(id=""))


def test_an_expired_plan_is_refused(edited: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the command that plans again; the next plan deletes it."""
    monkeypatch.setattr(journal, "_MINUTE", 0)
    plan = edited.project.plan_undo()
    with pytest.raises(StalePlanError, match="minutes old") as caught:
        edited.project.apply(plan)
    again = f"takeback undo {plan.turn[:8]} --dry-run"
    assert again in action_text.hint(caught.value.actions)
    assert "project.plan_undo" in caught.value.hint
    edited.project.plan_undo()
    with pytest.raises(UnknownReferenceError, match=plan.id):
        edited.project.apply(plan)
    assert edited.text("a") == "1\n"


def test_gc_deletes_expired_plans(edited: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """And only those."""
    kept = edited.project.plan_undo()
    monkeypatch.setattr(journal, "_MINUTE", 0)
    gone = edited.project.plan_undo()
    edited.project.gc()
    assert edited.project.workspace.ledger.plans.find(gone.id) is None
    assert edited.project.workspace.ledger.plans.find(kept.id) is not None


def test_a_plan_of_another_project_is_unknown(edited: Work, tmp_path: Path) -> None:
    """Also if both have the same files."""
    plan = edited.project.plan_undo()
    other = tmp_path / "other"
    other.mkdir()
    with (
        takeback.open(other, home=edited.home) as project,
        pytest.raises(UnknownReferenceError, match="in this project"),
    ):
        project.apply(plan)
    assert edited.text("a") == "1\n"


def test_doubts_still_need_consent(work: Work) -> None:
    """Naming a plan decides no conflict."""
    work.write(a="0\n")
    with work.turn():
        work.write(a="1\n")
    work.write(a="mine\n")
    with pytest.raises(DecisionNeededError):
        work.project.apply(work.project.plan_undo(), yes=True)
    assert work.text("a") == "mine\n"


def test_a_forget_deletes_plans(edited: Work) -> None:
    """A plan may name the path that is to be forgotten."""
    plan = edited.project.plan_undo()
    edited.remove("new")
    edited.project.forget([b"new/file"], names=True)
    assert edited.project.workspace.ledger.plans.find(plan.id) is None
    ledger = Path(os.fsdecode(edited.project.workspace.ledger.path))
    assert b"new/file" not in ledger.read_bytes()
