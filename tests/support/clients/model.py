"""A model that says what a test wants, over the wire protocols of both clients.

A script belongs to a prompt: the answers that the model gives, one after the other, from that
prompt on. Which answer is due is counted in the conversation that a request carries, so retries,
resumed conversations and sub-agents (whose first message is a prompt of its own) need no state
here. Only loopback is served.

    Claude Code   POST …/v1/messages    server-sent events of the Messages API
    Codex         POST …/v1/responses   server-sent events of the Responses API
"""

import json
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

PATIENCE = 90
"""Seconds that a client may take for what must come; machines may be slow."""


class Say(NamedTuple):
    """A text."""

    text: str


class Use(NamedTuple):
    """A call of a tool."""

    tool: str
    given: dict[str, Any]


class Patch(NamedTuple):
    """A call of Codex's `apply_patch`, which takes a text."""

    text: str


class Until(NamedTuple):
    """The answer goes on when somebody lets it."""

    gate: threading.Event


class Fail(NamedTuple):
    """An error instead of an answer, one that clients do not try again."""

    status: int = 400


Action = Say | Use | Patch | Until | Fail
Answer = list[Action]


class Request(NamedTuple):
    """What a client asked: for which prompt, for which of its answers, all it sent, and when."""

    prompt: str
    number: int
    body: dict[str, Any]
    at: float

    @property
    def texts(self) -> list[str]:
        """All texts, one by one, in their order."""
        said = said_to_claude(self.body) if "messages" in self.body else said_to_codex(self.body)
        return [text.strip() for _, texts in said for text in texts]

    @property
    def text(self) -> str:
        """All that the model would read."""
        return json.dumps(self.body.get("messages") or self.body.get("input"), ensure_ascii=False)


class Model:
    """A server on loopback that plays scripts."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._scripts: dict[str, tuple[Answer, ...]] = {}
        self._news = threading.Condition()
        self._server = _Server(self)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def plays(self, prompt: str, *answers: Action | Answer) -> str:
        """Give a prompt its answers; the prompt."""
        told = tuple(answer if isinstance(answer, list) else [answer] for answer in answers)
        self._scripts[prompt] = told
        return prompt

    def wait_for(self, prompt: str, number: int = 0) -> Request:
        """Wait until the model is asked for an answer to a prompt."""
        end = time.monotonic() + PATIENCE
        with self._news:
            while True:
                seen = [(request.prompt, request.number) for request in self.requests]
                if (prompt, number) in seen:
                    return self.requests[seen.index((prompt, number))]
                left = end - time.monotonic()
                assert left > 0, f"nobody asked for {prompt!r} [{number}], but {seen}"
                self._news.wait(left)

    def answer(self, body: dict[str, Any], said: list[tuple[str, list[str]]]) -> Answer:
        """What is due in a conversation."""
        prompt, number = self._place(said)
        with self._news:
            self.requests.append(Request(prompt, number, body, time.monotonic()))
            self._news.notify_all()
        if not body.get("tools"):
            return [Say("A title")]
        answers = self._scripts.get(prompt, ())
        return answers[number] if number < len(answers) else [Say("Done.")]

    def _place(self, said: list[tuple[str, list[str]]]) -> tuple[str, int]:
        """The newest prompt that has a script, and how often the model answered since."""
        prompt, number, last = "", 0, ""
        for role, texts in said:
            known = [text for text in texts if text.strip() in self._scripts]
            if role == "user" and known:
                prompt, number = known[-1].strip(), 0
            elif role == "model" and last != "model":
                number += 1
            last = role
        return prompt, number

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


# -- what the clients send -----------------------------------------------------------------------


def said_to_claude(body: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Who said what, by a request of the Messages API."""
    for message in body.get("messages", []):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = [block["text"] for block in blocks if block.get("type") == "text"]
        role = "model" if message["role"] == "assistant" else "user" if texts else "tool"
        yield role, texts


def said_to_codex(body: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Who said what, by a request of the Responses API."""
    for item in body.get("input", []):
        kind = item.get("type", "message")
        if kind == "message":
            texts = [part.get("text", "") for part in item.get("content", [])]
            yield {"assistant": "model"}.get(item["role"], item["role"]), texts
        else:
            yield "tool" if kind.endswith("_output") else "model", []


# -- what the clients get ------------------------------------------------------------------------


def _id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"


Events = Iterator[dict[str, Any]]


def as_messages(answer: Answer, model: str) -> Events:
    """An answer as the events of the Messages API."""
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
    index = 0
    for action in answer:
        if isinstance(action, Until):
            action.gate.wait(PATIENCE)
            continue
        yield from ({**event, "index": index} for event in _as_block(action))
        index += 1
    reason = "tool_use" if any(isinstance(action, Use) for action in answer) else "end_turn"
    delta = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": usage}
    yield {"type": "message_stop"}


def whole_message(answer: Answer, model: str) -> dict[str, Any]:
    """A text as one message of the Messages API."""
    message: dict[str, Any] = next(as_messages(answer, model))["message"]
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


def as_responses(answer: Answer, model: str) -> Events:
    """An answer as the events of the Responses API."""
    response = {"id": _id("resp"), "object": "response", "model": model, "output": []}
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    items: list[dict[str, Any]] = []
    for action in answer:
        if isinstance(action, Until):
            action.gate.wait(PATIENCE)
            continue
        item = _as_item(action)
        begun = {"type": "response.output_item.added", "output_index": len(items)}
        yield {**begun, "item": {**item, "status": "in_progress"}}
        yield {**begun, "type": "response.output_item.done", "item": item}
        items.append(item)
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
    done = {**response, "status": "completed", "output": items, "usage": usage}
    yield {"type": "response.completed", "response": done}


def _as_item(action: Action) -> dict[str, Any]:
    if isinstance(action, Use):
        said = {"name": action.tool, "arguments": json.dumps(action.given)}
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


# -- the wire ------------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: Model) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *words: object) -> None:  # noqa: A002
        """Say nothing on the terminal."""

    def do_GET(self) -> None:
        """Nothing is to be got."""
        self._say_json({"error": {"type": "not_found_error", "message": "no"}}, 404)

    def do_HEAD(self) -> None:
        """Some ask first whether anybody is there."""
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        """Answer as the model."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        path = self.path.partition("?")[0]
        try:
            if path.endswith("/messages"):
                self._tell(body, list(said_to_claude(body)), is_codex=False)
            elif path.endswith("/responses"):
                self._tell(body, list(said_to_codex(body)), is_codex=True)
            elif path.endswith("/count_tokens"):
                self._say_json({"input_tokens": 9})
            else:
                self.do_GET()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client went away in the middle

    def _tell(
        self, body: dict[str, Any], said: list[tuple[str, list[str]]], *, is_codex: bool
    ) -> None:
        answer = self.server.model.answer(body, said)
        failing = [action.status for action in answer if isinstance(action, Fail)]
        if failing:
            error = {"type": "invalid_request_error", "message": "the script says no"}
            self._say_json({"type": "error", "error": error}, failing[0])
            return
        name = str(body.get("model", ""))
        if not body.get("stream"):  # a title, or whether the key is good
            self._say_json(whole_message(answer, name))
        else:
            self._stream((as_responses if is_codex else as_messages)(answer, name))

    def _stream(self, events: Events) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events:
            text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            self.wfile.write(text.encode())
            self.wfile.flush()

    def _say_json(self, said: object, status: int = 200) -> None:
        data = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
