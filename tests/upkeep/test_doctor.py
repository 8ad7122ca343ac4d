"""`takeback doctor`: everything is looked at, explained, and repaired where nothing is lost."""

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import oracle
import takeback
from faults.children import Tell, in_child
from takeback.cli import app
from takeback.cli.text.reason_text import sentence
from takeback.disk import operations
from takeback.disk.lock import Lock
from takeback.doctor import Doctor


class Ward:
    """A project with a history, and its store."""

    def __init__(self, tree: Path, home: Path) -> None:
        self.tree = tree
        self.home = home
        with takeback.open(tree, home=home) as project:
            self.store = home / "projects" / project.id
            with project.session("claude") as session, session.turn("one"):
                (tree / "a").write_text("2\n")
            self.checkpoint = project.checkpoint().id
        self.picture = oracle.picture(tree)

    @property
    def packs(self) -> list[Path]:
        """The packs of the store."""
        return sorted(self.store.glob("git/objects/pack/*.pack"))

    def sql(self, statement: str) -> None:
        """Change the ledger behind our back."""
        db = sqlite3.connect(self.store / "ledger.db")
        db.execute(statement)
        db.commit()
        db.close()

    def examine(self, *, repair: bool = False) -> dict[str, list[str]]:
        """The findings by part, each with its severity first."""
        doctor = Doctor(os.fsencode(self.tree), home=os.fsencode(self.home))
        found = doctor.examine(time.time(), repair=repair)
        self.repaired = found.repaired
        return {
            part.name: [f"{each.severity}: {sentence(each.what)}" for each in part.findings]
            for part in found.parts
            if part.findings
        }


@pytest.fixture
def ward(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Ward:
    """A patient in good health."""
    monkeypatch.chdir(tree)
    monkeypatch.setattr(operations, "sync", False)
    (tree / "a").write_text("1\n")
    return Ward(tree, home)


def test_a_sound_store_is_well(ward: Ward, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a store in good health nothing is found, part by part, and nothing is changed."""
    before = oracle.picture(ward.home)
    assert ward.examine() == {}
    assert app.main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "No problems found" in told
    for part in ("permissions", "ledger", "packs", "git view", "stat cache", "hooks"):
        assert part in told
    after = oracle.picture(ward.home)
    shown = {name for name in before if before[name][:1] != after[name][:1]}
    assert shown == set()
    ledger = b"projects/" + ward.store.name.encode() + b"/ledger.db"
    assert before[ledger] == after[ledger]


def _open_folder(ward: Ward) -> None:
    ward.store.chmod(0o755)


def _open_home(ward: Ward) -> None:
    ward.home.chmod(0o711)


def _open_file(ward: Ward) -> None:
    (ward.store / "ledger.db").chmod(0o644)


def _lose_registry(ward: Ward) -> None:
    (ward.home / "registry").write_text("garbage\n")


def _lose_index(ward: Ward) -> None:
    ward.packs[0].with_suffix(".idx").unlink()


def _flip_index(ward: Ward) -> None:
    path = ward.packs[0].with_suffix(".idx")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _lose_refs(ward: Ward) -> None:
    (ward.store / "git/refs/heads/checkpoints").write_text("junk\n")


def _change_table(ward: Ward) -> None:
    ward.sql("UPDATE turns SET label = 'another'")


def _spoil_cache(ward: Ward) -> None:
    (ward.store / "index").write_bytes(b"x" * 500)


def _leave_litter(ward: Ward) -> None:
    (ward.store / "git/objects/pack/tmp-1").write_bytes(b"x")
    (ward.store / "root.7.tmp").write_bytes(b"x")


def _leave_stray(ward: Ward) -> None:
    name = ward.packs[0].with_name("pack-" + "0" * 40 + ".pack")
    shutil.copy(ward.packs[0], name)
    name.chmod(0o600)


def _leave_stage(ward: Ward) -> None:
    (ward.tree / ".takeback-stage-kkkkkkkkkkkk").mkdir(mode=0o700)


def _leave_half_a_file(ward: Ward) -> None:
    (ward.home / "config.toml.77.tmp").write_bytes(b"x")


def _leave_removal(ward: Ward) -> None:
    (ward.home / "projects/zzzzzzzzzzzz.removed").mkdir(mode=0o700)


Harm = Callable[[Ward], None]
REPAIRABLE: dict[Harm, tuple[str, str]] = {
    _open_folder: ("permissions", "error"),
    _open_home: ("permissions", "error"),
    _open_file: ("permissions", "warning"),
    _lose_registry: ("registry", "warning"),
    _lose_index: ("packs", "warning"),
    _flip_index: ("packs", "warning"),
    _lose_refs: ("git view", "warning"),
    _change_table: ("ledger", "error"),
    _spoil_cache: ("stat cache", "note"),
    _leave_litter: ("leftovers", "note"),
    _leave_stray: ("leftovers", "note"),
    _leave_stage: ("leftovers", "warning"),
    _leave_removal: ("registry", "note"),
    _leave_half_a_file: ("registry", "note"),
}


@pytest.mark.parametrize("harm", REPAIRABLE, ids=lambda harm: harm.__name__.strip("_"))
def test_what_can_be_repaired_is(ward: Ward, harm: Callable[[Ward], None]) -> None:
    """It is found, in its part and with its weight; repaired, said, and nothing is lost."""
    harm(ward)
    part, severity = REPAIRABLE[harm]
    found = ward.examine()
    assert any(what.startswith(severity) for what in found[part])
    left = ward.examine(repair=True)
    assert left == {}
    assert ward.repaired
    with takeback.open(ward.tree, home=ward.home) as project:
        assert project.verify().ok
        project.extract(ward.checkpoint, ward.tree.with_name("out"))
    assert oracle.picture(ward.tree.with_name("out")) == ward.picture


def _flip_pack(ward: Ward) -> None:
    path = ward.packs[0]
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-30])


def _lose_pack(ward: Ward) -> None:
    ward.packs[0].unlink()


def _edit_event(ward: Ward) -> None:
    ward.sql("UPDATE events SET payload = '{}' WHERE seq = 2")


def _garble_ledger(ward: Ward) -> None:
    (ward.store / "ledger.db").write_bytes(b"garbage" * 3000)


def _make_newer(ward: Ward) -> None:
    ward.sql("PRAGMA user_version = 99")


def _break_settings(ward: Ward) -> None:
    (ward.home / "config.toml").write_text("[limits\n")
    (ward.home / "config.toml").chmod(0o600)


def _misspell_value(ward: Ward) -> None:
    (ward.home / "config.toml").write_text('[retention]\ndays = "some"\n')
    (ward.home / "config.toml").chmod(0o600)


def _replace_ledger(ward: Ward) -> None:
    (ward.store / "ledger.db").unlink()
    (ward.store / "ledger.db").symlink_to("/etc/hostname")


BROKEN: dict[Harm, str] = {
    _flip_pack: "packs",
    _lose_pack: "packs",
    _edit_event: "ledger",
    _garble_ledger: "store",
    _make_newer: "store",
    _break_settings: "settings",
    _misspell_value: "settings",
    _replace_ledger: "store",
}


@pytest.mark.parametrize("harm", BROKEN, ids=lambda harm: harm.__name__.strip("_"))
def test_what_cannot_be_repaired_is_explained(
    ward: Ward, harm: Callable[[Ward], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told with what to do, exit code 4, and a repair does not make it worse."""
    harm(ward)
    assert any(what.startswith("error") for what in ward.examine()[BROKEN[harm]])
    before = (ward.store / "ledger.db").read_bytes() if harm is not _replace_ledger else b""
    for flags in ([], ["--repair"]):
        assert app.main(["doctor", *flags]) == 4
        assert "Traceback" not in capsys.readouterr().err
    assert app.main(["doctor", "--json"]) == 4
    said = json.loads(capsys.readouterr().out)
    assert not said["ok"]
    broken = [each for each in said["findings"] if each["severity"] == "error"]
    assert all(each["action"] for each in broken)
    if harm in (_garble_ledger, _make_newer):
        assert (ward.store / "ledger.db").read_bytes() == before


def test_warnings_are_no_damage(ward: Ward) -> None:
    """A slip in the settings and a clock that is behind are told, and nothing is broken."""
    (ward.home / "config.toml").write_text("[limits]\nfiles = 3\n")
    (ward.home / "config.toml").chmod(0o600)
    doctor = Doctor(os.fsencode(ward.tree), home=os.fsencode(ward.home))
    found = doctor.examine(time.time() - 86400)
    names = {part.name for part in found.parts if part.findings}
    assert (found.ok, names) == (True, {"settings", "clock"})


def test_a_restore_that_was_cut_short_is_told(ward: Ward) -> None:
    """A restore and a forgetting that were interrupted are told, each with how it goes on."""
    ward.sql("INSERT INTO forgetting VALUES ('kkkkkkkkkkkk', 'packs', '{}')")
    ward.sql("INSERT INTO journal VALUES ('zzzzzzzzzzzz', 'applying', 'garbage', 1)")
    found = ward.examine()["restores"]
    assert [what.split(":")[0] for what in found] == ["error", "warning"]


def test_other_stores_are_looked_at_from_outside(ward: Ward) -> None:
    """A store of another project that cannot be opened is told, and is no damage of this one."""
    other = ward.tree.with_name("other")
    other.mkdir()
    with takeback.open(other, home=ward.home) as project:
        store = ward.home / "projects" / project.id
    (store / "ledger.db").write_bytes(b"garbage" * 1000)
    (what,) = ward.examine()["others"]
    assert what.startswith("warning")
    assert project.id in what


def test_somebody_at_work_is_not_disturbed(ward: Ward) -> None:
    """While another process holds the lock, what it is writing is not called a leftover."""
    (ward.store / "git/objects/pack/tmp-1").write_bytes(b"x")
    (ward.store / "git/objects/pack/tmp-1").chmod(0o600)
    lock = Lock(os.fsencode(ward.store / "lock"))

    def look(tell: Tell) -> None:
        tell({"found": [*ward.examine()]})

    lock.acquire()
    try:
        assert in_child(look).last("found") == []
    finally:
        lock.release()
    assert list(ward.examine()) == ["leftovers"]


def test_that_somebody_died_is_not_forgotten(ward: Ward) -> None:
    """Examining does not take away the mark by which the next start knows that it must clean up."""
    lock = Lock(os.fsencode(ward.store / "lock"))

    def die(tell: Tell) -> None:
        lock.acquire()
        tell({"pid": os.getpid()})
        os._exit(9)

    in_child(die)
    assert lock.is_marked
    ward.examine()
    assert lock.is_marked
    ward.examine(repair=True)
    assert not lock.is_marked


def test_outside_of_any_project(tmp_path: Path, home: Path) -> None:
    """Where nothing was ever stored, or outside of any project, there is still something to say."""
    nowhere = Doctor(os.fsencode(tmp_path), home=os.fsencode(tmp_path / "none"))
    assert nowhere.examine(time.time()).ok
    found = Doctor(os.fsencode(tmp_path), home=os.fsencode(home)).examine(time.time(), repair=True)
    assert (found.ok, [part.name for part in found.parts][-1]) == (True, "project")


def test_a_folder_that_is_asked_about_is_explained(ward: Ward) -> None:
    """Another folder at the place of a project is told with both answers."""
    ward.tree.rename(ward.tree.with_name("away"))
    ward.tree.mkdir()
    (what,) = ward.examine()["project"]
    assert "replaced the folder of project" in what


def test_a_preview_that_cannot_be_read_is_named(ward: Ward) -> None:
    """`verify` and `doctor` name it, `usage` counts it, and a new preview works."""
    with takeback.open(ward.tree, home=ward.home) as project:
        plan = project.plan_undo()
        assert project.usage().plans == 1
        ward.sql("UPDATE plans SET said = '{'")
        (damage,) = project.verify().damage
        assert (damage.what.code, dict(damage.what.facts)["id"]) == ("plan-unread", plan.id)
        (found,) = ward.examine()["restores"]
        assert found.startswith(f"warning: the preview `{plan.id}` cannot be read")
        assert project.apply(project.plan_undo()).id
