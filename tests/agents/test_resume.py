"""`undo --resume`: a trimmed copy of the conversation to go on with; the original stays."""

import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import takeback
from agents import Agent
from takeback.agents import resume, transcripts
from takeback.agents.agent import CannotTrimError
from takeback.agents.dialects.claude_code import ClaudeCodeConversations
from takeback.agents.dialects.codex import CodexConversations
from takeback.cli.app import main
from takeback.disk import operations
from takeback.ledger.log import events
from talks import Claude, CodexTalk, Rollout, Transcript, lines_of

PAYLOADS = Path(__file__).parents[1] / "support/payloads"
CLAUDE = PAYLOADS / "claude-code-2.1.325"
CODEX = PAYLOADS / "codex-0.166.0" / "_rollout-two-turns.jsonl"
OLD = "01a1e05f-5f05-7db0-9761-f69102cd23d9"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "sync", False)


@pytest.fixture
def claude(tree: Path, home: Path, tmp_path: Path) -> Claude:
    """Claude Code that did two things."""
    del home
    agent = Claude(tree, tmp_path / "talks")
    agent.does("write one", one_txt="1\n")
    agent.does("write two", two_txt="2\n")
    return agent


@pytest.fixture
def run(tree: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in the project: exit code, what is printed, what is noted."""

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["-C", str(tree), *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def trimmed(path: Path, prompt: str) -> list[dict[str, Any]]:
    """The lines of a copy of a conversation of Claude Code."""
    return [json.loads(line) for line in ClaudeCodeConversations().trim(str(path), prompt).lines]


def require_whole(lines: list[dict[str, Any]]) -> None:
    """Every parent is in the file."""
    known = {line["uuid"] for line in lines if "uuid" in line} | {None}
    assert {line.get("parentUuid") for line in lines} <= known
    assert {line.get("logicalParentUuid") for line in lines} <= known


# -- Claude Code's lines -----------------------------------------------------------------------


class Model:
    """A conversation, and which lines belong to each turn and to those that it follows on."""

    def __init__(self, path: Path) -> None:
        self.talk = Transcript(path)
        self.lines: dict[str, list[str]] = {}
        """What is on the line up to the end of each turn."""
        self.ends: dict[str, list[tuple[str, int]]] = {}
        self.before: dict[str, list[str]] = {}

    def turn(self, follows: str, at: int, calls: list[int], *, is_summed_up: bool) -> None:
        """A prompt behind some turn, with batches of calls."""
        id = f"P{len(self.lines) + 1}"
        talk = self.talk
        above: list[str] = []
        talk.leaf = None
        if follows:
            talk.leaf, count = self.ends[follows][at % len(self.ends[follows])]
            above = self.lines[follows][:count]
        if is_summed_up and talk.leaf is not None:
            parent, talk.leaf = talk.leaf, None
            above = [
                *above,
                talk.add("system", subtype="compact_boundary", logicalParentUuid=parent),
            ]
            summary = {"role": "user", "content": "summary"}
            above.append(talk.add("user", isCompactSummary=True, message=summary))
        self.before[id] = above
        own = [talk.prompt(id, f"do {id}"), str(talk.leaf)]
        for number in calls:
            own += self._batch(id, number)
        text = [{"type": "text", "text": "done"}]
        own.append(talk.add("assistant", message={"role": "assistant", "content": text}))
        said = (own[-1], len(above) + len(own))
        own.append(talk.add("system", subtype="stop_hook_summary"))
        talk.aside("last-prompt", leafUuid=own[-1])
        talk.aside("summary", summary="so far", leafUuid=own[-1])
        self.lines[id] = above + own
        self.ends[id] = [said, (own[-1], len(above) + len(own))]

    def _batch(self, id: str, number: int) -> list[str]:
        """Calls at once: each result hangs on its own call; the line goes on from the last one."""
        uses = []
        for each in range(number):
            use = {"type": "tool_use", "id": f"{id}-{each}", "name": "Read", "input": {}}
            uses.append(self.talk.add("assistant", message={"content": [use]}))
        results = []
        for each, parent in enumerate(uses):
            self.talk.leaf = parent
            done = {"type": "tool_result", "tool_use_id": f"{id}-{each}", "content": "ok"}
            results.append(self.talk.add("user", promptId=id, message={"content": [done]}))
        return uses + results

    def noise(self, which: int) -> None:
        """What else is in such files."""
        leaf = self.talk.leaf
        if which == 0:
            self.talk.raw('{"type":"user","uuid":"torn')
        elif which == 1:
            self.talk.aside("of-a-later-version", anything=[1, {"x": None}])
        elif which == 2:
            self.talk.add("user", isSidechain=True, promptId="P1", message={"content": "aside"})
        elif which == 3:
            self.talk.aside("file-history-snapshot", messageId=leaf, snapshot={})
        else:
            self.talk.aside("api-request-blob", message={"content": "x" * 2000})


TURNS = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.integers(0, 1),
        st.lists(st.integers(1, 3), max_size=2),
        st.sampled_from([False, False, False, True]),
        st.lists(st.integers(0, 4), max_size=2),
    ),
    min_size=2,
    max_size=7,
)


@given(turns=TURNS, wanted=st.integers(0, 6))
def test_a_copy_has_exactly_the_line_before_the_prompt(
    tmp_path_factory: pytest.TempPathFactory,
    turns: list[tuple[int, int, list[int], bool, list[int]]],
    wanted: int,
) -> None:
    """Whatever tree of lines, and whatever else is in the file: the line before, and only that."""
    path = tmp_path_factory.mktemp("talk") / "S1.jsonl"
    model = Model(path)
    for back, at, calls, is_summed_up, noise in turns:
        known = ["", *model.lines]
        follows = known[max(0, len(known) - 1 - back)] if back < 5 else known[-1]
        model.turn(follows, at, calls, is_summed_up=is_summed_up)
        for which in noise:
            model.noise(which)
    before = path.read_bytes()
    prompt = list(model.lines)[wanted % len(model.lines)]
    expected = model.before[prompt]
    if not expected:
        with pytest.raises(CannotTrimError, match="begins-here"):
            trimmed(path, prompt)
    else:
        copy = ClaudeCodeConversations().trim(str(path), prompt)
        lines = [json.loads(line) for line in copy.lines]
        assert {line["uuid"] for line in lines if "uuid" in line} == set(expected)
        assert {line["sessionId"] for line in lines} == {copy.own_id}
        assert f"do {prompt}" not in json.dumps(lines)
        kept = set(expected)
        assert all(line.get("leafUuid") in {None, *kept} for line in lines)
        require_whole(lines)
    assert path.read_bytes() == before


@given(data=st.data())
def test_a_damaged_file_gives_a_whole_copy_or_a_reason(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Lines lost, torn, doubled or out of order: what comes of it is sound, or it is said why."""
    path = tmp_path_factory.mktemp("talk") / "S1.jsonl"
    talk = Transcript(path)
    for number in range(4):
        talk.turn(f"P{number}", "do it")
    lines = path.read_text().splitlines()
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(lines) - 1))
        how = data.draw(st.integers(0, 3))
        if how == 0:
            del lines[at]
        elif how == 1:
            lines[at] = lines[at][: data.draw(st.integers(0, 40))]
        elif how == 2:
            lines.insert(at, lines[data.draw(st.integers(0, len(lines) - 1))])
        else:
            lines.append(lines.pop(at))
    path.write_text("\n".join(lines))
    before = path.read_bytes()
    with suppress(CannotTrimError):
        found = trimmed(path, "P2")
        require_whole(found)
        assert any(line["type"] in ("user", "assistant") for line in found)
    assert path.read_bytes() == before


def test_a_summary_stays_as_it_is(tmp_path: Path) -> None:
    """What a summary stands for may never have been written; what it keeps of it has to stay."""
    talk = Transcript(tmp_path / "S1.jsonl")
    talk.turn("P1", "do it")
    talk.leaf = None
    talk.add("system", subtype="compact_boundary", logicalParentUuid="never written")
    talk.add("user", promptId="C", isCompactSummary=True, message={"content": "so far"})
    talk.add("attachment", attachment={"type": "file"})
    kept = talk.path.read_text().splitlines()
    talk.turn("P2", "and that")
    copy = ClaudeCodeConversations().trim(str(talk.path), "P2")
    lines = [json.loads(line) for line in copy.lines]
    expected = [line for line in map(json.loads, kept) if "uuid" in line]
    for line in expected:
        line["sessionId"] = copy.own_id
    assert [line for line in lines if "uuid" in line] == expected
    assert not copy.repaired


def test_recorded_conversations_can_be_trimmed() -> None:
    """What the real clients wrote is trimmed, though lines are missing there, and that is said."""
    for name in ("_transcript-two-turns.jsonl", "_transcript-torture-with-file-history.jsonl"):
        path = CLAUDE / name
        prompts = [line["promptId"] for line in lines_of(path) if "promptId" in line]
        copy = ClaudeCodeConversations().trim(str(path), prompts[-1])
        lines = [json.loads(line) for line in copy.lines]
        require_whole(lines)
        assert {line["promptId"] for line in lines if "promptId" in line} == {prompts[0]}
        assert copy.repaired
        assert copy.folder == "/project"
        assert not {"file-history-snapshot", "last-prompt"} & {line["type"] for line in lines}


def test_recorded_rollouts_can_be_trimmed() -> None:
    """The first turn stays as it was, under another name."""
    turns = [line["payload"] for line in lines_of(CODEX) if line["type"] == "turn_context"]
    copy = CodexConversations().trim(str(CODEX), turns[1]["turn_id"])
    lines = list(copy.lines)
    whole = CODEX.read_bytes().splitlines()
    assert len(lines) == 18
    assert [line.replace(copy.own_id.encode(), OLD.encode()) for line in lines] == whole[:18]
    assert json.loads(lines[0])["payload"]["id"] == copy.own_id
    assert copy.own_id[14] == "7"
    with pytest.raises(CannotTrimError, match="begins-here"):
        CodexConversations().trim(str(CODEX), turns[0]["turn_id"])


@given(
    turns=st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=2, max_size=6),
    wanted=st.integers(0, 5),
)
def test_a_copy_of_a_rollout_is_its_beginning(
    tmp_path_factory: pytest.TempPathFactory, turns: list[list[int]], wanted: int
) -> None:
    """Whatever lines there are, those before the turn are the copy; only the name differs."""
    path = tmp_path_factory.mktemp("talk") / "2026" / "11" / "16" / "rollout-x.jsonl"
    talk = Rollout(path, OLD)
    starts = []
    for number, noise in enumerate(turns):
        starts.append(len(path.read_bytes().splitlines()))
        talk.turn(f"T{number}", f"do {number}")
        for which in noise:
            talk.add(f"kind-{which}", {"thread_id": OLD, "text": f'"id":"{OLD}"'})
    before = path.read_bytes()
    at = wanted % len(turns)
    if at == 0:
        with pytest.raises(CannotTrimError):
            CodexConversations().trim(str(path), "T0")
        return
    copy = CodexConversations().trim(str(path), f"T{at}")
    lines = list(copy.lines)
    back = [line.replace(copy.own_id.encode(), OLD.encode()) for line in lines]
    assert back == before.splitlines()[: starts[at]]
    for line in map(json.loads, lines):
        # A text is somebody's words, also if it looks like a name.
        assert OLD not in json.dumps({**line["payload"], "text": ""})
    assert Path(copy.path).parent.parent.parent.parent == path.parent.parent.parent.parent
    assert path.read_bytes() == before


def test_a_copy_of_several_files_is_one(tmp_path: Path) -> None:
    """What Codex left in files that go on from each other becomes one, numbered from the start."""
    first = Rollout(tmp_path / f"rollout-x-{OLD}.jsonl", OLD)
    for number in (1, 2):
        first.turn(f"T{number}", f"do {number}")
    second = first.gone_back("T2", "other")
    second.turn("T3", "do 3")
    second.turn("T4", "do 4")
    copy = CodexConversations().trim(str(second.path), "T4")
    lines = [json.loads(line) for line in copy.lines]
    assert [line["ordinal"] for line in lines] == list(range(len(lines)))
    assert [line["type"] for line in lines].count("session_meta") == 1
    said = json.dumps(lines)
    assert [f"do {number}" in said for number in (1, 2, 3, 4)] == [True, False, True, False]
    assert OLD not in said
    first.path.unlink()
    with pytest.raises(CannotTrimError, match="part-missing"):
        CodexConversations().trim(str(second.path), "T4")


@pytest.mark.parametrize("prompt", ["", "nobody"])
def test_a_prompt_that_is_not_there(tmp_path: Path, prompt: str) -> None:
    """It is said, in both formats, and also if there is no file at all."""
    talk = Transcript(tmp_path / "S1.jsonl")
    talk.turn("P1", "do it")
    rollout = Rollout(tmp_path / "r.jsonl", OLD)
    rollout.turn("T1", "do it")
    with pytest.raises(CannotTrimError, match="prompt-missing"):
        ClaudeCodeConversations().trim(str(talk.path), prompt)
    with pytest.raises(CannotTrimError, match="prompt-missing"):
        CodexConversations().trim(str(rollout.path), prompt)
    for form in (ClaudeCodeConversations(), CodexConversations()):
        with pytest.raises(CannotTrimError, match="unreadable"):
            form.trim(str(tmp_path / "none.jsonl"), prompt)
    with pytest.raises(CannotTrimError, match="unknown-format"):
        CodexConversations().trim(str(tmp_path / "r.jsonl.zst"), prompt)


# -- the command -------------------------------------------------------------------------------


def test_undo_and_go_on(claude: Claude, tree: Path, run: Run) -> None:
    """The files go back, and beside the conversation lies one that ends where they are."""
    before = claude.talk.path.read_bytes()
    code, _, notes = run("undo", "--resume")
    assert code == 0
    assert not (tree / "two.txt").exists()
    assert claude.talk.path.read_bytes() == before
    (copy,) = set(claude.talk.path.parent.iterdir()) - {claude.talk.path}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    lines = lines_of(copy)
    require_whole(lines)
    said = json.dumps(lines)
    assert "write one" in said
    assert "write two" not in said
    wanted = f"`cd /project && claude --resume {copy.stem}` continues the conversation"
    resume, last = notes.splitlines()[-2:]
    assert resume == f'{wanted} as it was before "write two"'
    assert last == "`takeback redo` puts it back"


def test_what_json_says(claude: Claude, run: Run) -> None:
    """All that a program needs to go on, and the event in the log."""
    code, out, _ = run("undo", "--resume", "--json")
    (made,) = json.loads(out)["conversations"]
    assert code == 0
    assert Path(made["transcript"]).parent == claude.talk.path.parent
    assert Path(made["transcript"]).stem == made["id"]
    assert made["command"] == f"claude --resume {made['id']}"
    assert (made["folder"], made["problem"], made["repaired"]) == ("/project", None, False)
    with takeback.open(claude.tree) as project:
        (event,) = project.workspace.ledger.events_of(events.CONVERSATION_COPIED)
    payload = event.payload or {}
    assert (payload["from"], payload["to"]) == ("S1", made["id"])
    assert payload["restore"] == json.loads(out)["id"]


def test_the_copy_gets_the_note(claude: Claude, tree: Path, run: Run) -> None:
    """Its first prompt is told what happened to the files, without the prompt that is gone."""
    out = run("undo", "--resume", "--because", "wrong way", "--json")[1]
    (made,) = json.loads(out)["conversations"]
    new = Agent(tree, made["id"])
    said = new.prompt("go on")["hookSpecificOutput"]["additionalContext"]
    assert "This conversation was taken back to here" in said
    assert 'Reason given: "wrong way"' in said
    assert '"two.txt" (removed)' in said
    assert "write two" not in said
    assert new.prompt("and on") == {}
    assert "write two" in json.dumps(claude.prompt("the old one goes on"))


def test_what_happens_before_the_copy_goes_on_is_told_too(
    claude: Claude, tree: Path, run: Run
) -> None:
    """A second undo after the copy was made is about a turn that the copy has."""
    del claude
    out = run("undo", "--resume", "--json")[1]
    (made,) = json.loads(out)["conversations"]
    run("undo")
    said = Agent(tree, made["id"]).prompt("go on")["hookSpecificOutput"]["additionalContext"]
    assert 'The user took back what you did for the prompt "write one".' in said
    assert "write two" not in said


def test_only_the_conversation(claude: Claude, tree: Path, run: Run) -> None:
    """`--only conversation` leaves the files, and the copy is told so."""
    code, out, notes = run("undo", "--only", "conversation")
    assert code == 0
    assert (tree / "two.txt").exists()
    assert "the files stay as they are" in out
    assert "claude --resume" in notes
    (copy,) = set(claude.talk.path.parent.iterdir()) - {claude.talk.path}
    said = Agent(tree, copy.stem).prompt("go on")["hookSpecificOutput"]["additionalContext"]
    assert "The files were not taken back." in said


def test_only_the_conversation_from_the_middle(claude: Claude, run: Run) -> None:
    """Who names a turn gets the conversation before it, whatever came later."""
    claude.does("write three", three_txt="3\n")
    assert run("undo", "write two", "--only", "conversation")[0] == 0
    (copy,) = set(claude.talk.path.parent.iterdir()) - {claude.talk.path}
    said = copy.read_text()
    assert "write one" in said
    assert "write two" not in said
    assert "write three" not in said


def test_only_the_files(claude: Claude, tree: Path, run: Run) -> None:
    """`--only files` is what undo does anyway."""
    assert run("undo", "--only", "files")[0] == 0
    assert not (tree / "two.txt").exists()
    assert list(claude.talk.path.parent.iterdir()) == [claude.talk.path]


def test_in_the_middle_the_conversation_stays(claude: Claude, tree: Path, run: Run) -> None:
    """Later turns stay in the files, so a conversation without them would not fit: it is said."""
    claude.does("write three", three_txt="3\n")
    code, _, notes = run("undo", "write two", "--resume", "--yes")
    assert code == 0
    assert not (tree / "two.txt").exists()
    assert "1 later turn of it would stay; the agent gets a note instead" in notes
    assert list(claude.talk.path.parent.iterdir()) == [claude.talk.path]


def test_talk_since_then_does_not_hinder(claude: Claude, run: Run) -> None:
    """Turns that changed nothing are not part of the files."""
    claude.does("what do you think?")
    assert run("undo", "--resume")[0] == 0
    (copy,) = set(claude.talk.path.parent.iterdir()) - {claude.talk.path}
    assert "what do you think?" not in copy.read_text()


def test_what_cannot_be_trimmed_is_said(claude: Claude, tree: Path, run: Run) -> None:
    """The file is gone: the files are undone all the same, and the exit code is that of an undo."""
    claude.talk.path.unlink()
    code, _, notes = run("undo", "--resume")
    assert code == 0
    assert not (tree / "two.txt").exists()
    assert "cannot continue from before" in notes
    assert "its file cannot be read: No such file or directory" in notes
    code, _, notes = run("undo", "--only", "conversation")
    assert code == 1
    assert "nothing was changed" in notes
    assert (tree / "one.txt").exists()


def test_other_agents_say_so(tree: Path, home: Path, run: Run) -> None:
    """Nobody knows how a script keeps its conversation."""
    del home
    with takeback.open(tree) as project, project.session("script") as one, one.turn("write"):
        (tree / "a.txt").write_text("1\n")
    code, _, notes = run("undo", "--resume")
    assert code == 0
    assert "does not know where script keeps its conversations" in notes


@pytest.mark.parametrize("broken", ["create", "write", "fsync"])
def test_a_full_disk_leaves_nothing(
    claude: Claude, tree: Path, run: Run, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """If the copy cannot be written, there is none; the files are undone all the same."""
    is_copying = False

    def fail(step: str, args: tuple[object, ...]) -> None:
        nonlocal is_copying
        is_copying = is_copying or (step == "create" and str(args[0]).endswith(".jsonl"))
        if is_copying and step == broken:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(operations, "hook", fail)
    code, _, notes = run("undo", "--resume")
    assert code == 0
    assert "the copy cannot be written: No space left on device" in notes
    assert not (tree / "two.txt").exists()
    assert list(claude.talk.path.parent.iterdir()) == [claude.talk.path]


def test_a_file_that_is_there_is_never_written(
    claude: Claude, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should the new name be taken, by whatever chance, what is there stays."""
    taken = claude.talk.path.with_name("taken.jsonl")
    taken.write_text("mine\n")
    monkeypatch.setattr(transcripts, "uuid4", lambda: "taken")
    with takeback.open(claude.tree) as project:
        turn = project.log(1).turns[0].id
        (made,) = resume.before_turns(project.workspace.ledger, project.workspace.held, [turn])
    assert (made.problem, made.fact) == ("unwritable", "File exists")
    assert taken.read_text() == "mine\n"


def test_rollback_takes_conversations_along(
    claude: Claude, tree: Path, tmp_path: Path, run: Run
) -> None:
    """All agents that went on since then can go on from there; who began later has nothing to."""
    other = CodexTalk(tree, tmp_path / "sessions" / "2026" / "11" / "16", OLD)
    other.does("write a", a_txt="1\n")
    ref = json.loads(run("log", "--json")[1])["turns"][0]["id"]
    other.does("write b", b_txt="1\n")
    claude.does("write three", three_txt="3\n")
    late = Claude(tree, tmp_path / "late", "S9")
    late.does("write nine", nine_txt="9\n")
    code, out, _ = run("rollback", ref, "--resume", "--yes", "--json")
    assert code == 0
    made = json.loads(out)["conversations"]
    assert {each["agent"] for each in made if each["id"]} == {"claude-code", "codex"}
    problems = [(each["problem"], each["why"]) for each in made if each["problem"]]
    assert problems == [("begins-here", "the conversation begins with this turn")]
    texts = {each["agent"]: Path(each["transcript"]).read_text() for each in made if each["id"]}
    assert "write two" in texts["claude-code"]
    assert "write three" not in texts["claude-code"]
    assert "write a" in texts["codex"]
    assert "write b" not in texts["codex"]
    (codex_copy,) = [each for each in made if each["agent"] == "codex"]
    assert codex_copy["command"] == f"codex resume {codex_copy['id']}"
    assert codex_copy["id"] in os.path.basename(codex_copy["transcript"])


@pytest.mark.parametrize(
    "words",
    [
        ("undo", "--only", "everything"),
        ("undo", "--only", "files", "--resume"),
        ("undo", "--resume", "--", "two.txt"),
        ("rollback", "@~1", "--only", "conversation", "--", "two.txt"),
    ],
)
def test_what_makes_no_sense_is_refused(
    claude: Claude, tree: Path, run: Run, words: tuple[str, ...]
) -> None:
    """With 2, before anything is done."""
    del claude
    assert run(*words)[0] == 2
    assert (tree / "two.txt").exists()


def test_a_trial_writes_nothing(claude: Claude, run: Run) -> None:
    """`--dry-run` makes no copy either."""
    assert run("undo", "--resume", "--dry-run")[0] == 0
    assert run("undo", "--only", "conversation", "--dry-run")[0] == 0
    assert list(claude.talk.path.parent.iterdir()) == [claude.talk.path]


def test_a_copy_can_be_trimmed_again(claude: Claude, tree: Path, run: Run) -> None:
    """The agent goes on in the copy, and that turn is taken back in its turn."""
    run("undo", "--resume")
    (copy,) = set(claude.talk.path.parent.iterdir()) - {claude.talk.path}
    new = Claude(tree, copy.parent, copy.stem)
    new.talk.leaf = [line["uuid"] for line in lines_of(copy) if "uuid" in line][-1]
    new.does("write four", four_txt="4\n")
    out = run("undo", "--resume", "--json")[1]
    (made,) = json.loads(out)["conversations"]
    assert made["problem"] is None
    lines = lines_of(made["transcript"])
    require_whole(lines)
    assert "write one" in json.dumps(lines)
    assert "write four" not in json.dumps(lines)
