"""For authors of agents and adapters: a throw-away project, and hook payloads played into it.

with Sandbox() as box:
    box.write("login.py", b"one")
    box.play({"hook_event_name": "UserPromptSubmit", "session_id": "S1", ...})
    assert box.project.log().turns[0].label == "add a form"
"""

import json
import os
import shutil
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from takeback.project import Project


class Sandbox:
    """A project in a temporary folder, with a store of its own. Closing it removes both."""

    def __init__(self) -> None:
        self._place = tempfile.mkdtemp(prefix="takeback-sandbox-")
        self.tree = os.path.join(self._place, "tree")
        self.home = os.path.join(self._place, "home")
        os.mkdir(self.tree)
        self._project: Project | None = None

    @property
    def project(self) -> "Project":
        if self._project is None:
            import takeback

            self._project = takeback.open(self.tree, home=self.home)
        return self._project

    def write(self, path: str, content: bytes) -> None:
        whole = os.path.join(self.tree, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "wb") as file:
            file.write(content)

    def read(self, path: str) -> bytes:
        with open(os.path.join(self.tree, path), "rb") as file:
            return file.read()

    def play(self, *payloads: "dict[str, Any]") -> "list[dict[str, Any]]":
        """Play what an agent sends to its hooks, in order; what is answered to each."""
        home, folder = os.fsencode(self.home), os.fsencode(self.tree)
        return [answer(each, home=home, user_home=b"", folder=folder) for each in payloads]

    def close(self) -> None:
        if self._project is not None:
            self._project.close()
        shutil.rmtree(self._place, ignore_errors=True)

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answer(payload: object, *, home: bytes, user_home: bytes, folder: bytes) -> "dict[str, Any]":
    """Handle one hook payload in this process; the JSON that the agent reads, {} for nothing."""
    from takeback.hooks import hook

    words = (home, user_home, folder, os.getcwdb(), os.urandom(16).hex().encode())
    text = hook.hear(words, json.dumps(payload).encode())
    return dict(json.loads(text)) if text else {}
