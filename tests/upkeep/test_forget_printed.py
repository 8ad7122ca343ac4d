"""Forget what tools printed of a file: the recorded output of `cat` holds all of it."""

import json

import pytest

from cases import Work
from takeback.model.text.step_text import LIMIT

LINES = ("the customer is Zanzibar Limited", "  and pays with his good name", "short")
CONTENT = "\n".join(LINES) + "\n"


def printed(work: Work, *outputs: str) -> str:
    """Let steps that name no file print something, forget the file, and return what is recorded."""
    work.put("notes.txt", CONTENT)
    work.put("other.txt", "what stays in the folder\n")
    with work.turn("look at it") as turn:
        for output in outputs:
            turn.step("Bash", {"command": "./look"}).end(output=output)
    for path in (work.tree / "notes.txt", work.tree / "other.txt"):
        path.unlink()
    preview = work.project.forget(["notes.txt"], dry_run=True)
    done = work.project.forget(["notes.txt"])
    assert done.touched is not None
    assert preview.touched is not None
    assert done.touched.events == preview.touched.events
    found = work.project.verify()
    assert [damage.what for damage in found.damage] == []
    steps = work.project.turn(turn.id).steps
    assert [step.input for step in steps] == [{"command": "./look"}] * len(outputs)
    return "\n".join(str(step.output) for step in steps)


@pytest.mark.parametrize(
    "output",
    [
        CONTENT,
        CONTENT.replace("\n", "\r\n"),
        "".join(f"notes.txt:{n}:{line}\n" for n, line in enumerate(LINES)),
        "".join(f"{n:6}\t{line}\n" for n, line in enumerate(LINES)),
        "".join(f"{n:6}→{line}\n" for n, line in enumerate(LINES)),
        json.dumps({"text": CONTENT, "isError": False}),
        json.dumps([{"type": "text", "text": json.dumps({"r": CONTENT})}]),
        f"A: {LINES[0]}",
        (CONTENT + "x" * 500) * (LIMIT // 100),
    ],
    ids=["cat", "crlf", "grep", "cat -n", "read", "json", "list", "told", "cut"],
)
def test_lines_of_a_forgotten_file_leave_the_output(work: Work, output: str) -> None:
    """However they were printed; what others said stays."""
    text = printed(work, output, "what stays in the folder\nexit\n")
    assert "Zanzibar" not in text
    assert "good name" not in text
    assert "(forgotten)" in text
    assert text.endswith("what stays in the folder\nexit\n")


def test_what_another_file_still_holds_stays(work: Work) -> None:
    """The same content under a name that is not forgotten may be printed."""
    work.put("copy.txt", CONTENT)
    assert "Zanzibar" in printed(work, CONTENT)
