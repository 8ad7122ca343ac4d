"""What comes of a conversation that is trimmed: a value, until somebody writes it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ABOVE, PASSED, BEGINNING, ELSEWHERE = "above", "passed", "beginning", "elsewhere"
"""A prompt on the line that leads to the one asked about; one beside it; there is nothing above;
it goes on from a part of another file, of which no more can be read."""


class CannotTrimError(Exception):
    """Why a conversation cannot be trimmed, in words that go on after `because`."""


class Trimmed:
    """A conversation up to some prompt: where its copy belongs, and the lines of it.

    `own_id` is what the agent will call it, `folder` where the agent worked, and `command` what
    goes on with it there. `remarks` tell what was mended on the way.
    """

    __slots__ = ("command", "folder", "lines", "own_id", "path", "remarks")

    def __init__(
        self,
        own_id: str,
        path: str,
        lines: "Iterator[bytes]",
        *,
        folder: str,
        command: "tuple[str, ...]",
        remarks: "tuple[str, ...]" = (),
    ) -> None:
        self.own_id = own_id
        self.path = path
        self.lines = lines
        self.folder = folder
        self.command = command
        self.remarks = remarks


def as_uuid(data: bytes) -> str:
    """Sixteen bytes as ids are written."""
    digits = data.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
