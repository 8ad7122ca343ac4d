"""Participants that are two commands, and the command that adds, lists, repeats and removes."""

import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import Work
from history import command


def cli(work: Work, *words: str) -> tuple[int, str, str]:
    """Run `takeback` in the tree."""
    assert work.project.root
    said = command(work.tree, *words)
    return said.code, said.out, said.err


SAVE = """#!/bin/sh
set -e
case "$1" in
  save) name=$(sha256sum < STATE | cut -c1-16); cp STATE STORE/$name; echo $name ;;
  load) test ! -e BROKEN || { echo "the service is down" >&2; exit 3; }; cp STORE/$2 STATE ;;
  tell) cmp -s STORE/$2 STATE || echo "the state" ;;
  sleep) sleep 30 ;;
  where) pwd ;;
esac
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script that saves and loads the file `state`."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "state").write_text("one\n")
    text = SAVE.replace("STATE", str(tmp_path / "state")).replace("STORE", str(tmp_path / "kept"))
    path = tmp_path / "notes"
    path.write_text(text.replace("BROKEN", str(tmp_path / "broken")))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def _add(work: Work, script: Path, *more: str) -> tuple[int, str, str]:
    words = ["--capture", f"{script} save", "--restore", f"{script} load", *more]
    return cli(work, "participant", "add", "command", "--name", "notes", *words)


def test_two_commands_move_with_the_files(work: Work, script: Path, tmp_path: Path) -> None:
    """They run after the decision; what fails is in the report, and is repeated by command."""
    state = tmp_path / "state"
    assert _add(work, script)[0] == 0
    work.close()
    with work.turn() as turn:
        work.write(a_txt="1\n")
        state.write_text("two\n")
    assert cli(work, "show", turn.id)[1].count("notes") == 1
    code, out, _ = cli(work, "undo", "--dry-run")
    assert code == 0
    assert "notes" in out
    (tmp_path / "broken").touch()
    code, out, err = cli(work, "undo")
    assert code == 0
    assert "the service is down" in out
    assert "takeback participant retry notes" in out + err
    assert not work.has("a.txt")
    assert state.read_text() == "two\n"
    assert "the service is down" in cli(work, "participant")[1]
    assert "notes" in cli(work, "doctor")[1]
    assert cli(work, "participant", "retry", "notes")[0] == 5
    (tmp_path / "broken").unlink()
    assert cli(work, "participant", "retry", "notes")[0] == 0
    assert state.read_text() == "one\n"
    assert cli(work, "redo")[0] == 0
    assert state.read_text() == "two\n"
    moves = json.loads(cli(work, "undo", "--json", "--only", "files")[1])["moves"]
    assert moves == []
    assert state.read_text() == "two\n"


def test_a_command_has_a_whole_path_and_a_time_limit(work: Work, script: Path) -> None:
    """It starts without a shell, outside the tree, and is stopped when it takes too long."""
    code, _, err = cli(
        work, "participant", "add", "command", "--capture", "notes save", "--restore", "notes load"
    )
    assert code == 2
    assert "whole path" in err
    words = ["--capture", f"{script} sleep", "--restore", f"{script} load", "--seconds", "0.2"]
    assert cli(work, "participant", "add", "command", "--name", "slow", *words)[0] == 0
    assert "longer than 0.2 s" in cli(work, "participant")[1]
    words = ["--capture", f"{script} where", "--restore", f"{script} load"]
    assert cli(work, "participant", "add", "command", "--name", "where", *words)[0] == 0
    told = json.loads(cli(work, "participant", "list", "--json")[1])["participants"]
    assert {each["name"]: each["token"] for each in told}["where"] == "/"


def test_what_a_token_may_be(work: Work, script: Path) -> None:
    """One printable line of at most 1 KiB; anything else is no token."""
    script.write_text("#!/bin/sh\nhead -c 2000 /dev/zero | tr '\\0' x\n")
    assert _add(work, script)[0] == 0
    assert "printed no token" in cli(work, "participant")[1]
    with work.turn():
        work.write(a_txt="1\n")
    work.undo()
    assert not work.has("a.txt")


def test_the_settings_are_the_users(work: Work, script: Path, tmp_path: Path) -> None:
    """Nothing in the tree adds a participant; one that is removed is left alone."""
    assert _add(work, script)[0] == 0
    assert _add(work, script)[0] == 2
    assert not any("config" in name for name in os.listdir(work.tree))
    assert cli(work, "participant", "remove", "nobody")[0] == 2
    assert cli(work, "participant", "remove", "notes")[0] == 0
    work.close()
    with work.turn():
        work.write(a_txt="1\n")
        (tmp_path / "state").write_text("two\n")
    work.undo()
    assert (tmp_path / "state").read_text() == "two\n"


def test_a_broken_setting_is_named_and_stops_nobody(work: Work) -> None:
    """The agent goes on; the list says what is wrong."""
    store = work.home / "projects" / work.project.id / "config.toml"
    store.write_text('[participants.x]\ntype = "moon"\n')
    work.close()
    with work.turn():
        work.write(a_txt="1\n")
    assert "unknown type `moon`" in cli(work, "participant")[1]
    work.undo()
    assert not work.has("a.txt")


RECIPE = """#!/bin/sh
set -e
case "$1" in
  save) name=$(cd FOLDER && tar -c . | sha256sum | cut -c1-16)
        test -e KEPT/$name || { cp -a FOLDER KEPT/$name.part; mv KEPT/$name.part KEPT/$name; }
        echo $name ;;
  load) rm -rf FOLDER.old; cp -a KEPT/$2 FOLDER.new; mv FOLDER FOLDER.old
        mv FOLDER.new FOLDER; rm -rf FOLDER.old ;;
esac
"""


def test_the_recipe_of_a_folder(work: Work, tmp_path: Path) -> None:
    """The script in docs/participants.md, for a folder outside the project."""
    folder, kept, script = tmp_path / "uploads", tmp_path / "kept", tmp_path / "keep-folder"
    folder.mkdir()
    kept.mkdir()
    (folder / "a").write_text("1")
    script.write_text(RECIPE.replace("FOLDER", str(folder)).replace("KEPT", str(kept)))
    script.chmod(0o700)
    assert _add(work, script)[0] == 0
    work.close()
    with work.turn():
        (folder / "a").write_text("2")
        (folder / "b").write_text("3")
        work.write(a_txt="1\n")
    work.undo()
    assert {each.name: each.read_text() for each in folder.iterdir()} == {"a": "1"}
    work.redo()
    assert {each.name: each.read_text() for each in folder.iterdir()} == {"a": "2", "b": "3"}


REDIS = """#!/bin/sh
set -e
redis() { CLIENT -s SOCKET "$@"; }
case "$1" in
  save) name=$(redis DEBUG DIGEST)
        test -e KEPT/$name || { redis --rdb KEPT/$name.part >&2; mv KEPT/$name.part KEPT/$name; }
        echo $name ;;
  load) cp KEPT/$2 DATA/dump.rdb; redis DEBUG RELOAD NOSAVE ;;
esac
"""


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Path]:
    """A running Redis; its socket."""
    server = shutil.which("redis-server")
    if server is None or shutil.which("redis-cli") is None:
        pytest.skip("NOT TESTED: the recipe of Redis needs redis-server and redis-cli")
    (tmp_path / "data").mkdir()
    socket = tmp_path / "redis.sock"
    options = {"port": "0", "unixsocket": str(socket), "dir": str(tmp_path / "data")}
    options |= {"enable-debug-command": "local", "save": ""}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    with subprocess.Popen([server, *words], stdout=subprocess.DEVNULL) as process:
        try:
            while not socket.exists():
                assert process.poll() is None
                time.sleep(0.01)
            yield socket
        finally:
            process.terminate()


@pytest.mark.slow
def test_the_recipe_of_redis(work: Work, redis: Path, tmp_path: Path) -> None:
    """A dump of a running Redis comes back into the running Redis; nobody is disconnected."""
    client = str(shutil.which("redis-cli"))

    def ask(*words: str) -> str:
        found = subprocess.run([client, "-s", redis, *words], capture_output=True, check=True)
        return found.stdout.decode().strip()

    script = tmp_path / "keep-redis"
    (tmp_path / "kept").mkdir()
    text = REDIS.replace("CLIENT", client).replace("SOCKET", str(redis))
    text = text.replace("KEPT", str(tmp_path / "kept")).replace("DATA", str(tmp_path / "data"))
    script.write_text(text)
    script.chmod(0o700)
    assert _add(work, script, "--kind", "databases")[0] == 0
    work.close()
    ask("SET", "a", "1")
    with work.turn():
        ask("SET", "a", "2")
        ask("RPUSH", "list", "x", "y")
        work.write(a_txt="1\n")
    work.undo()
    assert (ask("GET", "a"), ask("KEYS", "*")) == ("1", "a")
    work.redo()
    assert (ask("GET", "a"), ask("LRANGE", "list", "0", "-1")) == ("2", "x\ny")


def test_a_participant_that_was_removed_is_not_listed_as_captured(work: Work, script: Path) -> None:
    """What was captured stays in the log, and the list says that it takes no part any more."""
    assert _add(work, script)[0] == 0
    assert cli(work, "participant", "remove", "notes")[0] == 0
    assert cli(work, "participant")[1].split() == (
        "notes absent other does not take part now; what was captured is kept".split()
    )


def test_adding_a_database_that_is_not_there_says_so(work: Work) -> None:
    """It may be a typing error, so it is added, and reported."""
    code, _, err = cli(work, "participant", "add", "sqlite", "none.db")
    assert (code, f"there is no file {work.tree / 'none.db'} yet" in err) == (0, True)
    code, _, err = cli(work, "participant", "add", "sqlite")
    assert (code, "`takeback participant add sqlite var/app.db`" in err) == (2, True)


def test_show_tells_what_moved_beside_the_files(work: Work, script: Path, tmp_path: Path) -> None:
    """What changed with its tokens; of the rest only the names."""
    assert _add(work, script)[0] == 0
    work.close()
    with work.turn() as turn:
        work.write(a_txt="1\n")
    assert "  unchanged: notes" in cli(work, "show", turn.id)[1].splitlines()
    with work.turn() as turn:
        work.write(a_txt="2\n")
        (tmp_path / "state").write_text("two\n")
    assert "  notes  changed: " in cli(work, "show", turn.id)[1]
