"""A model that says what a test wants, over the wire protocols of the clients (`wires.py`).

A script belongs to a prompt: the answers that the model gives, one after the other, from that
prompt on. Which answer is due is counted in the conversation that a request carries, so retries,
resumed conversations and sub-agents (whose first message is a prompt of its own) need no state
here. Only loopback is served.
"""

import gzip
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from clients.actions import PATIENCE, Action, Answer, Fail, Patch, Say, Then, Until, Use
from clients.wires import Events, Said, Wire, wire_of

__all__ = ["PATIENCE", "Action", "Answer", "Fail", "Model", "Patch", "Say", "Then", "Until", "Use"]


class Request(NamedTuple):
    """What a client asked: for which prompt, for which of its answers, all it sent, and when."""

    prompt: str
    number: int
    body: dict[str, Any]
    at: float
    said: Said

    @property
    def texts(self) -> list[str]:
        """All texts, one by one, in their order."""
        return [text.strip() for _, texts in self.said for text in texts]

    @property
    def text(self) -> str:
        """All that the model would read."""
        told = [self.body.get(name) for name in ("messages", "input", "contents")]
        return json.dumps(next(filter(None, told), None), ensure_ascii=False)


class Model:
    """A server on loopback that plays scripts."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.without_tools = False
        """Whether scripts are for requests without tools, too, which are about titles mostly."""
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

    def answer(self, body: dict[str, Any], said: Said) -> Answer:
        """What is due in a conversation."""
        prompt, number = self._place(said)
        request = Request(prompt, number, body, time.monotonic(), said)
        with self._news:
            self.requests.append(request)
            self._news.notify_all()
        if not body.get("tools") and not self.without_tools:
            return [Say("A title")]
        answers = self._scripts.get(prompt, ())
        due = answers[number] if number < len(answers) else [Say("Done.")]
        return [each.make(request) if isinstance(each, Then) else each for each in due]

    def _place(self, said: Said) -> tuple[str, int]:
        """The newest prompt that has a script, and how often the model answered since."""
        prompt, number, last = "", 0, ""
        for role, texts in said:
            known = self._prompt_in(texts) if role == "user" else ""
            if known:
                prompt, number = known, 0
            elif role == "model" and last != "model":
                number += 1
            last = role
        return prompt, number

    def _prompt_in(self, texts: list[str]) -> str:
        """The prompt in a message of the user: a text of it, or a line, with things added to it."""
        for pieces in (texts, [line for text in texts for line in text.splitlines()]):
            known = [piece.strip() for piece in pieces if piece.strip() in self._scripts]
            if known:
                return known[-1]
        return ""

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


# -- the server ----------------------------------------------------------------------------------


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
        """Some ask which models there are."""
        if self.path.partition("?")[0].endswith("/models"):
            about = {"id": "fake-model", "object": "model", "created": 1, "owned_by": "a test"}
            self._say_json({"object": "list", "data": [about]})
        else:
            self._say_json({"error": {"type": "not_found_error", "message": "no"}}, 404)

    def do_HEAD(self) -> None:
        """Some ask first whether anybody is there."""
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        """Answer as the model."""
        body = json.loads(self._read() or b"{}")
        path = self.path.partition("?")[0]
        wire = wire_of(path)
        try:
            if wire:
                self._tell(wire, body, path)
            elif path.endswith(("/count_tokens", ":countTokens")):
                self._say_json({"input_tokens": 9, "totalTokens": 9})
            else:
                self._say_json({"error": {"type": "not_found_error", "message": "no"}}, 404)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client went away in the middle

    def _read(self) -> bytes:
        """What was sent: with a length or in chunks, compressed or not."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
        return gzip.decompress(data) if self.headers.get("content-encoding") == "gzip" else data

    def _tell(self, wire: Wire, body: dict[str, Any], path: str) -> None:
        answer = self.server.model.answer(body, wire.said(body))
        failing = [action.status for action in answer if isinstance(action, Fail)]
        if failing:
            error = {"type": "invalid_request_error", "message": "the script says no"}
            self._say_json({"type": "error", "error": error}, failing[0])
            return
        name = str(body.get("model", "fake-model"))
        if wire.is_streamed(body, path):
            self._stream(wire.events(answer, name), wire.last)
        else:  # a title, or whether the key is good
            self._say_json(wire.whole(answer, name))

    def _stream(self, events: Events, last: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events:
            named = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{named}data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        if last:
            self.wfile.write(f"data: {last}\n\n".encode())

    def _say_json(self, said: object, status: int = 200) -> None:
        data = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
