"""The guard with the real clients: what it refuses never happens, and what it lets run is told."""

import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from clients.place import Place
from clients.real import ASKING, Client

HOST = "git.example.com"


class Outside:
    """What an agent can reach: a remote by a name far away, a server, a database client."""

    def __init__(self, place: Place, port: int, heard: list[str]) -> None:
        self.heard = heard
        self.bare = place.scratch / "bare.git"
        self.dropped = place.scratch / "dropped"
        self._git(place, "init", "-q", "--bare", str(self.bare), at=place.scratch)
        for words in (
            ("init", "-q", "-b", "main"),
            ("config", "user.name", "Ana"),
            ("config", "user.email", "ana@example.com"),
            ("remote", "add", "origin", f"https://{HOST}/shop.git"),
            # A push goes to a folder here, whatever its name says.
            ("config", f"url.{self.bare}.insteadOf", f"https://{HOST}/shop.git"),
            ("commit", "-q", "--allow-empty", "-m", "first"),
        ):
            self._git(place, *words, at=place.tree)
        psql = place.scratch / "bin" / "psql"
        psql.parent.mkdir()
        psql.write_text(f'#!/bin/sh\necho "$*" >>"{self.dropped}"\n')
        psql.chmod(0o755)
        name = f"api.example.com:{port}"
        self.push = "git push --force origin main"
        self.drop = f"{psql} -h db.example.com shop -c 'DROP TABLE users'"
        self.post = f"curl -sS --resolve {name}:127.0.0.1 -X POST http://{name}/users -d name=x"

    @staticmethod
    def _git(place: Place, *words: str, at: Path) -> None:
        subprocess.run(["git", *words], cwd=at, env=place.environment, check=True)

    @property
    def commands(self) -> "tuple[str, ...]":
        return self.push, self.drop, self.post

    @property
    def happened(self) -> "list[str]":
        """What was reached."""
        pushed = (self.bare / "refs/heads/main").exists()
        return [*self.heard, *(["pushed"] if pushed else []),
                *(["dropped"] if self.dropped.exists() else [])]  # fmt: skip


@pytest.fixture
def outside(place: Place) -> Iterator[Outside]:
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(f"POST {self.path}")
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on the screen."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Outside(place, server.server_port, heard)
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("kind", ASKING)
def test_autopilot_refuses_what_nothing_takes_back(
    kind: type[Client], place: Place, outside: Outside
) -> None:
    """The model hears why and how the user allows it; nothing was pushed, dropped or sent."""
    client = kind(place)
    client.install()
    place.takeback("guard", "autopilot")
    for number, command in enumerate(outside.commands):
        prompt = place.model.plays(f"do it {number}", client.shell(command))
        client.prompt(prompt)
        heard = place.model.wait_for(prompt, 1).text
        assert "Takeback refused this call, so it was not run" in heard, command
        assert "takeback guard allow" in heard
    assert outside.happened == []
    refused = place.told("guard")["refused"]
    assert {each["class"] for each in refused} == {"irreversible"}
    assert len(refused) == len(outside.commands)
    assert place.told("effects")["effects"] == []
    prompt = place.model.plays("go on", client.shell("echo on > on.txt"))
    client.prompt(prompt)
    assert (place.tree / "on.txt").read_text() == "on\n", "work inside the project goes on"
    place.takeback("undo", "--yes")
    assert not (place.tree / "on.txt").exists()


@pytest.mark.parametrize("kind", ASKING)
def test_watch_lets_it_run_and_says_what_stays(
    kind: type[Client], place: Place, outside: Outside
) -> None:
    """In the preview and in the report of the undo, which takes back the file beside it."""
    client = kind(place)
    client.install()
    prompt = place.model.plays(
        "publish it",
        client.create(place.tree / "made.txt", "made\n"),
        *(client.shell(command) for command in outside.commands),
    )
    client.prompt(prompt)
    assert sorted(outside.happened) == ["POST /users", "dropped", "pushed"]
    found = place.told("effects")["effects"]
    assert sorted(each["status"] for each in found) == ["done"] * 3
    plan = place.told("undo", "--dry-run")
    assert len(plan["effects"]) == 3
    done = place.takeback("undo", "--yes")
    assert "3 effects outside stay" in done
    assert not (place.tree / "made.txt").exists()
    assert sorted(outside.happened) == ["POST /users", "dropped", "pushed"]
