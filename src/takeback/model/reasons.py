"""Why an entry is listed but not captured. The codes are part of the store's format."""

CAPTURED = 0
VERSION_CONTROL = 1
OTHER_MOUNT = 2
SPECIAL = 3
UNREADABLE = 4
TOO_LARGE = 5
REBUILDABLE = 6
IGNORED = 7
STORE = 8
ANOTHER_PROJECT = 9
FORGOTTEN = 10

WORDS = {
    VERSION_CONTROL: "version control",
    OTHER_MOUNT: "other mount",
    SPECIAL: "special",
    UNREADABLE: "unreadable",
    TOO_LARGE: "too large",
    REBUILDABLE: "rebuildable",
    IGNORED: "ignored",
    STORE: "store",
    ANOTHER_PROJECT: "another project",
    FORGOTTEN: "forgotten",
}

EXPLAINED = {
    VERSION_CONTROL: "version control data is never read into the store nor written",
    OTHER_MOUNT: "another file system is mounted here",
    SPECIAL: "a FIFO, socket or device has no content to keep",
    UNREADABLE: "permission denied, or the disk could not be read",
    TOO_LARGE: "above the size limit and not tracked by git",
    REBUILDABLE: "can be made again, and is big",
    IGNORED: "an ignored folder with many entries",
    STORE: "Takeback's own store",
    ANOTHER_PROJECT: "has a history of its own",
    FORGOTTEN: "taken out of the history for good by `takeback forget`",
}


def word(code: int) -> str:
    """The word for a reason, also for one that a newer version wrote."""
    return WORDS.get(code, f"reason {code}")
