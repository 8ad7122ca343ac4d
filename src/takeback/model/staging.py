"""The name of our folder in a work tree while a restore runs. Scans pass it over."""

from takeback.model import ids

PREFIX = b".takeback-stage-"


def name_of(id: str) -> bytes:
    """The name of the folder of one restore."""
    return PREFIX + id.encode()


def is_stage(name: bytes) -> bool:
    """Whether a name in the root is that of a folder of ours."""
    id = name[len(PREFIX) :].decode("ascii", "replace")
    return name.startswith(PREFIX) and len(id) == ids.LENGTH and ids.is_prefix(id)
