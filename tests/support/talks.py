"""Conversations as Claude Code and Codex keep them, written line by line as these do."""

import json
import uuid
from pathlib import Path
from typing import Any

from agents import Agent, Codex

WHEN = "2026-11-16T10:00:%02d.000Z"


class Transcript:
    """A file of Claude Code: a tree of lines that only grows."""

    def __init__(self, path: Path, session: str = "S1") -> None:
        self.path = path
        self.session = session
        self.leaf: str | None = None
        self._seconds = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def add(self, kind: str, **more: Any) -> str:  # noqa: ANN401 -- as JSON has it
        """A line of the tree, behind the last one unless told otherwise."""
        self._seconds += 1
        own = str(uuid.UUID(int=len(self.path.read_bytes()) + 1))
        line = {
            "parentUuid": self.leaf,
            "isSidechain": False,
            "type": kind,
            "uuid": own,
            "timestamp": WHEN % (self._seconds % 60),
            "cwd": "/project",
            "sessionId": self.session,
            **more,
        }
        self.raw(json.dumps(line, separators=(",", ":")))
        if line["isSidechain"] is False:
            self.leaf = own
        return own

    def raw(self, line: str) -> None:
        """Any line."""
        with self.path.open("a") as file:
            file.write(line + "\n")

    def aside(self, kind: str, **more: Any) -> None:  # noqa: ANN401
        """A line that belongs to nothing."""
        said = {"type": kind, "sessionId": self.session, **more}
        self.raw(json.dumps(said, separators=(",", ":")))

    def prompt(self, id: str, text: str) -> str:
        """Somebody asks for something."""
        self.aside("queue-operation", operation="enqueue", content=text)
        said = {"role": "user", "content": text}
        own = self.add("user", promptId=id, message=said)
        self.add("attachment", attachment={"type": "date"})
        return own

    def call(self, id: str, name: str = "Write") -> str:
        """The model calls a tool, and its result comes back."""
        self.aside("api-request", id=str(self._seconds), params="x" * 300)
        use = {"type": "tool_use", "id": f"toolu_{self._seconds}", "name": name, "input": {}}
        self.add("assistant", message={"role": "assistant", "content": [use]})
        done = {"type": "tool_result", "tool_use_id": use["id"], "content": "ok"}
        return self.add("user", promptId=id, message={"role": "user", "content": [done]})

    def says(self, text: str, *, stops: bool = True) -> str:
        """The model says something, and stops."""
        block = {"type": "text", "text": text}
        own = self.add("assistant", message={"role": "assistant", "content": [block]})
        if stops:
            own = self.add("system", subtype="stop_hook_summary")
            self.aside("last-prompt", lastPrompt="…", leafUuid=own)
        return own

    def turn(self, id: str, text: str) -> str:
        """A whole turn; the last line of it."""
        self.prompt(id, text)
        self.call(id)
        return self.says(f"done with {id}")

    def interrupt(self, id: str, *, tool: bool = False) -> str:
        """Somebody presses Esc."""
        mark = "[Request interrupted by user" + (" for tool use]" if tool else "]")
        block = {"type": "text", "text": mark}
        return self.add("user", promptId=id, message={"role": "user", "content": [block]})


class Rollout:
    """A file of Codex: one line after the other."""

    def __init__(self, path: Path, session: str, **base: Any) -> None:  # noqa: ANN401
        self.path = path
        self.session = session
        self._lines = base["end_ordinal_exclusive"] if base else 0
        path.parent.mkdir(parents=True, exist_ok=True)
        meta = {"id": session, "session_id": session, "cwd": "/project", "originator": "codex"}
        self.add("session_meta", {**meta, "history_base": base} if base else meta)

    def gone_back(self, before: str, id: str, folder: Path | None = None) -> "Rollout":
        """The file in which the conversation goes on from before a turn."""
        data = self.path.read_bytes()
        lines = data.splitlines(keepends=True)
        first = next(n for n, line in enumerate(lines) if f'"turn_id":"{before}"'.encode() in line)
        return Rollout(
            (folder or self.path.parent) / f"rollout-2026-11-16T11-00-00-{self.session}_{id}.jsonl",
            self.session,
            thread_id=self.path.stem.rpartition("_")[2] if "_" in self.path.stem else self.session,
            end_ordinal_exclusive=json.loads(lines[first])["ordinal"],
            end_byte_offset=sum(map(len, lines[:first])),
        )

    def add(self, kind: str, payload: dict[str, Any]) -> None:
        """A line."""
        line = {
            "timestamp": WHEN % (self._lines % 60),
            "ordinal": self._lines,
            "type": kind,
            "payload": payload,
        }
        self._lines += 1
        with self.path.open("a") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def event(self, kind: str, **more: Any) -> None:  # noqa: ANN401
        """Something happens."""
        self.add("event_msg", {"type": kind, **more})

    def prompt(self, id: str, text: str) -> None:
        """Somebody asks for something."""
        self.event("task_started", turn_id=id)
        self.add("turn_context", {"turn_id": id, "cwd": "/project"})
        said = [{"type": "input_text", "text": text}]
        told = {"internal_chat_message_metadata_passthrough": {"turn_id": id}}
        self.add("response_item", {"type": "message", "role": "user", "content": said, **told})

    def turn(self, id: str, text: str) -> None:
        """A whole turn."""
        self.prompt(id, text)
        item = {"type": "AgentMessage", "text": f"done with {id}"}
        self.event("item_completed", thread_id=self.session, turn_id=id, item=item)
        self.event("task_complete", turn_id=id)


class Claude(Agent):
    """Claude Code that works, tells hooks, and keeps its conversation."""

    def __init__(self, tree: Path, folder: Path, session: str = "S1") -> None:
        super().__init__(tree, session)
        self.talk = Transcript(folder / f"{session}.jsonl", session)

    def common(self) -> dict[str, Any]:
        """With where the conversation is."""
        return {**super().common(), "transcript_path": str(self.talk.path)}

    def does(self, text: str, **files: str) -> str:
        """A whole turn that writes files; where it ends in the conversation."""
        self.asks(text)
        for name, content in files.items():
            self.edit(name.replace("_", "."), content)
            self.talk.call(self.prompt_id)
        end = self.talk.says("done")
        self.stop()
        return end

    def asks(self, text: str) -> dict[str, Any]:
        """A prompt: hooks hear of it first, then it is written."""
        said = self.prompt(text)
        self.talk.prompt(self.prompt_id, text)
        return said


class CodexTalk(Codex):
    """Codex that works, tells hooks, and keeps its conversation."""

    def __init__(self, tree: Path, folder: Path, session: str = "S1") -> None:
        super().__init__(tree, session)
        self.folder = folder
        self.talk = Rollout(folder / f"rollout-2026-11-16T10-00-00-{session}.jsonl", session)

    def common(self) -> dict[str, Any]:
        """With where the conversation is."""
        return {**super().common(), "transcript_path": str(self.talk.path)}

    def does(self, text: str, **files: str) -> None:
        """A whole turn that writes files."""
        self.asks(text)
        for name, content in files.items():
            self.shell(**{name.replace("_", "."): content})
        self.talk.event("task_complete", turn_id=self.prompt_id)
        self.stop()

    def asks(self, text: str) -> dict[str, Any]:
        """A prompt."""
        said = self.prompt(text)
        self.talk.prompt(self.prompt_id, text)
        return said


def lines_of(path: Path | str) -> list[dict[str, Any]]:
    """The lines of a file, all of which must be sound."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()]
