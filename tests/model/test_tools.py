"""What is known about the tools of agents: kinds, named paths and summaries of real calls."""

import json
import posixpath
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.model import tools
from takeback.model.words import AGENT, EDIT, KINDS, OTHER, READ, SHELL

PAYLOADS = Path(__file__).parents[1] / "support/payloads"

REAL = (
    ("claude-code-2.1.325/PreToolUse.Agent", AGENT, (), "sub job"),
    ("claude-code-2.1.325/PreToolUse.Bash", SHELL, (), "echo EXIT2 > exit2.txt"),
    ("claude-code-2.1.325/PreToolUse.Edit", EDIT, (b"/project/a.txt",), "/project/a.txt"),
    (
        "claude-code-2.1.325/PreToolUse.Read",
        READ,
        (b"/project/does-not-exist",),
        "/project/does-not-exist",
    ),
    (
        "claude-code-2.1.325/PreToolUse.Write",
        EDIT,
        (b"/project/DENYME.txt",),
        "/project/DENYME.txt",
    ),
    ("cline-3.0.65/PreToolUse.editor", EDIT, (b"/project/new.txt",), "/project/new.txt"),
    (
        "cline-3.0.65/PreToolUse.run_commands",
        SHELL,
        (),
        "sed -i s/one/ONE/ new.txt; rm victim.txt; echo x > bybash.txt",
    ),
    (
        "codex-0.166.0/PreToolUse.Bash",
        SHELL,
        (),
        "sed -i s/one/ONE/ new.txt; rm victim.txt; echo x > bybash.txt",
    ),
    ("codex-0.166.0/PreToolUse.apply_patch", EDIT, (b"new.txt",), "new.txt"),
    ("gemini-cli-0.61.0/BeforeTool.replace", EDIT, (b"/project/new.txt",), "/project/new.txt"),
    (
        "gemini-cli-0.61.0/BeforeTool.run_shell_command",
        SHELL,
        (),
        "sed -i s/one/ONE/ new.txt; rm victim.txt; echo x > bybash.txt",
    ),
    ("gemini-cli-0.61.0/BeforeTool.write_file", EDIT, (b"/project/new.txt",), "/project/new.txt"),
    (
        "opencode-1.18.33-plugin/tool.execute.before.bash",
        SHELL,
        (),
        "sed -i s/one/ONE/ new.txt; rm victim.txt; echo x > bybash.txt",
    ),
    (
        "opencode-1.18.33-plugin/tool.execute.before.edit",
        EDIT,
        (b"/project/new.txt",),
        "/project/new.txt",
    ),
    (
        "opencode-1.18.33-plugin/tool.execute.before.read",
        READ,
        (b"/project/nofile",),
        "/project/nofile",
    ),
    ("opencode-1.18.33-plugin/tool.execute.before.task", AGENT, (), "sub"),
    (
        "opencode-1.18.33-plugin/tool.execute.before.write",
        EDIT,
        (b"/project/new.txt",),
        "/project/new.txt",
    ),
)

NAMES = {
    EDIT: """
        Write Edit MultiEdit NotebookEdit write_file writeFile WriteFile replace edit_file
        create_file apply_patch ApplyPatch patch str_replace_editor str_replace_based_edit_tool
        text_editor_20250124 write_to_file replace_in_file StrReplace Delete delete_file
        search_replace create edit editor insert_edit_into_file replace_string_in_file
        mcp__filesystem__write_file mcp__fs__edit_file MCP__FileSystem__create_directory
    """,
    SHELL: """
        Bash bash BASH PowerShell shell local_shell exec_command write_stdin run_shell_command
        execute_command run_commands run_terminal_cmd run_in_terminal Shell python python3 Python
        code_interpreter execute_code bash_20250124 container.exec execute_bash Monitor
    """,
    READ: """
        Read Glob Grep LS WebFetch WebSearch TodoWrite AskUserQuestion BashOutput NotebookRead
        read_file read_many_files list_directory search_file_content view view_image update_plan
        codebase_search grep_search mcp__filesystem__read_text_file mcp__filesystem__directory_tree
    """,
    AGENT: "Agent Task task spawn_agent",
    OTHER: """
        Skill SlashCommand attempt_completion use_mcp_tool save_memory move_file batch unheard_of
        mcp__github__create_file mcp__mine__read_file mcp__filesystem__move_file
        mcp__filesystem mcp__ mcp__filesystem__ mcp__filesystem__Bash EnterWorktree
        readme writers bashful taskmaster
    """,
}

PATCH = """*** Begin Patch
*** Add File: docs/new file.md
+# Title
+*** Add File: only/content.md
*** Update File: src/old.py
*** Move to: src/new.py
@@ def f():
-    pass
+    return 1
*** Delete File: gone.txt\r
*** Update File:
*** End of File
*** End Patch"""
PATCHED = (b"docs/new file.md", b"src/old.py", b"src/new.py", b"gone.txt")

NAMED: tuple[tuple[str, Any, tuple[bytes, ...]], ...] = (
    ("Write", {"file_path": "a", "content": "*** Add File: b"}, (b"a",)),
    ("NotebookEdit", {"notebook_path": "n.ipynb"}, (b"n.ipynb",)),
    ("edit_file", {"target_file": "../x"}, (b"../x",)),
    ("write_file", {"absolute_path": "/a/b"}, (b"/a/b",)),
    ("edit", {"filePath": "a b"}, (b"a b",)),
    ("replace_file_content", {"TargetFile": "/p/a"}, (b"/p/a",)),
    ("multiedit", {"paths": ["a", "b", "a", 3, None, ["c"]]}, (b"a", b"b")),
    ("multi_replace_string_in_file", {"replacements": [{"filePath": "a"}, {"x": "b"}]}, (b"a",)),
    ("write_file", {"files": {"a": "text", "b": "text"}}, (b"a", b"b")),
    (
        "edit_file",
        {"path": "a", "edits": [{"path": "b"}, "c", {"path": ["d"]}]},
        (b"a", b"b", b"c"),
    ),
    ("Write", {"file_path": "caf\u00e9"}, ("caf\u00e9".encode(),)),
    ("Write", {"file_path": "odd\udcff"}, (b"odd\xff",)),
    ("Write", {"file_path": b"odd\xff"}, (b"odd\xff",)),
    ("apply_patch", {"command": PATCH}, PATCHED),
    ("apply_patch", {"input": PATCH}, PATCHED),
    ("ApplyPatch", {"patch": PATCH}, PATCHED),
    ("patch", {"patchText": PATCH}, PATCHED),
    ("apply_patch", {"command": ["apply_patch", PATCH]}, PATCHED),
    ("apply_patch", PATCH, PATCHED),
    ("Edit", {"input": PATCH}, PATCHED),
    ("Bash", {"command": PATCH, "path": "x"}, ()),
    ("Agent", {"prompt": "x", "path": "x"}, ()),
    ("unheard_of", {"path": "x", "text": PATCH}, (b"x",)),
    ("mcp__github__create_file", {"path": "x"}, (b"x",)),
    ("Write", {}, ()),
    ("Write", {"file_path": ""}, ()),
    ("Write", {"file_path": "a\0b"}, ()),
    ("Write", {"file_path": "half \ud800"}, ()),
    ("Write", {"file_path": "x" * 5000}, ()),
    ("Write", {"file_path": {"file_path": "x"}, "path": 7, "paths": 7, "edits": None}, ()),
    ("Write", {7: "x", None: "y", "file_path": "z"}, (b"z",)),
    ("Write", None, ()),
    ("Write", ["file_path"], ()),
    ("Write", MappingProxyType({"file_path": "a"}), (b"a",)),
)

SUMMARIES: tuple[tuple[str, Any, str], ...] = (
    ("Bash", {"command": "  ls \t -l\n\n rm x \n", "description": "look"}, "ls -l ⏎ rm x"),
    ("shell", {"command": ["bash", "-lc", "ls"]}, "bash -lc ls"),
    ("run_commands", {"commands": ["ls", "rm x", 7]}, "ls ⏎ rm x"),
    ("python", {"code": "import os\nos.remove('x')"}, "import os ⏎ os.remove('x')"),
    ("Bash", {"description": "only this"}, "only this"),
    ("Bash", {"command": "a\x00b\u2028c"}, "a\ufffdb ⏎ c"),
    ("Bash", {"command": "half \ud800"}, "half ?"),
    ("Bash", {"command": {"x": 1}}, ""),
    ("Grep", {"pattern": "def f", "path": "src"}, "def f"),
    ("Glob", {"pattern": "**/*.py"}, "**/*.py"),
    ("Read", {"file_path": "a.py"}, "a.py"),
    ("WebFetch", {"url": "https://example.org", "prompt": "what is it"}, "https://example.org"),
    ("Agent", {"prompt": "long story", "description": "short"}, "short"),
    ("apply_patch", {"input": PATCH}, "docs/new file.md and 3 more"),
    ("Write", {"file_path": "new\nline"}, "new ⏎ line"),
    ("mcp__x__y", {"query": "select 1"}, "select 1"),
    ("mcp__x__y", {"token": "secret", "n": 3}, ""),
    ("Write", None, ""),
)


def call_in(payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Tool and input of a recorded event, wherever its client puts them."""
    if "tool_name" in payload:
        return payload["tool_name"], payload["tool_input"]
    if "tool_call" in payload:
        return payload["tool_call"]["name"], payload["tool_call"]["input"]
    return payload["input"]["tool"], payload["output"]["args"]


def anything(value: object) -> Mapping[str, object]:
    """What a payload holds where an object should be."""
    return cast("Mapping[str, object]", value)


@pytest.mark.parametrize(("name", "kind", "paths", "summary"), REAL, ids=[row[0] for row in REAL])
def test_real_calls_are_understood(
    name: str, kind: str, paths: tuple[bytes, ...], summary: str
) -> None:
    """What the clients really send gives kind, paths and summary."""
    tool, given_to_it = call_in(json.loads((PAYLOADS / f"{name}.json").read_text()))
    assert tools.claim_of(tool, given_to_it) == (kind, paths)
    assert tools.summary_of(tool, given_to_it) == summary


def test_a_long_command_is_cut() -> None:
    """A real command of many lines becomes one line of at most 200 characters."""
    path = PAYLOADS / "claude-agent-sdk-py-0.2.182/PreToolUse.Bash.json"
    summary = tools.summary_of(*call_in(json.loads(path.read_text())))
    assert summary.startswith("rm gone.txt ⏎ sed -i 's/^line 03$/line 03 BASH/' sed.txt ⏎ printf")
    assert (len(summary), summary[-1]) == (tools.LONGEST_SUMMARY, "…")


@pytest.mark.parametrize("kind", KINDS)
def test_tools_are_known_by_name(kind: str) -> None:
    """Each name, in whatever spelling its client uses, is of the kind that we rely on."""
    names = NAMES[kind].split()
    assert {name: tools.kind_of(name) for name in names} == dict.fromkeys(names, kind)


def test_no_name_has_two_kinds() -> None:
    """The lists of names do not overlap, so that their order does not matter."""
    lists = (tools._EDITS, tools._SHELLS, tools._READS, tools._AGENTS)
    assert len(frozenset().union(*lists)) == sum(map(len, lists))
    assert {name for names in lists for name in names if tools._plain(name) != name} == set()


@pytest.mark.parametrize(("tool", "value", "paths"), NAMED)
def test_paths_are_found_where_they_are(tool: str, value: object, paths: tuple[bytes, ...]) -> None:
    """Paths are taken as given from every place where tools put them, and from nowhere else."""
    assert tools.named_paths(tool, anything(value)) == paths


@pytest.mark.parametrize(("tool", "value", "summary"), SUMMARIES)
def test_summaries_say_what_matters(tool: str, value: object, summary: str) -> None:
    """The line for people is the command, the path, the pattern or the task, whichever counts."""
    assert tools.summary_of(tool, anything(value)) == summary


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"file_path": "a"}, EDIT),
        ({"new_name_of_the_field": "a"}, OTHER),
        ({"paths": [str(number) for number in range(999)]}, EDIT),
        ({"paths": [str(number) for number in range(1001)]}, OTHER),
        ({"paths": ["same"] * 1001}, OTHER),
        ({"patch": "".join(f"*** Add File: {number}\n" for number in range(1001))}, OTHER),
    ],
    ids=["named", "unnamed", "many", "too many", "the same", "patch"],
)
def test_an_edit_that_names_not_all_its_files_may_claim_more(
    value: Mapping[str, object], kind: str
) -> None:
    """An edit tool whose files are not all known counts as a tool nobody told us about."""
    assert tools.claim_of("Write", value)[0] == kind


@pytest.mark.parametrize(
    ("root", "cwd", "path", "found"),
    [
        (b"/p", b"/p", b"a", b"a"),
        (b"/p", b"/p/sub", b"a", b"sub/a"),
        (b"/p", b"/p/sub", b"../a/./b//c/", b"a/b/c"),
        (b"/p", b"/p", b"/p/a", b"a"),
        (b"/p/", b"/p", b"//p/a", b"a"),
        (b"/p", b"/elsewhere", b"../p/a", b"a"),
        (b"/p", b"/p", b"x/../../p/a", b"a"),
        (b"/", b"/", b"a/b", b"a/b"),
        (b"/p", b"/p", b"\xff\n", b"\xff\n"),
        (b"/p", b"/p", b"/p", None),
        (b"/p", b"/p", b".", None),
        (b"/p", b"/p", b"..", None),
        (b"/p", b"/p", b"../../../..", None),
        (b"/p", b"/p", b"/pp/a", None),
        (b"/p", b"/p", b"/etc/passwd", None),
        (b"/p", b"/elsewhere", b"a", None),
        (b"/p", b"", b"a", None),
        (b"/p", b"", b"/p/a", b"a"),
        (b"", b"/p", b"/p/a", None),
        (b"/p", b"/p", b"", None),
        (b"/p", b"/p", b"a\0b", None),
    ],
)
def test_paths_are_told_by_the_root(
    root: bytes, cwd: bytes, path: bytes, found: bytes | None
) -> None:
    """A path is given relative to the root, and what is not below the root is not given."""
    assert tools.inside(root, cwd, path) == found


_name = st.sampled_from([b"p", b"a", b"..", b".", b"", b"q"])


@given(st.lists(_name, max_size=8), st.lists(_name, max_size=4), st.booleans())
def test_paths_are_resolved_as_python_does(
    names: list[bytes], place: list[bytes], absolute: bool
) -> None:
    """The result is what `os.path` makes of the same path, whatever dots it holds."""
    path = b"/" * absolute + b"/".join(names)
    cwd = b"/" + b"/".join(place)
    whole = b"/" + posixpath.normpath(posixpath.join(cwd, path)).lstrip(b"/")
    expected = whole.removeprefix(b"/p/") if path and whole.startswith(b"/p/") else None
    assert tools.inside(b"/p", cwd, path) == expected


_keys = st.sampled_from(
    ["file_path", "paths", "edits", "files", "command", "input", "pattern", "prompt", "path"]
)
_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(_keys | st.text(), inner),
    max_leaves=12,
)


@given(st.sampled_from([name for row in NAMES.values() for name in row.split()]), _anything)
def test_no_input_makes_trouble(tool: str, value: object) -> None:
    """Whatever a call holds, the answers are paths that can be and one line that can be stored."""
    kind, paths = tools.claim_of(tool, anything(value))
    assert kind in KINDS
    assert all(path and b"\0" not in path for path in paths)
    line = tools.summary_of(tool, anything(value))
    assert len(line) <= tools.LONGEST_SUMMARY
    assert line.splitlines() in ([line], [])
    line.encode()


HUGE: dict[str, Callable[[], dict[str, object]]] = {
    "same": lambda: {"paths": ["x"] * 2_000_000},
    "many": lambda: {"paths": [str(number) for number in range(500_000)]},
    "objects": lambda: {"edits": [{"path": str(number)} for number in range(200_000)]},
    "empty objects": lambda: {"edits": [{}] * 2_000_000},
    "keys": lambda: {str(number): "x" for number in range(500_000)},
    "patch": lambda: {"input": "*** Add File: a\n" * 300_000},
    "marks": lambda: {"input": "*** " * 2_000_000},
    "blanks": lambda: {"input": " " * 8_000_000 + "*** Add File: x"},
    "lines": lambda: {"input": "\n" * 8_000_000},
    "empty": lambda: {"command": " \n" * 4_000_000, "description": "\u2028" * 4_000_000},
    "long": lambda: {"file_path": "x" * 10_000_000},
}
"""Made when they are needed: every process that a test forks pays for what the runner holds."""


@pytest.mark.parametrize("name", HUGE)
def test_huge_inputs_are_bounded(name: str) -> None:
    """An input of megabytes is dealt with in a moment, and gives a bounded answer."""
    value = HUGE[name]()
    before = time.process_time()
    for tool in ("apply_patch", "Bash", "unheard_of"):
        assert len(tools.claim_of(tool, value)[1]) <= tools.MOST_PATHS
        assert len(tools.summary_of(tool, value)) <= tools.LONGEST_SUMMARY
    # Only what grows faster than the input takes minutes; a busy machine takes seconds.
    assert time.process_time() - before < 20


@pytest.mark.parametrize(
    "tool", ["", "x" * 1_000_000, "\ud800", "mcp__" * 100_000, None, 7, b"Bash"]
)
def test_names_that_are_none_are_other(tool: object) -> None:
    """A tool whose name is no name is one that nobody told us about."""
    name = cast("str", tool)
    assert tools.kind_of(name) == OTHER
    assert tools.summary_of(name, {"command": "x"}) == "x"


@pytest.mark.parametrize(
    ("name", "is_called"),
    [
        ("mcp__takeback__apply", "apply"),
        ("mcp__plugin_takeback_takeback__preview_undo", "preview_undo"),
        ("takeback-apply_asking", "apply_asking"),
        ("takeback_note_lesson", "note_lesson"),
        ("mcp_takeback_log", "log"),
        ("Takeback.status", "status"),
        ("apply", ""),
        ("mcp__other__apply", ""),
        ("mcp__takeback__delete", ""),
        ("mcp__takeback-files__apply", ""),
        ("takeback" * 20, ""),
    ],
)
def test_our_own_tools_are_known(name: str, is_called: str) -> None:
    """However an agent spells them; those of others that are called alike are not ours."""
    assert tools.our_tool(name) == is_called


def test_our_own_looks_are_reads() -> None:
    """What acts may change files; and previews are steps, by which their session is known."""
    for name in ("status", "log", "show", "diff", "lessons"):
        assert tools.kind_of(f"mcp__takeback__{name}") == READ
        assert not tools.acts_for_us(f"mcp__takeback__{name}")
    for name in ("checkpoint", "note_lesson", "preview_undo", "apply", "apply_asking"):
        assert tools.kind_of(f"mcp__takeback__{name}") == OTHER
        assert tools.acts_for_us(f"mcp__takeback__{name}")
    assert (
        tools.summary_of("mcp__takeback__apply", {"plan": "kqzvwxnm", "because": "b"}) == "kqzvwxnm"
    )
