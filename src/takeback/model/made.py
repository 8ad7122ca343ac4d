"""An entry whose content no checkpoint holds yet: what came of a merge."""

from hashlib import sha256

from takeback.model.tree import NO_OBJECT, Entry


class Made(Entry):
    """A file as it shall be; its `content` is stored before anything is touched."""

    __slots__ = ("content",)

    def __init__(self, content: bytes, mode: int) -> None:
        strong = sha256(content).digest()
        super().__init__(b"", mode, 0, len(content), strong, 0, NO_OBJECT)
        self.content = content

    def stored(self, oid: bytes) -> Entry:
        """The same, once its content is in a pack."""
        return Entry(b"", self.mode, 0, self.size, self.strong, 0, oid)
