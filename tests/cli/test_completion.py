"""Completion in real shells, and the man page: made from what the help is made of."""

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import oracle
import program
from cases import Work
from takeback.agents.registry import installable
from takeback.cli import app, completion, manual, parser
from terminal import ESCAPES, Terminal

MAIN = Path(app.__file__).parent.parent / "__main__.py"
ROOT = Path(__file__).resolve().parents[2]
NASTY = "tidy\x1b]0;gone\x07 up\nand more"
SECRET = "password=hunter2swordfish"
HEAVY = frozenset("json sqlite3 subprocess pygit2 tomlkit shutil tempfile socket random".split())

Recorded = tuple[dict[str, str], Path, Path]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Some turns by their prompts, one of them undone; a name, a named session."""
    found: dict[str, str] = {}
    tree, home = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("home")
    home.chmod(0o700)
    work = Work(tree, home)
    with work.project.session("run", id="nightly", title="") as session:
        for number, label in enumerate((NASTY, f"log in with {SECRET}", "wrong")):
            work.put("src/a.py", f"{number}\n")
            with session.turn(label) as turn:
                work.put("src/a.py", f"{number} changed\n")
            found[label] = turn.id
        work.project.undo(found["wrong"])
    work.project.checkpoint("tests green")
    work.close()
    return found, tree, home


@pytest.fixture
def turns(recorded: Recorded, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The same turns, with the store in a copy of its own; we are in their tree."""
    found, tree, original = recorded
    shutil.copytree(original, home, dirs_exist_ok=True)
    monkeypatch.chdir(tree)
    return found


@pytest.fixture
def shell_path(tmp_path: Path) -> Path:
    """A folder for the `PATH` with both commands, as an installation has them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("takeback", "tb"):
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {MAIN} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def ask(*words: str, shell: str = "fish", cwd: Path | None = None) -> list[str]:
    """What is offered for the last word."""
    done = program.text(["__complete", shell, *words], cwd or Path.cwd())
    assert (done.returncode, done.stderr) == (0, ""), words
    return done.stdout.splitlines()


def values(*words: str) -> list[str]:
    """The same without what it means."""
    return [line.partition("\t")[0] for line in ask(*words)]


# -- what is offered ---------------------------------------------------------------------------


def test_commands_and_options_are_those_of_the_help(tree: Path) -> None:
    """Every command, every option of each, with the sentence that the help shows."""
    offered = dict(line.split("\t") for line in ask("", cwd=tree))
    assert list(offered) == [*app.COMMANDS, "help"]
    for name in app.COMMANDS:
        command = app.load(name).COMMAND
        assert command.summary.startswith(offered[name].rstrip("…"))
        flags = [option.flags[-1] for option in (*command.options, *parser.EVERYWHERE)]
        assert values(name, "-") == [flag for flag in flags if flag.startswith("-")], name
    assert "--version" in values("-")
    assert values("undo", "--dry-run", "--dry") == []


def test_every_word_of_the_help_has_its_values() -> None:
    """A new operand, or a new value of an option, must say what a shell offers for it."""
    for name in ("status", *app.COMMANDS):
        command = app.load(name).COMMAND
        named = [o.value for o in (*command.options, *parser.EVERYWHERE) if not o.choices]
        for operand in command.operands:
            if not operand.lstrip("[").startswith("--"):
                named += [each.rstrip("…") for each in operand.strip("[]").split("|")]
        unknown = {word for word in named if word} - completion.KINDS.keys()
        assert not unknown, (name, unknown)


def test_actions_are_offered_where_a_command_has_some() -> None:
    """Each that is offered is one that the command knows."""
    from takeback.cli.commands import guard, participant

    assert set(values("guard", "")) == {*guard._ACTIONS} - {"mode"}
    assert set(values("participant", "")) == {*participant._ACTIONS}
    assert values("lessons", "d") == ["drop"]


def test_ids_come_with_their_prompts(turns: dict[str, str]) -> None:
    """As the log shows them, newest first; masked, and safe on a terminal."""
    nasty, secret = turns[NASTY][:4], turns[f"log in with {SECRET}"][:4]
    offered = ask("undo", "")
    assert [line.partition("\t")[0] for line in offered] == [secret, nasty]
    assert "hunter2" not in offered[0]
    assert "log in with password=" in offered[0]
    assert re.search(r"\ttidy\\x1b.* up  \(\d+ s ago, run\)$", offered[1]), offered[1]
    assert values("undo", secret, "") == [nasty]
    longer = turns[NASTY][:6]
    assert values("show", longer) == [turns[NASTY]]
    assert values("redo", "") == [turns["wrong"][:4]]
    assert values("rollback", "te") == ["tests green"]
    assert "'tests green'" in [line.partition("\t")[0] for line in ask("diff", "", shell="bash")]


@pytest.mark.usefixtures("turns")
def test_a_name_is_never_run(shell_path: Path, tmp_path: Path) -> None:
    """Names may come from an agent: none is an order, an option, or a second command."""
    trap, tree = tmp_path / "trap", Path.cwd()
    order = f":command starts[$(touch {trap})]"
    for name in (order, f"-x;touch {trap}", f"x;touch {trap}"):
        assert program.text(["checkpoint", "-m", name], tree).returncode == 0
        assert program.text(["run", "--session", name, "true"], tree).returncode == 0
    offered = [line.partition("\t")[0] for line in ask("rollback", "", shell="bash")]
    assert [each for each in offered if "touch" in each] == [f"'x;touch {trap}'"]
    assert values("run", "--session", "") == [f"x;touch {trap}", "nightly"]
    assert ask("run", "--session=x", shell="bash")[0].startswith(f"--session='x;touch {trap}'\t")
    (shell_path / "takeback").write_text(f"#!/bin/sh\necho '{order}'\n")  # another version of us
    line = """
        COMP_LINE="takeback run " COMP_POINT=13 COMP_WORDS=(takeback run "") COMP_CWORD=2
        words=(takeback run "") CURRENT=3 PREFIX=""
        compdef() { :; }
        . "$1"; _takeback"""
    for shell in filter(shutil.which, ("bash", "zsh")):
        script = ROOT / "src/takeback/cli/shell" / shell
        subprocess.run(
            [shell, "-c", line, shell, script],
            env={"PATH": f"{shell_path}:{os.environ['PATH']}"},
            check=False,
            capture_output=True,
        )
        assert not trap.exists(), shell


@pytest.mark.usefixtures("turns")
def test_the_other_values() -> None:
    """Sessions, their names, settings, agents, plans, projects, choices, files and folders."""
    tree = Path.cwd()
    session = values("log", "--session", "")
    assert [f"--session={session[0]}"] == values("log", "--session=")
    assert values("run", "--session", "") == ["nightly"]
    assert values("config", "gc.") == ["gc.auto"]
    assert values("config", "gc.auto", "") == ["true", "false"]
    assert values("config", "record.output", "o") == ["on", "off"]
    assert values("install", "") == list(installable())
    assert values("usage", "--by", "") == ["session", "agent", "path"]
    assert values("completion", "") == ["bash", "zsh", "fish"]
    assert values("help", "ver") == ["verify"]
    assert values("undo", "--", "") == values("show", "x", "") == [":files"]
    assert values("-C", "") == values("projects", "") == values("log", "-C", "") == [":folders"]
    assert values("run", "-q", "--", "git", "") == [":command 3"]
    assert values("run", "") == [":command 1"]
    assert values("apply", "") == []
    plan = program.text(["undo", "--dry-run", "--json"], tree).stdout
    (offered,) = ask("apply", "")
    assert offered.partition("\t")[0] in plan
    (project,) = ask("relocate", "--join", "")
    assert project.endswith(f"\t{tree}")
    assert values("-C", str(tree), "undo", "", ) == values("undo", "")  # fmt: skip


@pytest.mark.parametrize(
    "words", [[], ["nonsense", ""], ["undo", ""], ["-C", "/gone", "undo", ""], ["config", "x", ""]]
)
def test_without_history_nothing_is_said(tree: Path, home: Path, words: list[str]) -> None:
    """No error and nothing made, in a folder without history and with a broken command line."""
    if words:
        assert ask(*words, cwd=tree) == []
    else:
        assert program.text(["__complete"], tree).stderr == ""
    assert list(home.iterdir()) == list(tree.iterdir()) == []


@pytest.mark.usefixtures("turns")
def test_a_damaged_store_says_nothing(home: Path) -> None:
    """Whatever is wrong with the ledger, the command line of the user stays clean."""
    (ledger,) = home.glob("projects/*/ledger.db")
    ledger.write_bytes(ledger.read_bytes()[:5000] + b"\0" * 20000)
    assert ask("undo", "") == []
    ledger.write_bytes(b"no database")
    assert ask("undo", "") == []


@pytest.mark.parametrize("log", ["none", "left", "live"])
@pytest.mark.usefixtures("turns")
def test_nothing_is_written(home: Path, log: str) -> None:
    """Neither in the tree nor in the store: also no log of SQLite, and no lock."""
    tree = Path.cwd()
    (ledger,) = home.glob("projects/*/ledger.db")
    expected = values("undo", "")
    writer = None
    if log != "none":
        import sqlite3

        leave = (
            "import os, sqlite3, sys, time;"
            "db = sqlite3.connect(sys.argv[1], isolation_level=None);"
            "db.execute('PRAGMA user_version'); db.execute('CREATE TABLE t (x)');"
            "print(1, flush=True); sys.argv[2:] and time.sleep(60); os._exit(0)"
        )
        assert sqlite3.sqlite_version_info >= (3, 22)
        live = ["live"] if log == "live" else []
        writer = subprocess.Popen(
            [sys.executable, "-I", "-c", leave, str(ledger), *live], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        if not live:
            writer.wait()
        assert ledger.with_name("ledger.db-wal").exists()
    try:
        before = contents(home), oracle.stamps(tree), stamps(home)
        assert values("undo", "") == expected != []
        for words in (["log", "--session", ""], ["diff", ""], ["apply", ""], ["redo", ""]):
            ask(*words)
        assert (contents(home), oracle.stamps(tree), stamps(home)) == before
    finally:
        if writer is not None:
            writer.kill()
            writer.communicate()


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def stamps(folder: Path) -> dict[str, int]:
    """When everything below a folder was last changed."""
    return {str(p): p.stat().st_mtime_ns for p in sorted(folder.rglob("*"))}


@pytest.mark.usefixtures("turns")
def test_it_is_quick() -> None:
    """Ids take less than 150 ms of one core, and import little."""
    command = [sys.executable, "-I", "-S", "-X", "importtime", str(MAIN), "__complete", "bash"]
    for words in (["undo", ""], ["un"], ["log", "--"]):
        least, said = 1.0, ""
        for _ in range(3):
            before = os.times()
            done = subprocess.run([*command, *words], capture_output=True, text=True, check=True)
            after = os.times()
            used = after.children_user + after.children_system
            least = min(least, used - before.children_user - before.children_system)
            said = done.stderr
            assert done.stdout
            if least < 0.1:
                break
        assert least < 0.15, words
        names = {line.rsplit("|", 1)[1].strip() for line in said.splitlines()}
        assert words == ["un"] or not names & HEAVY, words


# -- real shells -------------------------------------------------------------------------------


def need(shell: str) -> str:
    """The path of a shell; the test is skipped, loudly, where it is not installed."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"there is no {shell} here: its completion is NOT TESTED")
    return path


@pytest.fixture
def typed(
    shell_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str], Terminal]]:
    """Starts a shell on a terminal, with the completion switched on."""
    monkeypatch.setenv("PATH", f"{shell_path}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    opened: list[Terminal] = []

    def start(words: list[str], enable: str) -> Terminal:
        terminal = Terminal(words, rows=40, columns=110)
        opened.append(terminal)
        terminal.type(f"{enable}; echo rea''dy\n".encode())
        terminal.expect(b"ready\r\n")
        return terminal

    yield start  # type: ignore[misc]
    for terminal in opened:
        terminal.close()


def seen(terminal: Terminal, keys: str, *expected: str) -> str:
    """Type, and wait until everything expected is there."""
    terminal.seen = b""
    terminal.type(keys.encode())
    end = time.monotonic() + 20
    while time.monotonic() < end:
        shown = ESCAPES.sub("", terminal.seen.decode(errors="replace"))
        if all(each in shown for each in expected):
            return shown
        if select.select([terminal._fd], [], [], 0.1)[0]:
            terminal.seen += os.read(terminal._fd, 65536)
    raise AssertionError((keys, expected, terminal.seen))


def test_bash(turns: dict[str, str], typed: Callable[..., Terminal]) -> None:
    """Tab offers commands and ids with prompts, and writes out what is the only one."""
    enable = 'PS1="$ "; bind "set bell-style none"; bind "set show-all-if-ambiguous on"; '
    shell = typed(
        [need("bash"), "--norc", "--noprofile", "-i"], enable + 'eval "$(takeback completion bash)"'
    )
    nasty, secret = turns[NASTY][:4], turns[f"log in with {SECRET}"][:4]
    shown = seen(shell, "takeback undo \t", f"{secret}            log in with", nasty)
    assert "hunter2" not in shown
    assert "\x1b]0" not in shown
    seen(shell, f"\x15tb undo {nasty[:3]}\t", f"undo {nasty} ")
    seen(shell, "\x15takeback log --sess\t", "--session ")
    session = values("log", "--session", "")[0]
    seen(shell, "\x15takeback log --session=\t", f"--session={session} ")
    seen(shell, "\x15takeback rollback te\t", "'tests green' ")
    seen(shell, "\x15takeback diff -- sr\t", "src/")
    seen(shell, "\x15takeback ver\t", "verify ")


def test_zsh(turns: dict[str, str], typed: Callable[..., Terminal], tmp_path: Path) -> None:
    """The same in zsh, by the file that an installation brings."""
    functions = tmp_path / "site-functions"
    functions.mkdir()
    (functions / "_takeback").write_text(completion.script("zsh"))
    enable = f"PS1='$ '; fpath=({functions} $fpath); autoload -Uz compinit; compinit -u -D"
    shell = typed([need("zsh"), "-f", "-i"], enable)
    nasty, secret = turns[NASTY][:4], turns[f"log in with {SECRET}"][:4]
    shown = seen(shell, "takeback undo \t", secret, "-- log in with", nasty)
    assert "hunter2" not in shown
    assert shown.index(f"{secret} ") < shown.index(f"{nasty} ")
    seen(shell, f"\x15tb undo {nasty[:3]}\t", f"undo {nasty} ")
    seen(shell, "\x15takeback rollback te\t", "tests\\ green ")
    seen(shell, "\x15takeback diff -- sr\t", "src/")
    seen(shell, "\x15takeback ver\t", "verify ")


def test_fish(turns: dict[str, str], shell_path: Path, tmp_path: Path) -> None:
    """The same in fish, which can be asked."""
    nasty, secret = turns[NASTY][:4], turns[f"log in with {SECRET}"][:4]
    fish, env = need("fish"), {**os.environ, "HOME": str(tmp_path)}
    env["PATH"] = f"{shell_path}:{env['PATH']}"

    def offered(line: str) -> list[str]:
        other = "complete -c job -f -a 'nightly weekly'"
        code = f"takeback completion fish | source; {other}; complete -C '{line}'"
        done = subprocess.run(
            [fish, "--no-config", "-c", code], env=env, capture_output=True, text=True, check=True
        )
        return [each.partition("\t")[0] for each in done.stdout.splitlines()]

    assert offered("takeback undo ") == [secret, nasty]
    assert offered("tb rollback te") == ["tests green"]
    assert offered("takeback ver") == ["verify"]
    assert offered("takeback diff -- sr") == ["src/"]
    assert offered("takeback run -q -- job ni") == ["nightly"]


# -- the commands ------------------------------------------------------------------------------


def test_the_scripts_are_printed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`completion SHELL` prints what the wheel has; without a word, for the user's own shell."""
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    for shell in completion.SHELLS:
        done = program.text(["completion", shell], tree)
        assert (done.stdout, done.stderr) == (completion.script(shell), "")
        assert "completion " + shell in done.stdout.partition("\n\n")[0], "how it is enabled"
    assert program.text(["completion"], tree).stdout == completion.script("fish")
    unknown = program.text(["completion", "tcsh"], tree)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "bash, zsh or fish" in unknown.stderr


@pytest.mark.parametrize("words", [["completion", "bash"], ["man"]], ids=lambda words: words[0])
def test_a_terminal_breaks_no_line_of_a_script(tree: Path, words: list[str]) -> None:
    """What is copied from there is what the shell or `man` understands."""
    printed = program.text(words, tree).stdout
    code, shown = program.on_terminal(words, tree, {**os.environ, "TERM": "xterm"}, (40, 8))
    assert code == 0
    assert ESCAPES.sub("", shown).replace("\r", "").startswith(printed)


def test_the_man_page_is_the_help(tree: Path) -> None:
    """Every command, option and example of the help is in it, and every exit code."""
    page = program.text(["man"], tree).stdout
    assert page.isascii()
    for name in ("status", *app.COMMANDS):
        command = app.load(name).COMMAND
        for option in command.options:
            assert manual._text(option.text) in page, (name, option)
        for example, _ in command.examples:
            assert manual._plain(example) in page
        for line in filter(None, command.text.split("\n")):
            assert manual._text(line) in page
    documented = " ".join((ROOT / "docs/json.md").read_text().split())
    for code, meaning in manual.EXIT_CODES:
        assert f"{code} {meaning}" in documented


@pytest.mark.parametrize(
    "checker",
    [
        ["groff", "-man", "-Tutf8", "-ww", "-z"],
        ["mandoc", "-T", "lint", "-W", "warning"],
        ["man", "--warnings", "-l", "-Tutf8", "-Z"],
    ],
    ids=lambda words: words[0],
)
def test_the_man_page_is_well_formed(tree: Path, tmp_path: Path, checker: list[str]) -> None:
    """The formatters have nothing to complain about."""
    if shutil.which(checker[0]) is None:
        pytest.skip(f"there is no {checker[0]} here: the man page is NOT TESTED with it")
    path = tmp_path / "takeback.1"
    path.write_text(program.text(["man"], tree).stdout)
    done = subprocess.run([*checker, path], capture_output=True, text=True, check=False)
    said = done.stderr + (done.stdout if checker[0] == "mandoc" else "")
    assert [line for line in said.splitlines() if "missing date" not in line] == []
