"""The public names of a project: what is not listed here is not promised, and not there."""

import takeback
from takeback import Project
from takeback.testing import Sandbox
from takeback.version import VERSION

VERBS = """
    apply checkpoint checkpoints close compare contents continue_forgetting copy_conversations
    effects extract find forget gc git_dir id keep kept lessons log now on_restore open origin
    plan_redo plan_rollback plan_undo planned read reader rebuild recorded recorder recover
    recovered redo register release relocate rescued retry_participants rollback root
    schedule_gc session sessions status turn undo undoable upkeep usage usage_by verify
""".split()


def test_the_verbs_of_a_project_are_frozen() -> None:
    """A project has these names, and the workspace that our own doors use."""
    assert sorted(name for name in dir(Project) if not name.startswith("_")) == VERBS
    with Sandbox() as box:
        assert [name for name in vars(box.project) if not name.startswith("_")] == ["workspace"]


def test_the_package_has_a_version() -> None:
    """As other packages have it."""
    assert takeback.__version__ == VERSION


def test_payloads_are_played_into_a_sandbox() -> None:
    """A prompt, a change, a stop: one turn, which can be undone; and nothing is left."""
    with Sandbox() as box:
        common = {"session_id": "S1", "cwd": box.tree, "prompt_id": "P1"}
        given = {"file_path": f"{box.tree}/a.txt", "content": "new"}
        call = {**common, "tool_name": "Write", "tool_use_id": "T1", "tool_input": given}
        box.write("a.txt", b"old")
        box.play(
            {**common, "hook_event_name": "UserPromptSubmit", "prompt": "change it"},
            {**call, "hook_event_name": "PreToolUse"},
        )
        box.write("a.txt", b"new")
        box.play(
            {**call, "hook_event_name": "PostToolUse", "tool_response": ""},
            {**common, "hook_event_name": "Stop"},
        )
        assert [turn.label for turn in box.project.log().turns] == ["change it"]
        box.project.undo()
        assert box.read("a.txt") == b"old"
