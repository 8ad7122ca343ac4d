"""How clients and their models talk: four protocols over HTTP.

    POST …/v1/messages              the Messages API            Claude Code
    POST …/v1/responses             the Responses API           Codex
    POST …/v1/chat/completions      chat completions            most others
    POST …:streamGenerateContent    Gemini's own                Gemini CLI

A `Wire` reads who said what from a request, and writes an answer as the events of a stream, or as
one whole message.
"""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

from clients.actions import PATIENCE, Action, Answer, Patch, Say, Until, Use

Body = dict[str, Any]
Said = list[tuple[str, list[str]]]
"""Who said what: `user`, `model` or `tool`, and texts."""
Events = Iterator[dict[str, Any]]


class Wire:
    """One protocol."""

    last = ""
    """What is sent after the last event."""

    def said(self, body: Body) -> Said:
        """Who said what, by a request."""
        raise NotImplementedError

    def events(self, answer: Answer, model: str) -> Events:
        """An answer, event by event."""
        raise NotImplementedError

    def whole(self, answer: Answer, model: str) -> dict[str, Any]:
        """An answer at once."""
        raise NotImplementedError

    def is_streamed(self, body: Body, path: str) -> bool:
        """Whether the client wants a stream."""
        del path
        return bool(body.get("stream"))


def _id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"


def _texts(content: object) -> list[str]:
    """The texts of a message: it is one, or has some among its parts."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    found = [part.get("text") for part in parts if part.get("type", "text").endswith("text")]
    return [text for text in found if isinstance(text, str)]


def _due(answer: Answer) -> Iterator[Action]:
    """The actions of an answer, each when it may come."""
    for action in answer:
        if isinstance(action, Until):
            action.gate.wait(PATIENCE)
        else:
            yield action


# -- the Messages API ----------------------------------------------------------------------------


class Messages(Wire):
    """Anthropic's."""

    def said(self, body: Body) -> Said:
        """Results of tools stand in messages of the user."""
        found = []
        for message in body.get("messages", []):
            texts = _texts(message["content"])
            role = "model" if message["role"] == "assistant" else "user" if texts else "tool"
            found.append((role, texts))
        return found

    def events(self, answer: Answer, model: str) -> Events:
        """Blocks, one after the other."""
        usage = {"input_tokens": 9, "output_tokens": 9}
        message: dict[str, Any] = {
            "id": _id("msg"),
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        yield {"type": "message_start", "message": message}
        for index, action in enumerate(_due(answer)):
            yield from ({**event, "index": index} for event in _as_block(action))
        reason = "tool_use" if any(isinstance(action, Use) for action in answer) else "end_turn"
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": usage}
        yield {"type": "message_stop"}

    def whole(self, answer: Answer, model: str) -> dict[str, Any]:
        """Texts."""
        message: dict[str, Any] = next(self.events(answer, model))["message"]
        texts = [action.text for action in answer if isinstance(action, Say)]
        content = [{"type": "text", "text": text} for text in texts]
        return {**message, "content": content, "stop_reason": "end_turn"}


def _as_block(action: Action) -> Events:
    block: dict[str, Any]
    if isinstance(action, Use):
        block = {"type": "tool_use", "id": _id("toolu"), "name": action.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(action.given)}
    else:
        assert isinstance(action, Say), action
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": action.text}
    yield {"type": "content_block_start", "content_block": block}
    yield {"type": "content_block_delta", "delta": delta}
    yield {"type": "content_block_stop"}


# -- the Responses API ---------------------------------------------------------------------------


class Responses(Wire):
    """OpenAI's newer one."""

    def said(self, body: Body) -> Said:
        """Items: messages, calls, results."""
        found = []
        for item in body.get("input", []):
            kind = item.get("type", "message")
            if kind == "message":
                role = {"assistant": "model"}.get(item["role"], item["role"])
                found.append((role, _texts(item.get("content", []))))
            elif kind == "agent_message":  # from another agent of Codex
                parts = item.get("content", [])
                found.append(("user", [str(part[part["type"]]) for part in parts[1:]]))
            else:
                found.append(("tool" if kind.endswith("_output") else "model", []))
        return found

    def events(self, answer: Answer, model: str) -> Events:
        """Items, one after the other."""
        response = {"id": _id("resp"), "object": "response", "model": model, "output": []}
        yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
        items: list[dict[str, Any]] = []
        for action in _due(answer):
            item = _as_item(action)
            begun = {"type": "response.output_item.added", "output_index": len(items)}
            yield {**begun, "item": {**item, "status": "in_progress"}}
            yield {**begun, "type": "response.output_item.done", "item": item}
            items.append(item)
        yield {"type": "response.completed", "response": _done(response, items)}

    def whole(self, answer: Answer, model: str) -> dict[str, Any]:
        """The last event, alone."""
        *_, last = self.events(answer, model)
        response: dict[str, Any] = last["response"]
        return response


def _done(response: dict[str, Any], items: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
    return {**response, "status": "completed", "output": items, "usage": usage}


def _as_item(action: Action) -> dict[str, Any]:
    if isinstance(action, Use):
        said = {**_in_namespace(action.tool), "arguments": json.dumps(action.given)}
        kind = "function_call"
    elif isinstance(action, Patch):
        said = {"name": "apply_patch", "input": action.text}
        kind = "custom_tool_call"
    else:
        assert isinstance(action, Say), action
        part = {"type": "output_text", "text": action.text, "annotations": []}
        return {"type": "message", "id": _id("msg"), "status": "completed", "role": "assistant",
                "content": [part]}  # fmt: skip
    return {"type": kind, "id": _id("item"), "call_id": _id("call"), "status": "completed", **said}


def _in_namespace(tool: str) -> dict[str, str]:
    """The name of a tool; Codex keeps that of an MCP server apart from it."""
    head, mark, name = tool.rpartition("__")
    return {"namespace": head, "name": name} if mark else {"name": tool}


# -- chat completions ----------------------------------------------------------------------------


class Chat(Wire):
    """OpenAI's older one, which most others copied."""

    last = "[DONE]"

    def said(self, body: Body) -> Said:
        """Messages, each of one role."""
        roles = {"assistant": "model"}
        return [
            (roles.get(message["role"], message["role"]), _texts(message.get("content")))
            for message in body.get("messages", [])
        ]

    def events(self, answer: Answer, model: str) -> Events:
        """Chunks: texts and calls as they come, why it ended, what it cost."""
        chunk: dict[str, Any] = {"id": _id("chat"), "object": "chat.completion.chunk"}
        chunk |= {"created": int(time.time()), "model": model}

        def say(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
            return {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

        yield say({"role": "assistant", "content": ""})
        calls = 0
        for action in _due(answer):
            if isinstance(action, Use):
                yield say({"tool_calls": [{"index": calls, **_as_call(action)}]})
                calls += 1
            else:
                assert isinstance(action, Say), action
                yield say({"content": action.text})
        yield say({}, "tool_calls" if calls else "stop")
        yield {**chunk, "choices": [], "usage": _CHAT_USAGE}

    def whole(self, answer: Answer, model: str) -> dict[str, Any]:
        """One message."""
        due = list(_due(answer))
        texts = "".join(action.text for action in due if isinstance(action, Say))
        message: dict[str, Any] = {"role": "assistant", "content": texts or None}
        calls = [_as_call(action) for action in due if isinstance(action, Use)]
        if calls:
            message["tool_calls"] = calls
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if calls else "stop",
        }
        return {
            "id": _id("chat"),
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [choice],
            "usage": _CHAT_USAGE,
        }


_CHAT_USAGE = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}


def _as_call(action: Use) -> dict[str, Any]:
    function = {"name": action.tool, "arguments": json.dumps(action.given)}
    return {"id": _id("call"), "type": "function", "function": function}


# -- Gemini's ------------------------------------------------------------------------------------


class Gemini(Wire):
    """Google's."""

    def said(self, body: Body) -> Said:
        """Results of tools stand in contents of the user."""
        found = []
        for content in body.get("contents", []):
            parts = content.get("parts") or []
            is_result = any("functionResponse" in part for part in parts)
            role = "model" if content.get("role") == "model" else "tool" if is_result else "user"
            found.append((role, _texts(parts)))
        return found

    def events(self, answer: Answer, model: str) -> Events:
        """One piece for each text or call; the last one says that it is over."""
        due = list(answer)
        for number, action in enumerate(_due(due)):
            is_last = number == sum(not isinstance(each, Until) for each in due) - 1
            yield _as_piece([action], model, is_last=is_last)

    def whole(self, answer: Answer, model: str) -> dict[str, Any]:
        """All pieces in one."""
        return _as_piece(list(_due(answer)), model, is_last=True)

    def is_streamed(self, body: Body, path: str) -> bool:
        """The address tells."""
        del body
        return path.endswith(":streamGenerateContent")


def _as_piece(actions: list[Action], model: str, *, is_last: bool) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for action in actions:
        if isinstance(action, Use):
            parts.append({"functionCall": {"name": action.tool, "args": action.given}})
        else:
            assert isinstance(action, Say), action
            parts.append({"text": action.text})
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if is_last:
        candidate["finishReason"] = "STOP"
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18}
    piece = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}
    return {**piece, "responseId": _id("gemini")}


WIRES = {
    "/messages": Messages(),
    "/responses": Responses(),
    "/chat/completions": Chat(),
    ":streamGenerateContent": Gemini(),
    ":generateContent": Gemini(),
}
"""By the end of the address."""


def wire_of(path: str) -> Wire | None:
    """The protocol that is spoken at an address."""
    return next((wire for end, wire in WIRES.items() if path.endswith(end)), None)
