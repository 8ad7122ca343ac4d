"""Plan steps and what is beside the files: memory goes back, and databases if the step says so."""

import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import takeback
from cases import Work
from takeback.model.beyond.participants import Mutation
from takeback.participants.sqlite.participant import SqliteDatabase


class Boom(Exception):
    """What a step of these tests fails with."""


class Shop:
    """A database outside the project, with one open connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("CREATE TABLE items (name TEXT)")
        self.add("first")

    def add(self, name: str) -> None:
        """One more row."""
        self.connection.execute("INSERT INTO items VALUES (?)", (name,))

    @property
    def items(self) -> list[str]:
        """All rows."""
        return [name for (name,) in self.connection.execute("SELECT name FROM items")]


@pytest.fixture
def shop(work: Work, tmp_path: Path) -> Shop:
    """A database that takes part."""
    made = Shop(tmp_path / "shop.db")
    work.project.register(SqliteDatabase("shop", str(made.path)))
    return made


def test_memory_goes_back_with_a_step(work: Work) -> None:
    """Also if the step changed nothing else."""
    memory = work.session.memory
    with work.session.plan("migrate") as plan:
        with plan.step("one"):
            memory["plan"] = "first"
            work.write(a_txt="a\n")
        for files in (True, False):
            with plan.step("two", raises=False) as step:
                memory["plan"] = "second"
                if files:
                    work.write(a_txt="b\n")
                raise Boom
            assert step.report is not None
            assert (memory["plan"], work.text("a.txt")) == ("first", "a\n")


@pytest.mark.parametrize("databases", [True, False])
def test_databases_go_back_if_the_step_says_so(work: Work, shop: Shop, databases: bool) -> None:
    """The rows of the open connection, with the files."""
    with work.session.plan("migrate") as plan:
        with plan.step("two", raises=False, databases=databases) as step:
            shop.add("second")
            work.write(a_txt="b\n")
            raise Boom
        assert step.report is not None
        assert work.has_none("a.txt")
        assert shop.items == (["first"] if databases else ["first", "second"])
        with plan.step("only rows", raises=False, databases=True):
            shop.add("third")
            raise Boom
        assert "third" not in shop.items


def test_a_database_that_others_wrote_is_a_conflict(work: Work, shop: Shop) -> None:
    """Nothing moves, also no file."""
    with work.session.plan("migrate") as plan:
        with plan.step("one", key="1", databases=True):
            shop.add("second")
            work.write(a_txt="a\n")
        shop.add("mine")
        with pytest.raises(takeback.ConflictError) as caught:
            plan.take_back("1")
        assert [name for name, _ in caught.value.conflicts] == ["shop"]
        assert shop.items == ["first", "second", "mine"]
        assert work.has("a.txt")
        assert plan.find_done("1") is not None


def test_back_to_takes_databases_along(work: Work, shop: Shop) -> None:
    """To the rows after the step."""
    with work.session.plan("migrate") as plan:
        for name in ("one", "two", "three"):
            with plan.step(name, databases=name == "two"):
                shop.add(name)
                work.put(name, name)
        plan.back_to("one")
        assert shop.items == ["first", "one"]
        assert work.has_none("two", "three")


def test_rows_after_a_kill_may_be_yours(work: Work, shop: Shop) -> None:
    """Opening the plan asks; with consent they go back."""
    code = f"""
        import os, sqlite3, takeback
        from takeback.participants.sqlite.participant import SqliteDatabase
        project = takeback.open({str(work.tree)!r})
        project.register(SqliteDatabase("shop", {str(shop.path)!r}))
        with project.session("agent").plan("migrate", id="v2").step("one", databases=True):
            with sqlite3.connect({str(shop.path)!r}) as db:
                db.execute("INSERT INTO items VALUES ('half')")
            os.kill(os.getpid(), 9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert shop.items == ["first", "half"]
    with work.project.session("agent") as session:
        with pytest.raises(takeback.DecisionNeededError, match="shop"):
            session.plan("migrate", id="v2")
        assert shop.items == ["first", "half"]
        session.plan("migrate", id="v2", yes=True)
        assert shop.items == ["first"]


def test_inverses_of_a_step_run(work: Work) -> None:
    """What the step said how to reverse is reversed, also without `databases`."""
    flags = {"vouchers": False}

    def inverse(mutation: Mutation) -> None:
        flags[mutation.target] = bool(mutation.before)

    with work.session.plan("migrate") as plan:
        with plan.step("one", raises=False) as step:
            step.turn.mutate("vouchers", False, True, inverse=inverse)
            flags["vouchers"] = True
            raise Boom
        assert step.report is not None
    assert flags == {"vouchers": False}
