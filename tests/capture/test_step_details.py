"""What is recorded of a tool call: where, with what, what came of it; and never a secret."""

import base64
import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

import takeback
from agents import Agent, Codex
from history import command
from takeback.ledger.log import events
from takeback.model.history import RecordedStep
from takeback.model.text.step_text import LIMIT, StepText
from takeback.objects.git_objects import BLOB, object_id

TOKEN = "ghp_" + "a1B2" * 9
"""A secret by its shape."""
VALUE = "correct horse battery"
"""One that only its file tells."""
WORD = "zebra-crossing-lamp"
"""Another, without blanks."""


def steps_of(project: takeback.Project) -> list[RecordedStep]:
    """The steps of the newest turn."""
    return list(project.turn(project.log().turns[0].id).steps)


def in_ledger(home: Path, *texts: str) -> list[str]:
    """Which of these texts stand anywhere in the ledger: in its bytes, its rows, its events."""
    (path,) = home.glob("projects/*/ledger.db")
    said = [path.read_bytes(), path.with_name("ledger.db-wal").read_bytes()]
    db = sqlite3.connect(path)
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for row in db.execute(f"SELECT * FROM {table}"):
            for value in row:
                if (
                    isinstance(value, bytes)
                    and table in ("events", "details")
                    and value[:1] == b"\1"
                ):
                    try:
                        value = events.unpack(value)
                    except ValueError:
                        continue
                said.append(value if isinstance(value, bytes) else str(value).encode())
    db.close()
    return [text for text in texts if any(text.encode() in each for each in said)]


# -- what is recorded ------------------------------------------------------------------------


@pytest.mark.parametrize("who", [Agent, Codex])
def test_a_call_is_recorded(tree: Path, home: Path, who: type[Agent]) -> None:
    """Input, output, exit code and where; which model, in which mode, of which version."""
    log = tree.parent / "log.jsonl"
    mark = "cli_version" if who is Codex else "version"
    log.write_text('{"type":"x","payload":{"' + mark + '":"2.3.4"}}\n')
    with takeback.open(tree, home=home) as project:
        agent = who(tree)
        agent.prompt("go", transcript_path=str(log))
        call = agent.begin(
            "Bash",
            {"command": "ls -l"},
            model="m",
            permission_mode="plan",
            transcript_path=str(log),
        )
        call.over("Exit code: 3\ntotal 0" if who is Codex else {"stdout": "total 0", "stderr": ""})
        (step,) = steps_of(project)
        assert step.cwd == str(tree)
        assert step.input == {"command": "ls -l"}
        assert "total 0" in (step.output or "")
        assert step.model == ("m" if who is Codex else step.model)
        assert (step.permission_mode, step.agent_version) == ("plan", "2.3.4")
        assert step.exit_code == (3 if who is Codex else 0)
        told = json.loads(command(tree, "show", step.id, "--json").out)
        (shown,) = told["turn"]["steps"]
        assert shown["input"] == step.input
        assert (shown["output"], shown["exit_code"]) == (step.output, step.exit_code)
        assert project.verify().ok


def test_the_api_records_as_well(tree: Path, home: Path) -> None:
    """A harness tells where a tool runs, and at its end what it said."""
    with takeback.open(tree, home=home) as project, project.session("x") as session:
        with session.turn("go") as turn:
            step = turn.step("Bash", {"command": "make"}, cwd=tree)
            step.end("failed", output="no rule\n", exit_code=2)
        (found,) = steps_of(project)
        assert (found.output, found.exit_code, found.cwd) == ("no rule\n", 2, str(tree))
        shown = command(tree, "show", turn.id).out
        assert "exit code 2" in shown
        assert "no rule" in shown


def test_long_texts_are_cut(tree: Path, home: Path) -> None:
    """Head and tail are recorded, 16 KiB in all, and how much is missing."""
    lines = [f"line {number} é" for number in range(20_000)]
    with takeback.open(tree, home=home) as project, project.session("x") as session:
        with session.turn("go") as turn:
            step = turn.step("Bash", {"command": "\n".join(lines).replace(" é", "")})
            step.end(output="\n".join(lines))
        (found,) = steps_of(project)
        assert isinstance(found.input, dict)
        for text in (str(found.output), str(found.input["command"])):
            assert text.startswith("line 0")
            assert text.endswith(("19999", "19999 é"))
            assert "bytes not recorded" in text
            assert len(text.encode()) <= LIMIT
        assert len(json.dumps(found.input, ensure_ascii=False).encode()) <= LIMIT


@pytest.mark.parametrize("letter", ["x", "ж", "漢", "🙂"])
def test_letters_of_all_scripts_count_alike(tree: Path, home: Path, letter: str) -> None:
    """The limit is in bytes of UTF-8, whatever the script; beyond it whole letters are recorded."""
    size = len(letter.encode())
    short, long = letter * (LIMIT * 5 // 8 // size), letter * (LIMIT * 2 // size)
    with takeback.open(tree, home=home) as project, project.session("x") as session:
        with session.turn("go") as turn:
            turn.step("Bash", {"command": short}).end(output=long)
            turn.step("Odd", {"many": [short, short]}).end(output=short)
        first, second = steps_of(project)
        assert first.input == {"command": short}
        assert second.output == short
        for text in (str(first.output), str(second.input)):
            assert LIMIT - 200 < len(text.encode()) <= LIMIT
            assert text.count("bytes not recorded") == 1
            assert "\\u" not in text
            assert "\ufffd" not in text


@pytest.mark.parametrize(
    "given",
    [
        {"a": [[[{"b": {"c": "\ud800"}}]]]},
        {"a": b"bytes", "b": {1: object}, "\ud800": None},
        {"many": [{"x": "y" * 50}] * 5000},
        {"content": "", "command": "\0"},
    ],
)
def test_any_input_is_recorded(tree: Path, home: Path, given: dict[str, Any]) -> None:
    """Whatever a tool is given, the step is there."""
    with takeback.open(tree, home=home) as project, project.session("x") as session:
        with session.turn("go") as turn:
            turn.step("Odd", given).end(output="\ud800 \0")
        (found,) = steps_of(project)
        assert found.input
        assert project.verify().ok


def test_deep_inputs_are_recorded() -> None:
    """No depth of an input is too deep."""
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert StepText(()).masked_input({"deep": deep}, None)


# -- contents --------------------------------------------------------------------------------


def test_contents_are_objects(tree: Path, home: Path) -> None:
    """A long content is told as the object that the checkpoint holds, and stored once."""
    content = "a line of code\n" * 200
    with takeback.open(tree, home=home) as project:
        agent = Agent(tree)
        agent.prompt("go")
        agent.edit("file", content)
        agent.stop()
        (step,) = steps_of(project)
        id = object_id(BLOB, content.encode()).hex()
        assert isinstance(step.input, dict)
        assert step.input["content"] == {"object": id, "bytes": len(content)}
        assert in_ledger(home, "a line of code") == []
        (named,) = [
            event for event in project.workspace.ledger.events() if events.objects_in(event.payload)
        ]
        assert events.objects_in(named.payload) == [bytes.fromhex(id)]
        assert not events.packs_in(named.payload)


@pytest.mark.parametrize("secret", [False, True])
def test_contents_that_never_were_in_the_tree_are_stored(
    tree: Path, home: Path, secret: bool
) -> None:
    """What the tool did not write as it was given is an object of the event; masked."""
    content = "a line of code\n" * 200 + (f"token = {TOKEN}\n" if secret else "")
    with takeback.open(tree, home=home) as project:
        agent = Agent(tree)
        agent.prompt("go")
        agent.begin("Write", {"file_path": str(tree / "file"), "content": content}).over("failed")
        agent.stop()
        (step,) = steps_of(project)
        given: Any = step.input
        id = bytes.fromhex(given["content"]["object"])
        project.gc(full=True)
        stored = project.workspace.store.objects.read(id)[1].decode()
        assert stored.startswith("a line of code\n")
        assert TOKEN not in stored
        assert (stored == content) != secret
        assert project.verify().ok


# -- secrets ---------------------------------------------------------------------------------


def test_secrets_are_masked_before_they_are_stored(tree: Path, home: Path) -> None:
    """By their shape, by what stands before them, and by the values of the project's own files."""
    (tree / "deep").mkdir()
    (tree / "deep" / ".env").write_text(f'NAME=x\nexport PHRASE="{VALUE}"\n')
    (tree / "server.key").write_text("-----BEGIN X-----\nQUJDREVGR0hJSktM\n-----END X-----\n")
    (tree / "mine.vault").write_text("my-own-secret-line\n")
    (home / "config.toml").write_text('[secrets]\nnames = ["*.vault"]\n')
    secrets = (TOKEN, VALUE, "QUJDREVGR0hJSktM", "my-own-secret-line", "hunter2hunter")
    with takeback.open(tree, home=home) as project:
        agent = Agent(tree)
        agent.prompt("go")
        said = f"{TOKEN} and {VALUE} and QUJDREVGR0hJSktM my-own-secret-line password=hunter2hunter"
        call = agent.begin("Bash", {"command": f"echo {said}", "deep": [{"x": said}]})
        call.over({"stdout": f"{said}\n" * 3, "stderr": said})
        agent.begin("Tool", {"password": "hunter2hunter", VALUE: "x"}).over(f"x{VALUE}y")
        agent.begin("Edit", {"file_path": "f", "old_string": said, "new_string": said * 99}).over()
        agent.stop()
        assert len(steps_of(project)) == 3
        assert in_ledger(home, *secrets) == []
        for step in steps_of(project):
            assert "••••" in json.dumps([step.input], ensure_ascii=False)
        agent.prompt("new")
        (tree / ".env").write_text("KEY=made-by-this-command\n")
        agent.begin("Bash", {"command": "cat .env"}).over("KEY=made-by-this-command")
        agent.stop()
        assert in_ledger(home, "made-by-this-command") == []


SPELLED = {
    "before a comment": (".env", f"A={WORD} # prod\n", WORD),
    "in quotes, before a comment": (".env", f'A="{WORD}" # prod\n', WORD),
    "in JSON on one line": ("credentials.json", json.dumps({"a": [WORD], "b": 1}), WORD),
    "in a list": ("secrets.json", json.dumps({"a": {"b": [WORD]}}, indent=1), WORD),
    "in .netrc": (".netrc", f"machine h.example login me password {WORD}\n", WORD),
    "in .pgpass": (".pgpass", f"localhost:5432:db:me:{WORD}\n", WORD),
    "in a URL": (".git-credentials", f"https://me:{WORD}@h.example\n", WORD),
    "in the URL of a setting": (".env", f"DB=postgres://me:{WORD}@h.example/db\n", WORD),
    "over several lines": (".env", f'A="first\n{WORD}"\n', WORD),
    "escaped": ("secrets.json", '{"a": "zebra\\"crossing\\nlamp-of-it"}', 'zebra"crossing'),
    "told as JSON": (".env", 'A=zebra"cross\\ing\n', 'zebra\\"cross\\\\ing'),
    "told in a URL": (".env", "A=zebra/cross+lamp\n", "zebra%2Fcross%2Blamp"),
    "in base64": (".env", f"A={WORD}\n", base64.b64encode(WORD.encode()).decode()),
    "in more base64": (".env", f"A={WORD}\n", base64.b64encode(f"me:{WORD}!".encode()).decode()),
}


@pytest.mark.parametrize("case", SPELLED)
def test_values_are_masked_however_they_are_spelled(tree: Path, home: Path, case: str) -> None:
    """A value is known where its file has more on a line, and where a tool says it in code."""
    name, content, told = SPELLED[case]
    (tree / name).write_text(content)
    with takeback.open(tree, home=home) as project:
        agent = Agent(tree)
        agent.prompt("go")
        agent.begin("Bash", {"command": f"say {told}"}).over({"stdout": f"it {told}", "stderr": ""})
        agent.stop()
        assert "it " in str(steps_of(project)[0].output)
        assert in_ledger(home, told, told[4:-4]) == []


@pytest.mark.parametrize("how", ["delete", "change", "move", "in the step before", "in between"])
def test_values_that_a_turn_removes_are_masked(tree: Path, home: Path, how: str) -> None:
    """A command shows a secret and deletes its file: the value of before is masked."""
    secret = tree / ".env"
    secret.write_text(f"A={WORD}\n")
    with takeback.open(tree, home=home) as project:
        agent = Agent(tree)
        agent.prompt("go")
        call = agent.begin("Bash", {"command": "cat .env; something"})
        if how == "change":
            secret.write_text("A=something-else\n")
        elif how == "move":
            secret.rename(tree / "elsewhere")
        elif how != "in between":
            secret.unlink()
        if how in ("in the step before", "in between"):
            call.over("done")
            secret.unlink(missing_ok=True)
            call = agent.begin("Bash", {"command": f"echo {WORD}"})
        call.over(f"A is {WORD}")
        agent.stop()
        assert in_ledger(home, WORD) == []
        assert project.verify().ok


def test_few_values_are_passed_over(tree: Path, home: Path) -> None:
    """Hundreds of keys of tests, also such as are gone, do not hide what is in use."""
    (tree / ".env").write_text(f"A={WORD}\n")
    (tree / "tests").mkdir()
    for number in range(300):
        (tree / "tests" / f"{number}.pem").write_text(f"key number {number}\n")
    with takeback.open(tree, home=home) as project:
        agent = Agent(tree)
        agent.prompt("go")
        agent.begin("Bash", {"command": "printenv"}).over(f"A={WORD}")
        agent.stop()
        assert len(steps_of(project)) == 1
        assert in_ledger(home, WORD) == []


PATCH = f"*** Begin Patch\n*** Add File: .env\n+A={WORD}\n*** End Patch\n"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("write", {"filePath": "ROOT/.env", "content": f"A={WORD}\n"}),
        ("write", {"filePath": "ROOT/.env", "content": f"A={WORD}\n" * 99}),
        ("edit_file", {"target_file": ".env", "code_edit": f"A={WORD}\n"}),
        ("Write", {"absolute_path": "ROOT/deep/.env", "content": f"A={WORD}\n"}),
        ("apply_patch", {"input": PATCH}),
        ("apply_patch", {"command": ["apply_patch", PATCH]}),
        ("mcp__files__write", {"path": ".env", "content": f"A={WORD}\n"}),
        (
            "MultiEdit",
            {"path": ".env", "edits": [{"old_string": "", "new_string": f"A={WORD}"}]},
        ),
    ],
)
def test_what_is_written_to_a_secret_file_is_masked(
    tree: Path, home: Path, tool: str, given: dict[str, Any]
) -> None:
    """The new content is known by the path that the call names, however its agent spells that."""
    given = {
        key: value.replace("ROOT", str(tree)) if isinstance(value, str) else value
        for key, value in given.items()
    }
    with takeback.open(tree, home=home) as project, project.session("x") as session:
        with session.turn("go") as turn:
            turn.step(tool, given).end(output="done")
        (step,) = steps_of(project)
        assert ".env" in json.dumps([step.input, step.summary])
        assert in_ledger(home, WORD) == []
        for _, oid in project.workspace.ledger.objects_named():
            assert WORD.encode() not in project.workspace.store.objects.read(oid)[1]


@pytest.mark.parametrize("inside", [True, False])
def test_what_is_read_from_a_secret_file_is_masked(tree: Path, home: Path, inside: bool) -> None:
    """Also if it was made since the last look, or lies outside the project."""
    with takeback.open(tree, home=home) as project, project.session("x") as session:
        with session.turn("go") as turn:
            secret = (tree if inside else tree.parent) / ".env"
            secret.write_text(f"A={WORD}\n")
            turn.step("Read", {"file_path": str(secret)}).end(output=f"1 A is {WORD}")
        assert "A is" in str(steps_of(project)[0].output)
        assert in_ledger(home, WORD) == []


@pytest.mark.parametrize("cut", range(LIMIT // 2 - 60, LIMIT // 2 + 20, 7))
def test_no_secret_is_cut_in_two(cut: int) -> None:
    """A secret at the place where a text is cut is masked, not halved."""
    for text in (
        "x " * (cut // 2) + VALUE + " y" * LIMIT * 2,
        "x " * LIMIT * 2 + VALUE + " y" * cut,
    ):
        shown = StepText([VALUE]).output(text)
        assert not any(VALUE[:size] in shown for size in range(6, len(VALUE)))


def test_it_can_be_turned_off(tree: Path, home: Path) -> None:
    """With `record.output = off` no input and no output is stored; the rest is."""
    takeback.open(tree, home=home).close()
    assert command(tree, "config", "record.output", "off").code == 0
    with takeback.open(tree, home=home) as project, project.session("x") as session:
        with session.turn("go") as turn:
            step = turn.step("Bash", {"command": "a long-command here"}, cwd=tree)
            step.end(output="some-output", exit_code=1)
        (found,) = steps_of(project)
        assert (found.input, found.output, found.exit_code) == (None, None, 1)
        assert found.cwd == str(tree)
        assert project.workspace.ledger._reader.rows("SELECT * FROM details") == []


# -- how long --------------------------------------------------------------------------------


def test_details_go_with_the_files_of_their_time(tree: Path, home: Path) -> None:
    """Retention deletes them and what they name; the log stays whole, and says what was done."""
    (home / "config.toml").write_text("[retention]\nturns = 20\n")
    with takeback.open(tree, home=home) as project, project.session("x") as session:
        for number in range(40):
            with session.turn(f"turn {number}") as turn:
                step = turn.step("Write", {"file_path": "f", "content": f"{number} " * 2000})
                (tree / "f").write_text(str(number))
                step.end(output=f"output {number}")
    with takeback.open(tree, home=home) as project:
        before = project.workspace.ledger._reader.rows("SELECT count(*) FROM details")[0][0]
        objects = len(project.workspace.ledger.objects_named())
        done = project.gc(max_age=1e-9)
        assert done.checkpoints
        assert (
            0 < project.workspace.ledger._reader.rows("SELECT count(*) FROM details")[0][0] < before
        )
        assert 0 < len(project.workspace.ledger.objects_named()) < objects
        first, last = project.log(limit=100).turns[-1], project.log().turns[0]
        assert project.turn(first.id).steps[0].output is None
        assert project.turn(last.id).steps[0].output == "output 39"
        assert project.verify().ok
        project.rebuild()
        assert project.verify().ok


def test_forgetting_a_path_takes_what_was_written_to_it(tree: Path, home: Path) -> None:
    """Input and contents of steps that named it go; those of others stay."""
    with takeback.open(tree, home=home) as project, project.session("x") as session:
        with session.turn("go") as turn:
            for name in ("gone", "stays"):
                given = {"file_path": name, "content": f"{name} text\n" * 200}
                turn.step("Write", given).end(output=f"wrote {name}")
                (tree / name).write_text("something else\n")
                turn.step("Edit", {"file_path": name, "old_string": f"short {name}"}).end()
        project.forget(["gone"])
        ids = [object_id(BLOB, (f"{name} text\n" * 200).encode()) for name in ("gone", "stays")]
        held = [project.workspace.store.objects.is_sound(oid) for oid in ids]
        assert held == [False, True]
        assert in_ledger(home, "short gone", "wrote gone") == []
        assert in_ledger(home, "short stays", "wrote stays") == ["short stays", "wrote stays"]
        assert project.verify().ok


def test_values_of_key_files_and_settings() -> None:
    """What counts as a value: not names, not short ones, not comments or headings."""
    from takeback.model.text import secrets

    env = b"# a comment here\nNAME = short\nexport A='long enough'\nB: \"also-long-enough\",\n"
    assert list(secrets.values_in(env, secrets.VALUES)) == ["long enough", "also-long-enough"]
    assert os.fsencode(".env") in secrets.among([b"a", b".ENV", b".env"])


def test_no_secret_file_takes_long() -> None:
    """Each step asks for the values: a strange line must not make it wait."""
    from takeback.model.text import secrets

    size = 1 << 18
    began = time.perf_counter()
    for piece in (rb"\"", b'"', b'"a', b'"\\', b"'a", b"://a:", b"a:", b"password ", b"x #", b"a"):
        line = b'A="' + piece * (size // len(piece))
        for value in secrets.values_in(line, secrets.VALUES):
            assert any(secrets.forms_of(value))
    assert time.perf_counter() - began < 5
