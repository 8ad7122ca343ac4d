"""What the documents say is so: names, links, limits, fields, and the sessions they show."""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import program
import takeback
from takeback.capture import project_rules
from takeback.cli.app import COMMANDS
from takeback.cli.vocabulary import ALIASES
from takeback.ledger import schema
from takeback.ledger.log import events
from takeback.model import words
from takeback.worktree import ignore

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "takeback"
DOCS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEST = re.compile(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`")
TEST_FILE = re.compile(r"\btests/[\w/]+\.py")
LINK = re.compile(r"\]\(([^)\s]+)\)")

Cli = Callable[..., "Answer"]


class Answer:
    """What one command printed and how it ended."""

    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.code = done.returncode
        self.text = done.stdout
        self.notes = done.stderr

    def json(self) -> dict[str, object]:
        """The one object that `--json` printed."""
        said: dict[str, object] = json.loads(self.text)
        return said


def text_of(name: str) -> str:
    """A document of ours."""
    return (ROOT / name).read_text()


def section(text: str, title: str) -> str:
    """What stands below a heading of the second level."""
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return next(part for part in parts if part.splitlines()[0] == title)


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def first_column(text: str) -> list[str]:
    """What the rows of the tables in a text are about: their first cell, in backticks."""
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def rows(text: str) -> dict[str, str]:
    """The first two cells of each row that begins with a name in backticks."""
    return dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", text, re.MULTILINE))


def test_every_page_says_for_whom_it_is() -> None:
    """The first line of a page names its reader; what `bench/run` writes names that instead."""
    opening = re.compile(r"# .*\n\n(?:For |Written by `bench/run)")
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/contributing").glob("*.md")]
    silent = [path.name for path in pages if not opening.match(path.read_text())]
    assert sorted(silent) == ["README.md"]


# -- names and links ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    """Every relative link names a file that is there, and a heading that it has."""
    lost = []
    for link in LINK.findall(path.read_text()):
        if "://" not in link:
            name, _, heading = link.partition("#")
            target = path.parent / name if name else path
            if not target.exists() or (heading and heading not in anchors(target)):
                lost.append(link)
    assert lost == []


def anchors(path: Path) -> set[str]:
    """The names by which the headings of a document can be linked to."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_tests_that_are_named_exist(path: Path) -> None:
    """A promise is worth the test behind it: every test that a document names is there."""
    text = path.read_text()
    files = {name for name in TEST_FILE.findall(text) if not (ROOT / name).is_file()}
    functions = {(file, name) for file, name in TEST.findall(text) if name not in defined_in(file)}
    assert (files, functions) == (set(), set())


@cache
def defined_in(file: str) -> set[str]:
    """The test functions of a file, or of all files if none is named."""
    found: set[str] = set()
    for path in [ROOT / file] if file else (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
        found |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return found


def test_every_promise_names_what_would_break_it() -> None:
    """Below each promise stands a test, or the check of `./check` that enforces it."""
    promised = section(text_of("docs/guarantees.md"), "What we promise")
    promises = re.split(r"^(?=\*\*)", promised, flags=re.MULTILINE)[1:]
    assert len(promises) > 10
    proven = re.compile(r"^> .*(?:tests/|\./check)", re.MULTILINE)
    assert [promise for promise in promises if not proven.search(promise)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    """Each command is shown in the README or explained in the docs."""
    assert any(f"takeback {name}" in path.read_text() for path in DOCS)


def test_every_kind_of_event_is_documented() -> None:
    """Each kind stands in the table with its payload, and the table names no other."""
    table = section(text_of("docs/log.md"), "Event kinds")
    heads = re.findall(r"^\| (`[A-Z].*?) \|", table, re.MULTILINE)
    named = [kind for head in heads for kind in re.findall(r"`(\w+)`", head)]
    assert sorted(named) == sorted(events.KINDS)


def test_no_document_names_a_command_that_is_not_there() -> None:
    """What looks like a call of `takeback` is one that works; situations show also others."""
    called = re.compile(r"(?:`|^\$ )takeback ([a-z]+)", re.MULTILINE)
    made_up = {
        f"{path.name}: {name}"
        for path in DOCS
        if path.name != "situations.md"
        for name in called.findall(path.read_text())
        if name not in {*COMMANDS, *ALIASES}
    }
    assert made_up == set()


def test_each_heading_of_troubleshooting_is_a_message() -> None:
    """Whoever searches the page for what the program printed finds it."""
    headings = re.findall(r"^### (.*)$", text_of("docs/troubleshooting.md"), re.MULTILINE)
    assert len(headings) > 20
    known = messages()
    assert not is_message("nothing was found in the place where it was", known)
    assert [heading for heading in headings if not is_message(heading, known)] == []


def is_message(heading: str, known: list[list[str]]) -> bool:
    """Whether the code has a sentence that prints this, and is not mostly gaps."""
    return any(
        len("".join(parts)) >= len(heading) // 4 and has_in_order(heading, parts) for parts in known
    )


def has_in_order(text: str, parts: list[str]) -> bool:
    """Whether a text begins with the first part, ends with the last, and has all of them."""
    if not (text.startswith(parts[0]) and text.endswith(parts[-1])):
        return False
    done = 0
    for part in parts:
        done = text.find(part, done) + len(part)
        if done < len(part):
            return False
    return True


def messages() -> list[list[str]]:
    """The fixed parts of all strings in the code; something stands between two of them."""
    found = []
    sources = [path.read_text() for path in PACKAGE.rglob("*.py")]
    for source in filter(re.compile(r"Error\(").search, sources):
        for node in ast.walk(ast.parse(source)):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts = [part.value if isinstance(part, ast.Constant) else "\0" for part in parts]
            fixed = "".join(text for text in texts if isinstance(text, str)).split("\0")
            if " " in "".join(fixed):
                found.append(fixed)
    return found


def test_no_document_knows_a_machine() -> None:
    """No path of anybody's machine is in a document; examples live below /srv."""
    own = re.compile(r"(?<![\w.~$])/(?:home|root|work|Users|mnt|tmp|opt|data)/")
    assert [path.name for path in DOCS if own.search(path.read_text())] == []


# -- limits ------------------------------------------------------------------------------------


def test_limits_are_the_documented_ones() -> None:
    """The table has each limit of the code with its default."""
    table = rows(section(text_of("docs/limits.md"), "The limits"))
    names = f"{len(project_rules.REBUILDABLE)} names, below"
    given = {key: value.split(" (")[0] for key, value in table.items()}
    assert given == {
        "entries": str(project_rules.ENTRIES),
        "bytes": str(project_rules.BYTES),
        "file": str(project_rules.FILE),
        "rebuildable": names,
    }
    assert set(given) == set(project_rules.Limits.__slots__)


def test_the_format_is_the_documented_one() -> None:
    """Whoever counts the format up says so in its record, and to users."""
    assert f"Today it is {schema.VERSION}:" in text_of("docs/design/0027-format-6.md")
    assert f"**Store format {schema.VERSION}.**" in text_of("CHANGELOG.md")


def test_sizes_are_also_given_for_people() -> None:
    """A size in bytes and its size in MiB are the same."""
    sizes = re.findall(r"(\d+) \((\d+) MiB\)", text_of("docs/limits.md"))
    assert sizes
    assert [size for size, mib in sizes if int(size) != int(mib) << 20] == []


def test_rebuildable_names_are_the_documented_ones() -> None:
    """The list of names is the one in the code."""
    listed = blocks(section(text_of("docs/limits.md"), "The limits"), "")[0].split()
    assert sorted(listed) == sorted(map(os.fsdecode, project_rules.REBUILDABLE))


def test_reasons_are_the_documented_ones() -> None:
    """Each reason for leaving something out is explained."""
    listed = first_column(section(text_of("docs/limits.md"), "The reasons"))
    assert listed == list(words.WORDS.values())


def test_bounds_of_ignore_rules_are_the_documented_ones() -> None:
    """Each bound has the value of the code."""
    table = rows(section(text_of("docs/limits.md"), "Ignore rules"))
    assert table
    given = {name: int(value.split()[0]) for name, value in table.items()}
    assert given == {name: getattr(ignore, name) for name in given}


def test_the_settings_of_the_example_work(cli: Cli, home: Path) -> None:
    """The example of a settings file is read, and what it says is obeyed."""
    example = blocks(text_of("docs/limits.md"), "toml")[0]
    assert "node_modules" in reasons_of(cli("checkpoint", "--json").json())
    (home / "config.toml").write_text(example)
    assert "node_modules" not in reasons_of(cli("checkpoint", "--json").json())


def reasons_of(checkpoint: dict[str, object]) -> dict[str, str]:
    """Why each path was left out."""
    left_out = checkpoint["left_out"]
    assert isinstance(left_out, list)
    return {left["path"]: left["reason"] for left in left_out}


# -- commands ----------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The project of the examples: some source, a secret that git ignores, a big node_modules."""
    folder = tmp_path / "shop"
    for number in range(250):
        write(folder / "node_modules" / f"{number}.js", f"{number}\n")
    write(folder / "src/pay.py", "def pay():\n    return 1\n")
    write(folder / ".env", "KEY=secret\n")
    write(folder / ".gitignore", ".env\nnode_modules\n")
    write(folder / ".git/HEAD", "ref: refs/heads/main\n")
    return folder


def write(path: Path, text: str) -> None:
    """Make a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def cli(shop: Path, home: Path) -> Cli:
    """Runs `takeback` in the shop, with a store of its own."""
    environment = {**os.environ, "TAKEBACK_HOME": str(home)}

    def run(*arguments: str, cwd: Path = shop) -> Answer:
        return Answer(program.text(arguments, cwd, environment))

    return run


# -- JSON --------------------------------------------------------------------------------------

RESTORES = "takeback undo, redo, rollback and apply"
SECTIONS = (
    "takeback",
    *(
        RESTORES if name == "undo" else f"takeback {name}"
        for name in COMMANDS
        if name not in {"apply", "demo", "hook", "mcp", "redo", "rollback", "statusline"}
    ),
    "Errors",
)


@pytest.mark.parametrize("title", SECTIONS)
def test_json_is_as_documented(title: str, cli: Cli, shop: Path, home: Path) -> None:
    """The fields in the table, in the example and in a real answer are the same."""
    documented = section(text_of("docs/json.md"), title)
    example = json.loads(blocks(documented, "json")[0])
    real = ANSWERS[title](cli, shop, home)
    assert first_column(documented) == list(real)
    assert list(example) == list(real)
    assert keys(example) == keys(real)


def test_every_section_about_json_is_tried() -> None:
    """No command has an answer that the test above does not compare."""
    titles = re.findall(r"^## (.*)$", text_of("docs/json.md"), re.MULTILINE)
    assert titles == list(SECTIONS)
    assert set(ANSWERS) == set(SECTIONS)


def keys(value: object) -> object:
    """The names in a JSON value, without the values; of a list, those of all its members."""
    if isinstance(value, dict):
        return {name: keys(inner) for name, inner in sorted(value.items())}
    if isinstance(value, list):
        merged: dict[str, object] = {}
        for inner in value:
            if isinstance(inner, dict):
                merged |= {name: keys(below) for name, below in inner.items()}
        return [dict(sorted(merged.items()))]
    return None


def _status(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    assert cli("--json").json() == {"project": None}
    cli("checkpoint")
    return cli("--json").json()


def _checkpoint(cli: Cli, shop: Path, _home: Path) -> dict[str, object]:
    os.mkfifo(os.fsencode(shop) + b"/p\xff")
    return cli("checkpoint", "--json").json()


def _run(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    answer = cli("run", "--json", "--", "sh", "-c", "echo out; echo new > src/new.py")
    assert answer.text == "out\n"
    said: dict[str, object] = json.loads(answer.notes.splitlines()[-1])
    return said


def _restores(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    cli("run", "--", "sh", "-c", "echo new > src/new.py; mkdir lib; mkfifo lib/pipe")
    trial = cli("undo", "--dry-run", "--json").json()
    undone = cli("apply", str(trial["plan"]), "--because", "it was wrong", "--json").json()
    others = [cli("redo", "--json").json(), cli("rollback", "@~1", "--yes", "--json").json()]
    assert [list(other) for other in (trial, *others)] == [list(undone)] * 3
    assert [other["done"] for other in (trial, *others)] == [False, True, True]
    cli("run", "-m", "price", "--", "sh", "-c", "echo 'price = 2' > src/pay.py")
    cli("run", "-m", "offer", "--", "sh", "-c", "echo 'price = 1' > src/pay.py")
    refused = cli("undo", "price", "--json")
    assert refused.code == 3
    plan = refused.json().pop("plan")
    assert isinstance(plan, dict)
    assert list(plan) == list(undone)
    return {**undone, "conflicts": plan["conflicts"], "dependents": plan["dependents"]}


def _log(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    cli("run", "--", "sh", "-c", "mv src/pay.py src/paid.py; mkfifo pipe")
    return cli("log", "--json").json()


def _show(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    inner = (sys.executable, "-I", "-m", "takeback", "run", "--", "mv", "src/pay.py", "src/paid.py")
    cli("run", "-m", "a step inside", "--", *inner)
    for ref in (("@",), ("@", ".env")):
        fields = ["turn", "checkpoint", "file", "now", "diff"]
        assert list(cli("show", *ref, "--json").json()) == fields
    return cli("show", "a step inside", "--json").json()


def _why(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    cli("run", "-m", "pay", "--", "sh", "-c", "echo new >> src/pay.py")
    cli("undo", "--because", "the tests fail")
    return cli("why", "--json").json()


def _sessions(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    cli("run", "--", "true")
    return cli("sessions", "--json").json()


def _push(shop: Path, home: Path) -> None:
    with takeback.open(shop, home=home) as project:
        session = project.session(agent="claude-code")
        session.turn("push it").effect("push", "git push origin main", reversible=False)


def _effects(cli: Cli, shop: Path, home: Path) -> dict[str, object]:
    _push(shop, home)
    return cli("effects", "--json").json()


def _guard(cli: Cli, shop: Path, home: Path) -> dict[str, object]:
    cli("guard", "autopilot")
    with pytest.raises(takeback.GuardRefused):
        _push(shop, home)
    return cli("guard", "--json").json()


def _diff(cli: Cli, shop: Path, _home: Path) -> dict[str, object]:
    cli("checkpoint")
    write(shop / "src/other.py", "other\n")
    cli("checkpoint")
    write(shop / ".env", "KEY=another\n")
    (shop / "src/pay.py").rename(shop / "src/paid.py")
    (shop / "src/other.py").unlink()
    return cli("diff", "@~1", "--json").json()


def _extract(cli: Cli, shop: Path, _home: Path) -> dict[str, object]:
    cli("checkpoint")
    return cli("extract", "@", str(shop.parent / "then"), "--json").json()


def _verify(cli: Cli, _shop: Path, home: Path) -> dict[str, object]:
    cli("checkpoint")
    assert cli("verify", "--json").json()["ok"] is True
    (pack,) = home.glob("projects/*/git/objects/pack/*.pack")
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.write_bytes(data)
    answer = cli("verify", "--json")
    assert answer.code == 4
    return answer.json()


def _doctor(cli: Cli, _shop: Path, home: Path) -> dict[str, object]:
    cli("checkpoint")
    assert cli("doctor", "--rebuild", "--json").json()["rebuilt"] is True
    (home / "config.toml").write_text("[limits]\nfiles = 3\n")
    return cli("doctor", "--json").json()


def _keep(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    cli("checkpoint")
    kept = cli("keep", "@", "-m", "release 1.0", "--json").json()
    released = cli("keep", "--release", "@", "--json").json()
    assert [list(each) for each in (released, cli("keep", "--json").json())] == [list(kept)] * 2
    return kept


def _gc(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    cli("run", "--", "sh", "-c", "echo new > src/new.py")
    trial = cli("gc", "--dry-run", "--json").json()
    done = cli("gc", "--json").json()
    assert list(trial) == list(done)
    return done


def _usage(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    cli("checkpoint")
    assert cli("usage", "--json").json()["shares"] == []
    return cli("usage", "--by", "agent", "--json").json()


def _relocate(cli: Cli, shop: Path, _home: Path) -> dict[str, object]:
    cli("checkpoint")
    shop.rename(shop.parent / "away")
    shutil.copytree(shop.parent / "away", shop)
    asked = cli("checkpoint", "--json")
    assert (asked.code, asked.json()["error"]) == (3, "ProjectIdentityError")
    return cli("relocate", "--new", "--json").json()


def _forget(cli: Cli, shop: Path, _home: Path) -> dict[str, object]:
    (shop / "copy").write_bytes((shop / ".env").read_bytes())
    cli("checkpoint")
    return cli("forget", ".env", "--yes", "--json").json()


def _projects(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    cli("run", "--", "true")
    return cli("projects", "--json").json()


def _config(cli: Cli, _shop: Path, home: Path) -> dict[str, object]:
    cli("checkpoint")
    (home / "config.toml").write_text("[retention]\ndays = 90\n[limits]\nfiles = 3\n")
    one = cli("config", "retention.days", "--json").json()
    return {**cli("config", "--json").json(), "settings": one["settings"]}


def _install(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    return cli("install", "claude-code", "--project", "--json").json()


def _uninstall(cli: Cli, shop: Path, home: Path) -> dict[str, object]:
    _install(cli, shop, home)
    return cli("uninstall", "claude-code", "--project", "--json").json()


def _lessons(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    cli("run", "--", "sh", "-c", "echo new > src/new.py; false")
    cli("undo", "--because", "the tests fail")
    return cli("lessons", "--json").json()


def _participants(cli: Cli, shop: Path, _home: Path) -> dict[str, object]:
    cli("checkpoint")
    keep = "/bin/sh -c 'echo token'"
    words = ["--name", "app", "--capture", keep, "--restore", "/bin/true"]
    assert shop.is_dir()
    assert cli("participant", "add", "command", *words).code == 0
    return cli("participant", "list", "--json").json()


def _errors(cli: Cli, _shop: Path, _home: Path) -> dict[str, object]:
    cli("checkpoint")
    answer = cli("extract", "@~9", "elsewhere", "--json")
    assert answer.code == answer.json()["exit_code"] == 2
    return answer.json()


def _watch(_cli: Cli, shop: Path, _home: Path) -> dict[str, object]:
    words = [sys.executable, "-I", "-m", "takeback", "watch", "--json"]
    with subprocess.Popen(words, cwd=shop, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        assert list(json.loads(watch.stdout.readline())) == ["watching", "session"]
        watch.send_signal(signal.SIGTERM)
        said: dict[str, object] = json.loads(watch.communicate()[0])
    return said


ANSWERS: dict[str, Callable[[Cli, Path, Path], dict[str, object]]] = {
    "takeback": _status,
    "takeback checkpoint": _checkpoint,
    "takeback run": _run,
    "takeback watch": _watch,
    RESTORES: _restores,
    "takeback log": _log,
    "takeback show": _show,
    "takeback why": _why,
    "takeback diff": _diff,
    "takeback sessions": _sessions,
    "takeback extract": _extract,
    "takeback verify": _verify,
    "takeback keep": _keep,
    "takeback gc": _gc,
    "takeback usage": _usage,
    "takeback doctor": _doctor,
    "takeback forget": _forget,
    "takeback relocate": _relocate,
    "takeback projects": _projects,
    "takeback config": _config,
    "takeback install": _install,
    "takeback uninstall": _uninstall,
    "takeback pause": lambda cli, _shop, _home: cli("pause", "--json").json(),
    "takeback resume": lambda cli, _shop, _home: (cli("pause"), cli("resume", "--json").json())[1],
    "takeback effects": _effects,
    "takeback lessons": _lessons,
    "takeback participant": _participants,
    "takeback guard": _guard,
    "takeback off": lambda cli, _shop, _home: cli("off", "--json").json(),
    "takeback on": lambda cli, _shop, _home: cli("on", "--json").json(),
    "takeback completion": lambda cli, _shop, _home: cli("completion", "fish", "--json").json(),
    "takeback man": lambda cli, _shop, _home: cli("man", "--json").json(),
    "Errors": _errors,
}
