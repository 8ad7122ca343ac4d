"""A shelf in a folder, as the project's own is in the store: for tests of participants."""

import hashlib
import json
import os
import tempfile

from takeback.errors import DamagedStoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.ports import Participant


class FolderShelf:
    """Keeps content in a folder. What was captured counts from `capture` on, in each process."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._notes: list[str] = []
        self._is_capturing = False
        self.stored = 0
        """Bytes that were new to the shelf."""
        for name in ("pieces", "lists", "way"):
            os.makedirs(os.path.join(folder, name), mode=0o700, exist_ok=True)

    def capture(self, participant: "Participant") -> str:
        """Capture as a project does: the token and its mark are kept together."""
        self._notes, self._is_capturing = [], True
        try:
            token = participant.capture()
        finally:
            self._is_capturing = False
        mark = self._notes[-1] if self._notes else self.mark
        self._write("last.json", json.dumps({"token": token, "mark": mark}).encode())
        return token

    @property
    def last(self) -> str:
        return self._last()["token"]

    @property
    def mark(self) -> str:
        return self._last()["mark"]

    def note(self, mark: str, /) -> None:
        self._require_capture()
        self._notes.append(mark)

    def put(self, chunks: "Iterable[bytes]", /) -> str:
        self._require_capture()
        names = []
        for chunk in chunks:
            name = hashlib.sha256(chunk).hexdigest()
            if not os.path.exists(self._path("pieces", name)):
                self._write(f"pieces/{name}", chunk)
                self.stored += len(chunk)
            names.append(name)
        listed = json.dumps(names).encode()
        id = hashlib.sha256(listed).hexdigest()
        self._write(f"lists/{id}", listed)
        return id

    def hold(self, id: str, /) -> None:
        self._require_capture()
        assert os.path.exists(self._path("lists", id)), f"`{id}` was never put"

    def read(self, id: str, /) -> "Iterator[bytes]":
        for name in json.loads(self._checked("lists", id)):
            yield self._checked("pieces", name)

    def folder(self) -> bytes:
        return os.fsencode(self._path("way"))

    def _require_capture(self) -> None:
        assert self._is_capturing, "call `put`, `hold` and `note` in `capture` only"

    def _last(self) -> "dict[str, str]":
        try:
            with open(self._path("last.json"), "rb") as file:
                found: dict[str, str] = json.load(file)
                return found
        except FileNotFoundError:
            return {"token": "", "mark": ""}

    def _checked(self, kind: str, name: str) -> bytes:
        try:
            with open(self._path(kind, name), "rb") as file:
                data = file.read()
        except OSError as problem:
            raise DamagedStoreError(f"the shelf does not hold `{name}`") from problem
        if hashlib.sha256(data).hexdigest() != name:
            raise DamagedStoreError(f"`{name}` is damaged")
        return data

    def _path(self, *names: str) -> str:
        return os.path.join(self._folder, *names)

    def _write(self, name: str, data: bytes) -> None:
        fd, path = tempfile.mkstemp(dir=self._folder)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.rename(path, self._path(name))
