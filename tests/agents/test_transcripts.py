"""What agents keep of their conversations is read leniently: never all of it on a hook's way."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.agents import transcripts
from takeback.agents.agent import ABOVE, BEGINNING, ELSEWHERE, PASSED
from takeback.agents.dialects import claude_code, codex
from talks import Rollout, Transcript, lines_of

PAYLOADS = Path(__file__).parents[1] / "support/payloads"
CLAUDE = PAYLOADS / "claude-code-2.1.325" / "_transcript-two-turns.jsonl"
CODEX = PAYLOADS / "codex-0.166.0" / "_rollout-two-turns.jsonl"
CLAUDES = claude_code.ClaudeCodeConversations()
CODEXS = codex.CodexConversations()


@pytest.fixture
def talk(tmp_path: Path) -> Transcript:
    """An empty conversation of Claude Code."""
    return Transcript(tmp_path / "S1.jsonl")


def at(second: int) -> float:
    """The time of a line, in seconds since 1970."""
    line = {"timestamp": f"2026-11-16T10:00:{second:02d}.000Z"}
    told = transcripts.seconds(line)
    assert told is not None
    return told


# -- lines -------------------------------------------------------------------------------------


@given(
    lines=st.lists(st.binary(max_size=60).map(lambda line: line.replace(b"\n", b"")), max_size=12),
    most=st.integers(1, 500),
    piece=st.integers(1, 40),
)
def test_the_end_of_a_file_is_read_in_pieces(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], most: int, piece: int
) -> None:
    """Backwards come the last lines, whole, however the pieces fall; none that is cut off."""
    path = tmp_path_factory.getbasetemp() / "lines"
    data = b"\n".join(lines)
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transcripts, "_AT_ONCE", piece)
        got = list(transcripts.backwards(str(path), most))
    whole = data.split(b"\n")
    if most >= len(data):
        assert got == (whole[::-1] if data else [])
    else:
        assert got == data[-most:].split(b"\n")[:0:-1]


def test_no_more_than_the_end_is_read(tmp_path: Path) -> None:
    """A file of any size costs what its end costs."""
    path = tmp_path / "big"
    with path.open("wb") as file:
        file.truncate(1 << 32)
        file.seek(0, 2)
        file.write(b'\n{"a":1}\n{"torn')
    first = next(line for line in map(transcripts.read, transcripts.backwards(str(path))) if line)
    assert first == {"a": 1}
    assert sum(map(len, transcripts.backwards(str(path)))) <= transcripts.MOST


@pytest.mark.parametrize("line", [b"", b"{", b"[1]", b"7", b'{"a":', b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_passed_over(line: bytes) -> None:
    """Torn lines and other things say nothing."""
    assert transcripts.read(line) is None


@pytest.mark.parametrize("path", ["", "/", "/no/such/file", "nul\0", "x" * 5000])
def test_a_file_that_cannot_be_read_says_nothing(path: str) -> None:
    """Whatever the payload calls a transcript, a hook goes on."""
    assert list(transcripts.backwards(path)) == []
    assert CLAUDES.interrupted_at(path, "P") is None
    assert list(CODEXS.before(path, "P")) == []


# -- interruptions -----------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [False, True])
def test_escape_ends_a_turn_of_claude_code(talk: Transcript, tool: bool) -> None:
    """The time of the mark is the end of the turn that was running."""
    talk.turn("P1", "first")
    talk.prompt("P2", "second")
    talk.interrupt("P2", tool=tool)
    second = talk._seconds
    assert CLAUDES.interrupted_at(str(talk.path), "P3") == at(second)


def test_also_if_the_next_prompt_is_written_already(talk: Transcript) -> None:
    """The prompt that is being told may be in the file or not."""
    talk.prompt("P1", "first")
    talk.interrupt("P1")
    second = talk._seconds
    talk.prompt("P2", "second")
    assert CLAUDES.interrupted_at(str(talk.path), "P2") == at(second)


def test_an_older_interruption_is_not_this_one(talk: Transcript) -> None:
    """A turn that ended, or was killed without a mark, was not interrupted at an older mark."""
    talk.prompt("P1", "first")
    talk.interrupt("P1")
    talk.prompt("P2", "killed in the middle")
    assert CLAUDES.interrupted_at(str(talk.path), "P3") is None
    talk.says("no, it goes on")
    assert CLAUDES.interrupted_at(str(talk.path), "P3") is None


def test_a_prompt_that_quotes_the_mark_is_none(talk: Transcript) -> None:
    """Only the mark by itself counts, not a text that is about it."""
    talk.prompt("P1", "[Request interrupted by user] is what it said; why? " + "x" * 100)
    assert CLAUDES.interrupted_at(str(talk.path), "P2") is None


def test_a_command_of_the_agent_itself_does_not_hide_it(talk: Transcript) -> None:
    """`/model` after Esc is written as the user's, and asks for nothing; `/review` does."""
    talk.prompt("P1", "first")
    talk.interrupt("P1")
    second = talk._seconds
    for said in ("<command-name>/model</command-name>", "<local-command-stdout>ok"):
        talk.add("user", promptId="C1", message={"role": "user", "content": said})
    assert CLAUDES.interrupted_at(str(talk.path), "P2") == at(second)
    command = {"role": "user", "content": "<command-name>/review</command-name>"}
    talk.add("user", promptId="C2", message=command)
    assert CLAUDES.interrupted_at(str(talk.path), "P2") is None


def test_escape_in_a_sub_agent_is_not_the_turns(talk: Transcript) -> None:
    """Lines of another chain tell nothing about this one."""
    talk.prompt("P1", "first")
    block = [{"type": "text", "text": "[Request interrupted by user]"}]
    talk.add("user", promptId="P1", isSidechain=True, message={"content": block})
    assert CLAUDES.interrupted_at(str(talk.path), "P2") is None


def test_a_turn_of_codex_is_aborted(tmp_path: Path) -> None:
    """`turn_aborted` ends the turn that ran; one of an older turn does not."""
    talk = Rollout(tmp_path / "r.jsonl", "S1")
    talk.prompt("T1", "first")
    talk.event("turn_aborted", turn_id="T1", reason="interrupted")
    assert CODEXS.interrupted_at(str(talk.path), "T2") == at(4)
    talk.prompt("T2", "second")
    assert CODEXS.interrupted_at(str(talk.path), "T2") == at(4)
    assert CODEXS.interrupted_at(str(talk.path), "T3") is None
    talk.event("task_complete", turn_id="T2")
    assert CODEXS.interrupted_at(str(talk.path), "T3") is None


# -- the line of prompts -----------------------------------------------------------------------


def test_the_prompts_before_one(talk: Transcript) -> None:
    """The nearest comes first, and then where it all began."""
    for number in (1, 2, 3):
        talk.turn(f"P{number}", "do it")
    found = list(CLAUDES.before(str(talk.path), "P3"))
    assert list(dict.fromkeys(found)) == [(ABOVE, "P2"), (ABOVE, "P1"), (BEGINNING, "")]


def test_a_prompt_that_is_not_written_yet(talk: Transcript) -> None:
    """Nobody can tell, and nobody says so."""
    talk.turn("P1", "do it")
    assert list(CLAUDES.before(str(talk.path), "P2")) == []


def test_who_goes_back_leaves_prompts_beside_the_line(talk: Transcript) -> None:
    """The new prompt follows on the first; the second is still in the file."""
    first = talk.turn("P1", "do it")
    talk.turn("P2", "do it")
    talk.leaf = first
    talk.prompt("P3", "do it otherwise")
    found = list(CLAUDES.before(str(talk.path), "P3"))
    assert found[:2] == [(PASSED, "P2"), (ABOVE, "P1")]


def test_also_a_prompt_that_was_only_answered(talk: Transcript) -> None:
    """A prompt without tools has one line only, which stands right behind the one it left."""
    first = talk.turn("P1", "do it")
    talk.prompt("P2", "what do you think?")
    talk.says("well")
    talk.leaf = first
    talk.prompt("P3", "do it otherwise")
    found = list(CLAUDES.before(str(talk.path), "P3"))
    assert found[:2] == [(PASSED, "P2"), (ABOVE, "P1")]


def test_a_summary_does_not_begin_a_conversation(talk: Transcript) -> None:
    """Behind a summary the line goes on, if the summary tells where; else nobody can tell."""
    end = talk.turn("P1", "do it")
    talk.leaf = None
    talk.add("system", subtype="compact_boundary", logicalParentUuid=end)
    talk.prompt("P2", "go on")
    found = [step for step in CLAUDES.before(str(talk.path), "P2") if step[0] != PASSED]
    assert list(dict.fromkeys(found)) == [(ABOVE, "P1"), (BEGINNING, "")]
    talk.leaf = None
    talk.add("system", subtype="compact_boundary")
    talk.prompt("P3", "go on")
    assert (BEGINNING, "") not in list(CLAUDES.before(str(talk.path), "P3"))


def test_turns_of_codex_that_were_rolled_back(tmp_path: Path) -> None:
    """What was taken back in the same file stands beside the line."""
    talk = Rollout(tmp_path / "r.jsonl", "S1")
    for number in (1, 2, 3):
        talk.turn(f"T{number}", "do it")
    talk.event("thread_rolled_back", num_turns=2)
    talk.prompt("T4", "do it otherwise")
    told = list(CODEXS.before(str(talk.path), "T4"))
    assert told == [(PASSED, "T3"), (PASSED, "T2"), (ABOVE, "T1"), (BEGINNING, "")]


def test_a_conversation_of_codex_in_several_files(tmp_path: Path) -> None:
    """Each file tells which one it goes on from, and up to where; that one may be older."""
    days = tmp_path / "sessions" / "2026" / "11"
    first = "01a1e05f-5f05-7db0-9761-f69102cd23d9"  # made on 2026-11-15
    talk = Rollout(days / "15" / f"rollout-x-{first}.jsonl", first)
    for number in (1, 2, 3):
        talk.turn(f"T{number}", "do it")
    second = "01a1e3c6-b570-7fc1-94e5-505aac1a48f4"  # and on 2026-11-16
    talk = talk.gone_back("T3", second, days / "16")
    for number in (4, 5):
        talk.turn(f"T{number}", "do it")
    talk = talk.gone_back("T5", "01a1e3c7-8f80-7813-8e6b-413540ead14e")
    talk.prompt("T6", "do it otherwise")
    told = list(CODEXS.before(str(talk.path), "T6"))
    assert told == [(ABOVE, "T4"), (ABOVE, "T2"), (ABOVE, "T1"), (BEGINNING, "")]
    (days / "15" / f"rollout-x-{first}.jsonl").unlink()
    assert list(CODEXS.before(str(talk.path), "T6")) == [(ABOVE, "T4"), (ELSEWHERE, "")]


def test_recorded_conversations_are_understood() -> None:
    """What the real clients wrote tells which prompt follows on which."""
    prompts = list(
        dict.fromkeys(line["promptId"] for line in lines_of(CLAUDE) if "promptId" in line)
    )
    assert len(prompts) == 2
    # Lines of the line itself were left out when it was recorded.
    assert list(CLAUDES.before(str(CLAUDE), prompts[1])) == [(PASSED, prompts[0])]
    contexts = [line["payload"] for line in lines_of(CODEX) if line["type"] == "turn_context"]
    turns = [context["turn_id"] for context in contexts]
    assert list(CODEXS.before(str(CODEX), turns[1])) == [(ABOVE, turns[0]), (BEGINNING, "")]
    assert CLAUDES.interrupted_at(str(CLAUDE), "P") is None
    assert CODEXS.interrupted_at(str(CODEX), "T") is None


def test_calls_of_one_answer_belong_together(tmp_path: Path) -> None:
    """As the real Claude Code writes them: a line each, with the message that they are part of."""
    path = str(CLAUDE.with_name("_transcript-torture-with-file-history.jsonl"))
    beside = CLAUDES.calls_beside(path, "toolu_7aa1f588341747cab3f65655")
    assert beside is not None
    assert len(beside) == 8
    assert "toolu_bc2862e3866d43b589fe11cf" in beside
    for call, known in [
        ("toolu_6e35db84795749b783dae957", ()),
        ("toolu_40e1ec1c0f3873744949d34b", None),
        ("", None),
    ]:
        assert CLAUDES.calls_beside(path, call) == known
    assert CLAUDES.calls_beside(str(tmp_path / "none.jsonl"), "toolu_1") == ()
    assert CODEXS.calls_beside(str(CODEX), "call_1") == ()
