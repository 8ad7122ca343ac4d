"""A damaged journal is set aside, and work goes on."""

import os
import sqlite3
from contextlib import closing
from functools import partial
from itertools import count

import pytest

from cases import Work
from faults.children import Tell, in_child
from faults.injection import die
from spoken import sentence
from takeback.disk import operations
from takeback.errors import DamagedStoreError
from takeback.ledger.log import events

DAMAGES = {
    "cut short": ("said", b'{"verb": "un'),
    "no text any more": ("said", b'{"verb":"\xff\xfe\x00","title":"","parents":[],"ops":[]}'),
    "a path that leads out": (
        "said",
        b'{"verb":"undo","title":"","parents":[],"ops":[["../x",null,null]]}',
    ),
    "an unknown phase": ("phase", b"appl\xe9ing"),
    "an id that is none": ("id", b"../outside"),
}


def _interrupt(work: Work) -> None:
    """Kill an undo between two files."""
    work.write(a="0", b="0")
    with work.turn():
        work.write(a="1", b="1")
    work.close()

    def play(_tell: Tell) -> None:
        def kill(step: str, args: tuple[object, ...]) -> None:
            if step == "exchange" and b"b" in args:
                die()

        operations.hook = kill
        work.project.undo()

    in_child(play)


def _damage(work: Work, column: str, value: bytes) -> None:
    """Kill an undo, with a save of yours in our folder, and damage its row."""
    _interrupt(work)
    (folder,) = work.tree.glob(".takeback-stage-*")
    (folder / "n0").write_bytes(b"a save that is nowhere else")
    (ledger,) = work.home.glob("projects/*/ledger.db")
    with closing(sqlite3.connect(ledger)) as db, db:
        db.execute(f"UPDATE journal SET {column} = CAST(? AS TEXT)", (value,))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_journal_is_no_dead_end(work: Work, damage: str) -> None:
    """Checkpoints go on, `verify` lists it, and setting it aside loses no byte of anything."""
    column, value = DAMAGES[damage]
    _damage(work, column, value)
    tree_was = work.text("a"), work.text("b")
    work.write(c="yours")
    assert work.project.checkpoint().new
    (note,) = work.project.recovered
    assert "verify --set-aside" in sentence(note)
    with pytest.raises(DamagedStoreError) as told:
        work.project.undo()
    assert ".takeback-stage-" in told.value.hint
    found = work.project.verify()
    assert [each.what for each in found.damage] == [note]
    assert list(work.tree.glob(".takeback-stage-*")), "our folder was swept"

    found = work.project.verify(set_aside=True)
    assert (found.ok, len(found.repaired)) == (True, 1)
    (folder,) = work.tree.glob("takeback-found-*")
    assert (folder / "n0").read_bytes() == b"a save that is nowhere else"
    (event,) = work.project.workspace.ledger.events_of(events.RESTORE_SET_ASIDE)
    name = {"id": "restore", "phase": "phase", "said": "row"}[column]
    kept = str((event.payload or {})[name]).encode("utf-8", "surrogateescape")
    assert kept == value
    assert (work.text("a"), work.text("b")) == tree_was
    work.close()
    made = work.project.checkpoint()
    assert work.project.recovered == ()
    inside = os.fsencode(f"{folder.name}/n0")
    assert b"".join(work.project.read(made.id, inside)) == b"a save that is nowhere else"


def test_setting_aside_may_be_killed_anywhere(work: Work) -> None:
    """Whenever it is killed, the save is in one of the two folders and the row is not lost."""
    _damage(work, "said", b"{")

    def play(number: int, _tell: Tell) -> None:
        left = iter(range(number))

        def strike(_step: str, _args: tuple[object, ...]) -> None:
            if next(left, None) is None:
                die()

        project = work.project
        operations.hook = strike
        project.verify(set_aside=True)
        operations.hook = None

    for number in count(0):
        if in_child(partial(play, number)).status == 0:
            break
        saves = [*work.tree.glob(".takeback-stage-*/n0"), *work.tree.glob("takeback-found-*/n0")]
        assert [save.read_bytes() for save in saves] == [b"a save that is nowhere else"]
    assert number > 5
    kept = [*work.project.workspace.ledger.events_of(events.RESTORE_SET_ASIDE)]
    assert [(event.payload or {})["row"] for event in kept] == ["{"]
    assert work.project.verify().ok


def test_what_cannot_be_taken_back_yet_is_damage_to_verify(work: Work) -> None:
    """A restore whose way back fails is listed by `verify`, which goes on with the rest."""
    _interrupt(work)

    def refuse(step: str, _: tuple[object, ...]) -> None:
        if step == "exchange":
            raise OSError(5, os.strerror(5))

    operations.hook = refuse
    try:
        found = work.project.verify()
    finally:
        operations.hook = None
    assert "could not be taken back yet" in sentence(found.damage[0].what)
    assert found.objects > 0
    assert work.project.verify().ok


def test_the_command_line_sets_a_journal_aside(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """`takeback verify` ends with 4 while a journal is damaged, and with 0 when it is set aside."""
    from takeback.cli.app import main

    _damage(work, "said", b"{")
    monkeypatch.chdir(work.tree)
    monkeypatch.setenv("TAKEBACK_HOME", str(work.home))
    assert main(["verify"]) == 4
    assert main(["undo"]) == 4
    assert main(["verify", "--set-aside"]) == 0
    assert main(["undo"]) in (0, 3)
