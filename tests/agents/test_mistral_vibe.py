"""Mistral Vibe: turns without an event for the prompt, what it is answered, its settings."""

import json
import tomllib
from pathlib import Path

from recorded import Played, client
from takeback.agents import agent as kinds
from takeback.agents.agent import ASK, DENY, Answer
from takeback.agents.dialects.mistral_vibe import AGENT

VIBE = "mistral-vibe-3.0.2"
COMMON = {"session_id": "s", "cwd": "/project", "parent_session_id": None}


def begins(id: str, *texts: str) -> str:
    """A line of the journal: a turn begins."""
    message = [{"text": text, "type": "text"} for text in texts]
    said = {
        "client_command_id": id,
        "method": "turn/start",
        "params": {"injected": False, "message": message, "sessionId": "s"},
    }
    line = {"payload": said, "sequence": 1, "type": "command_reserved"}
    return json.dumps(line, separators=(",", ":"))


@client(VIBE)
def test_the_first_tool_begins_a_turn_named_by_its_prompt(played: Played) -> None:
    """Two prompts are two turns, also if the journal goes on in another file."""
    folder = played.tree.parent / "vibe/s"
    (folder / "journal").mkdir(parents=True)

    def tell(name: str, number: int) -> None:
        played.tell(name, transcript_path=str(folder), tool_call_id=f"call_{number}")

    for number, prompt in enumerate(("the first", "the second"), 1):
        lines = [begins(f"turn-{number}", prompt), '{"payload":{"kind":"hook"}}']
        (folder / f"journal/{number:016}.jsonl").write_text("\n".join(lines) + "\n")
        tell("pre_tool.file_system.bash", number)
        (played.tree / f"{number}.txt").write_text("b\n")
        tell("post_tool.file_system.bash", number)
        tell("post_agent", number)
        (played.tree / "a.txt").write_text(f"by hand {number}\n")
    first, second = played.turns()
    assert [(turn.agent, turn.label, turn.status) for turn in (first, second)] == [
        ("mistral-vibe", "the first", "done"),
        ("mistral-vibe", "the second", "done"),
    ]
    assert [change.path for change in second.changes] == ["2.txt"]
    assert [step.tool for step in first.steps] == ["bash"]
    played.project.undo()
    assert sorted(path.name for path in played.tree.iterdir()) == ["1.txt", "a.txt"]


def test_a_subagent_works_for_its_parent() -> None:
    """Its stop is not the turn's."""
    own = {**COMMON, "parent_session_id": "p"}
    tool = AGENT.read({**own, "hook_event_name": "pre_tool", "tool_name": "file_system.bash"})
    assert (tool.session, tool.subagent, tool.kind) == ("p", "s", kinds.BEFORE_TOOL)
    assert AGENT.read({**own, "hook_event_name": "post_agent"}).kind == kinds.OTHER


def test_verdicts_and_notes_as_it_reads_them() -> None:
    """A tool is denied with a reason; a note comes behind a tool; nothing else is said."""
    before = AGENT.read({**COMMON, "hook_event_name": "pre_tool", "tool_name": "bash"})
    after = AGENT.read({**COMMON, "hook_event_name": "post_tool", "tool_name": "bash"})
    stop = AGENT.read({**COMMON, "hook_event_name": "post_agent"})
    for verdict in (DENY, ASK):
        said = AGENT.answer(before, Answer(verdict, to_agent="no"))
        assert said == {"decision": "deny", "reason": "no"}
        assert AGENT.answer(stop, Answer(verdict, to_agent="no")) == {}
    assert AGENT.answer(before, Answer(to_agent="read again")) == {}
    assert AGENT.answer(after, Answer(to_agent="read again", to_user="hello")) == {
        "system_message": "hello",
        "hook_specific_output": {"additional_context": "read again"},
    }


def test_ends_of_tools_as_it_reports_them() -> None:
    """A command that fails is a success there; its code tells."""
    said = {**COMMON, "hook_event_name": "post_tool", "tool_name": "file_system.bash"}
    event = AGENT.read({**said, "tool_status": "success", "tool_output": {"returncode": 3}})
    assert (event.failed, event.exit_code) == (False, 3)
    assert AGENT.read({**said, "tool_status": "failure", "tool_error": "x"}).failed


def test_a_prompt_is_found_whatever_the_folder_holds(tmp_path: Path) -> None:
    """The newest file of the journal that begins a turn tells."""
    assert AGENT.newest_prompt(str(tmp_path)) == ("", "")
    assert AGENT.newest_prompt("\0") == ("", "")
    journal = tmp_path / "journal"
    journal.mkdir()
    (journal / "1.jsonl").write_text(begins("t1", "one", "two") + "\n")
    (journal / "2.jsonl").write_text('{"payload":{"method":"turn/start"}}\n[]\n{"method":"turn/sta')
    (journal / "notes").write_text("x")
    assert AGENT.newest_prompt(str(tmp_path)) == ("t1", "one\ntwo")


def test_each_hook_has_a_name_and_a_type() -> None:
    """As its settings want them."""
    hooks = tomllib.loads(AGENT.block("usual", "reporting"))["hooks"]
    assert [(hook["name"], hook["type"]) for hook in hooks] == [
        ("takeback-pre_tool", "pre_tool"),
        ("takeback-post_tool", "post_tool"),
        ("takeback-post_agent", "post_agent"),
    ]
