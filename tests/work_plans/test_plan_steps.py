"""Plan steps: what fails is undone, what others did stays, what is done is not done twice."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import takeback
from cases import Work
from takeback import ConflictError, DecisionNeededError, RolledBack, UsageError


class Boom(Exception):
    """What a step of these tests fails with."""


@contextmanager
def raising(*kinds: type[BaseException]) -> "Iterator[pytest.ExceptionInfo[BaseException]]":
    """A block that raises; in it a step may do several things first."""
    with pytest.raises(kinds) as caught:
        yield caught


def _states(plan: takeback.WorkPlan) -> list[tuple[str, str]]:
    return [(step.label, step.status) for step in plan.steps]


# -- a step that fails -------------------------------------------------------------------------


def test_a_step_that_fails_is_undone(work: Work) -> None:
    """Its files are as before it, the steps before it stay, and the exception goes on."""
    with work.session.plan("migrate") as plan:
        with plan.step("one"):
            work.write(a_txt="one\n")
        before = work.picture()
        with raising(Boom) as caught, plan.step("two") as step:
            work.write(a_txt="two\n", new__b_txt="b\n")
            raise Boom("no such column\nand more")
        assert work.picture() == before
        assert caught.value.__notes__ == ["Takeback undid the step `two`: 3 paths"]
        assert step.error is caught.value
        assert step.report is not None
        assert [change.path for change in step.report.plan.changes] == ["a.txt", "new", "new/b.txt"]
        assert _states(plan) == [("one", "done"), ("two", "undone")]
    assert plan.recorded.status == "done"


def test_the_lesson_is_handed_back(work: Work) -> None:
    """What failed, in the program's words, and what was taken back; the user accepts it."""
    with work.session.plan("migrate") as plan:
        with plan.step("one", raises=False) as step:
            work.write(a_txt="a\n")
            raise Boom("no such column\nand more")
        assert step.lesson is not None
        assert (step.lesson.text, step.lesson.paths) == ("Boom: no such column", ("a.txt",))
        assert step.lesson.status == "waiting"
        with plan.step("one") as again:
            assert again.lesson == step.lesson
            work.write(a_txt="a\n")
        with plan.step("nothing", raises=False) as third:
            raise Boom
        assert third.lesson is not None
        assert [lesson.text for lesson in plan.lessons] == ["Boom: no such column", "Boom"]


def test_others_changes_stay(work: Work) -> None:
    """What you changed meanwhile, in other files and in the same one, is not the step's."""
    work.write(shared_txt="".join(f"line {n}\n" for n in range(30)))
    with work.session.plan("migrate") as plan, raising(Boom), plan.step("one") as step:
        with step.step("Write", {"file_path": "shared.txt"}):
            work.write(shared_txt=work.text("shared.txt").replace("line 2\n", "agent\n"))
        work.write(mine_txt="mine\n")
        work.write(shared_txt=work.text("shared.txt").replace("line 28\n", "mine\n"))
        raise Boom
    assert work.text("mine.txt") == "mine\n"
    lines = work.text("shared.txt").splitlines()
    assert (lines[2], lines[28]) == ("line 2", "mine")


def test_a_conflict_raises_and_nothing_is_lost(work: Work) -> None:
    """Where you changed the same lines, the step is not undone; both errors are told."""
    work.write(a_txt="old\n", b_txt="old\n")
    with work.session.plan("migrate") as plan:
        with raising(ConflictError) as caught, plan.step("one") as step:
            with step.step("Write", {"file_path": "a.txt"}):
                work.write(a_txt="agent\n")
            with step.step("Write", {"file_path": "b.txt"}):
                work.write(b_txt="agent\n")
            work.write(a_txt="mine\n")
            raise Boom("it broke")
        assert isinstance(caught.value.__cause__, Boom)
        assert isinstance(caught.value, ConflictError)
        assert [path for path, _ in caught.value.conflicts] == ["a.txt"]
        assert (work.text("a.txt"), work.text("b.txt")) == ("mine\n", "agent\n")
        assert _states(plan) == [("one", "failed")]


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), SystemExit(3)])
def test_interrupted_is_failed(work: Work, problem: BaseException) -> None:
    """Whatever leaves the block undoes the step, and `raises=False` does not hide this."""
    plan = work.session.plan("migrate")
    with raising(type(problem)), plan.step("one", raises=False):
        work.write(a_txt="a\n")
        raise problem
    assert work.has_none("a.txt")


def test_a_step_may_keep_what_it_did(work: Work) -> None:
    """`on_failure="keep"` undoes nothing, and still hands back a lesson."""
    with work.session.plan("migrate") as plan:
        with plan.step("one", on_failure="keep", raises=False) as step:
            work.write(a_txt="a\n")
            raise Boom("broken")
        assert work.has("a.txt")
        assert step.lesson is not None
        assert _states(plan) == [("one", "failed")]
        with raising(UsageError):
            plan.step("two", on_failure="explode")


# -- what is done is not done twice ------------------------------------------------------------


def test_a_key_is_done_once(work: Work) -> None:
    """A step that is done is told so, with its result; one without a key runs each time."""
    with work.session.plan("migrate", id="v2") as plan:
        with plan.step("one", key="1") as step:
            assert not step.is_done
            step.result = {"rows": [1, 2]}
        assert step.is_done
    with work.session.plan("migrate", id="v2") as plan:
        with plan.step("one", key="1") as step:
            assert (step.is_done, step.result) == (True, {"rows": [1, 2]})
            with raising(UsageError):
                step.step("Write", {"file_path": "a"})
        for _ in range(2):
            with plan.step("no key") as step:
                assert not step.is_done
    assert [step.key for step in plan.steps] == ["1", "", ""]


def test_what_you_undid_is_not_done(work: Work) -> None:
    """An undo by whomever counts; a redo makes it done again."""
    with work.session.plan("migrate") as plan:
        with plan.step("one", key="1"):
            work.write(a_txt="a\n")
        work.project.undo()
        assert plan.find_done("1") is None
        work.project.redo()
        assert plan.find_done("1") is not None


def test_a_result_is_json(work: Work) -> None:
    """What cannot be kept is refused, where it is given."""
    with work.session.plan("migrate") as plan, plan.step("one") as step:
        with raising(UsageError):
            step.result = {"a": object()}  # type: ignore[dict-item]
        step.result = {"a": (1, 2)}
        assert step.result == {"a": [1, 2]}


# -- planning anew -----------------------------------------------------------------------------


def test_back_to_a_step_undoes_those_after_it(work: Work) -> None:
    """All of them at once; the step stays, and the keys after it can be done again."""
    with work.session.plan("migrate") as plan:
        for name in ("one", "two", "three", "four"):
            with plan.step(name, key=name):
                if name != "three":
                    work.put(name, f"{name}\n")
        report = plan.back_to("one", because="the plan was wrong")
        assert report is not None
        assert sorted(change.path for change in report.plan.changes) == ["four", "two"]
        assert work.has("one")
        assert work.has_none("two", "four")
        assert [step.key for step in plan.steps if step.is_done] == ["one"]
        assert plan.back_to("one") is None
        assert [each.text for each in work.project.lessons.list()] == ["the plan was wrong"]
        with raising(takeback.UnknownReferenceError):
            plan.back_to("two")


def test_compatible_steps_stay(work: Work) -> None:
    """A step in the middle is taken back with those that depend on it, and without the others."""
    with work.session.plan("migrate") as plan:
        with plan.step("base", key="base"):
            work.write(base_py="def base(): ...\n")
        with plan.step("apart", key="apart"):
            work.write(apart_py="x = 1\n")
        assert plan.dependents("base") == ()
        with plan.step("above", key="above") as above:
            work.write(base_py="def base(): return 1\n")
        assert [step.key for step in plan.dependents("base")] == ["above"]
        plan.take_back("base")
        assert work.has_none("base.py")
        assert work.has("apart.py")
        assert [step.key for step in plan.steps if step.is_done] == ["apart"]
        assert above.id not in {step.id for step in plan.steps if step.is_done}


# -- others at work ----------------------------------------------------------------------------


def _elsewhere(work: Work, code: str) -> subprocess.CompletedProcess[str]:
    """Run something in another process, with the project open."""
    opened = f"import takeback\nproject = takeback.open({str(work.tree)!r})\n"
    words = [sys.executable, "-c", opened + textwrap.dedent(code)]
    return subprocess.run(words, check=True, capture_output=True, text=True)


def test_a_rollback_by_others_is_heard(work: Work) -> None:
    """In the middle of a step, and between two steps, once."""
    with work.session.plan("migrate") as plan:
        with plan.step("one", key="1"):
            work.write(a_txt="a\n")
        _elsewhere(work, "project.undo(because='wrong way')")
        with raising(RolledBack) as caught, plan.step("two"):
            pass
        told = caught.value
        assert isinstance(told, RolledBack)
        assert (told.verb, told.because, told.paths) == ("undo", "wrong way", ("a.txt",))
        with plan.step("one", key="1") as step:
            assert not step.is_done
            work.write(a_txt="a\n")
        with raising(RolledBack), plan.step("three") as step:
            with step.step("Write", {"file_path": "b.txt"}):
                work.write(b_txt="b\n")
            _elsewhere(work, "project.undo(because='not this', yes=True)")
            with step.step("Write", {"file_path": "c.txt"}):
                pytest.fail("begun")
        with raising(RolledBack), plan.step("four") as step:
            with step.step("Write", {"file_path": "b.txt"}):
                work.write(b_txt="b\n")
            _elsewhere(work, "project.undo(because='nor this', yes=True)")
        assert [label for label, status in _states(plan) if status == "done"] == ["one"]


def test_a_paused_session_begins_no_step(work: Work) -> None:
    """Until it is resumed; a step that runs may end."""
    recorder = work.project.recorder()
    with work.session.plan("migrate") as plan:
        with plan.step("one") as step:
            recorder.pause()
        assert step.is_done
        with raising(takeback.PausedError), plan.step("two"):
            pytest.fail("begun")
        recorder.release()
        with plan.step("two"):
            pass


def test_one_step_at_a_time(work: Work) -> None:
    """Steps of a plan do not lie inside each other, and the same plan is not opened twice."""
    with work.session.plan("migrate", id="v2") as plan, plan.step("one"):
        with raising(UsageError), plan.step("two"):
            pytest.fail("begun")
        with raising(UsageError):
            work.session.plan("migrate", id="v2")
        with raising(UsageError):
            plan.back_to("one")
    with work.project.session("another") as other, raising(UsageError):
        other.plan("migrate", id="v2")


# -- a program that died -----------------------------------------------------------------------

DYING = """
    import os
    with project.session("agent", id=OWN) as session:
        plan = session.plan("migrate", id="v2")
        with plan.step("one", key="1") as step:
            step.result = "kept"
            open(project.root + "/a.txt", "w").write("a")
        with plan.step("two", key="2") as step:
            for name in ("b.txt", "a.txt"):
                with step.step("Write", {"file_path": name}):
                    open(project.root + "/" + name, "w").write("two")
            os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("own_id", ["S", ""])
def test_a_step_that_was_left_half_done_is_undone(work: Work, own_id: str) -> None:
    """When the program opens its plan again; then the step runs anew, and the done one does not."""
    with raising(subprocess.CalledProcessError):
        _elsewhere(work, f"OWN = {own_id!r}\n{textwrap.dedent(DYING)}")
    work.write(mine_txt="mine")
    assert work.text("a.txt") == "two"
    with work.project.session("agent", id=own_id) as session:
        plan = session.plan("migrate", id="v2")
        assert (work.text("a.txt"), work.has("b.txt"), work.text("mine.txt")) == (
            "a",
            False,
            "mine",
        )
        assert _states(plan) == [("one", "done"), ("two", "undone")]
        with plan.step("one", key="1") as step:
            assert (step.is_done, step.result) == (True, "kept")
        with plan.step("two", key="2") as step:
            assert not step.is_done
            assert step.lesson is not None
            assert step.lesson.text == "the program ended in the middle of this step"
        plan.end()
        assert not session.plan("migrate", id="v2").lessons[1:]


def test_a_plan_of_a_living_program_is_not_touched(work: Work) -> None:
    """Another process that opens the plan is told who is at work."""
    with work.session.plan("migrate", id="v2") as plan, plan.step("one"):
        work.write(a_txt="a")
        code = """
            try:
                project.session("agent").plan("migrate", id="v2")
            except takeback.BusyError as problem:
                print(problem)
        """
        assert "in the middle of a step" in _elsewhere(work, code).stdout
    assert work.has("a.txt")


@pytest.mark.parametrize("own_id", ["S", ""])
@pytest.mark.parametrize("inner", ['step.step("Bash", {"command": "make"})', ""])
def test_what_may_be_yours_asks(work: Work, own_id: str, inner: str) -> None:
    """Nobody knows when the program died: what changed since is not taken back without consent."""
    code = f"""
        import os
        plan = project.session("agent", id={own_id!r}).plan("migrate", id="v2")
        with plan.step("one") as step:
            {inner}
            open(project.root + "/a.txt", "w").write("a")
            os.kill(os.getpid(), 9)
    """
    with raising(subprocess.CalledProcessError):
        _elsewhere(work, code)
    work.write(mine_txt="mine")
    with work.project.session("agent", id=own_id) as session:
        for _ in range(2):
            with raising(DecisionNeededError) as caught:
                session.plan("migrate", id="v2")
            assert isinstance(caught.value, DecisionNeededError)
            (reason,) = caught.value.reasons
            assert dict(reason.facts)["paths"] == ("a.txt", "mine.txt")
        assert work.has("a.txt", "mine.txt")
        plan = session.plan("migrate", id="v2", yes=True)
        assert work.has_none("a.txt")
        assert _states(plan) == [("one", "undone")]


# -- the log -----------------------------------------------------------------------------------


def test_the_log_tells_plans(work: Work) -> None:
    """A turn that is a step names its plan; the tables follow from the events."""
    with work.session.plan("migrate", id="v2") as plan:
        with plan.step("one", key="1", databases=True):
            work.write(a_txt="a\n")
        with plan.step("two", raises=False):
            raise Boom
    with work.turn("beside"):
        work.write(b_txt="b\n")
    turns = {turn.label: turn.plan for turn in work.project.log(all=True).turns}
    assert turns["beside"] is None
    assert turns["one"] is not None
    assert turns["one"] == turns["two"] == work.project.turn(plan.steps[0].id).plan
    assert [(s.label, s.key, s.databases) for s in turns["one"].steps] == [
        ("one", "1", True),
        ("two", "", False),
    ]
    assert work.project.verify().problems == ()
    work.project.rebuild()
    assert [turn.plan for turn in work.project.log().turns][1] == turns["two"]


def test_forget_takes_the_words(work: Work, tmp_path: Path) -> None:
    """Labels, keys and results that hold a text are gone from the history."""
    with work.session.plan("secretword plan", id="secretword") as plan:
        with plan.step("step secretword", key="secretword") as step:
            step.result = {"secretword": ["a secretword"]}
        with plan.step("another", key="k") as step:
            step.result = "result of this turn"
    work.project.forget(text="secretword")
    work.project.forget(turn=step.id)
    work.close()
    found = [
        path.name
        for path in (tmp_path / "home").rglob("*")
        if path.is_file() and (b"secretword" in path.read_bytes())
    ]
    assert found == []
    assert work.project.verify().problems == ()
    said = str([turn.plan for turn in work.project.log(all=True).turns])
    assert "secretword" not in said
    assert "result of this turn" not in said


def test_what_is_raised_goes_on_whatever_it_says(work: Work) -> None:
    """Text that cannot be stored hides no exception, and the step is undone."""
    with raising(ValueError), work.session.plan("P") as plan, plan.step("a"):
        work.write(a_txt="1\n")
        raise ValueError("\ud800")
    assert work.has_none("a.txt")
    assert plan.lessons


def test_a_step_that_was_undone_while_it_ran_is_not_done(work: Work) -> None:
    """Else a retry by its key would skip what is not there."""
    plan = work.session.plan("P", id="p")
    with raising(RolledBack) as problem, plan, plan.step("a", key="k"):
        work.write(a_txt="1\n")
        work.checkpoint()
        work.undo()
        work.write(b_txt="1\n")
    assert "was undone while it ran" in str(problem.value)
    assert [step.status for step in plan.steps] == ["undone"]
    assert work.has_none("a.txt", "b.txt")
    assert plan.find_done("k") is None


def test_a_plan_in_a_step_needs_a_session_of_its_own(work: Work) -> None:
    """In the same one its step would end the step around it."""
    with work.session.plan("outer") as outer, outer.step("a"):
        work.write(a_txt="1\n")
        inner = work.session.plan("inner")
        with raising(UsageError) as problem, inner.step("b"):
            pass
        assert "another plan is running" in str(problem.value)
        with work.project.session("helper").plan("inner") as other, other.step("b"):
            work.write(b_txt="1\n")
    assert [step.status for step in (*outer.steps, *other.steps)] == ["done", "done"]
    assert work.has("a.txt", "b.txt")
