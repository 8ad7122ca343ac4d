"""SHA-256 and SHA-1, without loading OpenSSL for a few small files.

`hashlib` loads OpenSSL, which takes 4 ms: worth it for much, whose hashing it makes seven times
faster, but not for what one step of an agent changes. So the first bytes of a process are hashed
by the code that Python has built in, and all others by OpenSSL.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    from collections.abc import Callable
    from hashlib import sha256 as _sha256

    Hash = hashlib._Hash
    Data = bytes | bytearray | memoryview
else:
    try:
        # To look for a module that is not there takes as long as to import one that is.
        if sys.version_info >= (3, 12):
            from _sha2 import sha256 as _sha256
        else:
            from _sha256 import sha256 as _sha256
    except ImportError:
        from hashlib import sha256 as _sha256

_FIRST_BYTES = 1 << 18
"""To hash so much without OpenSSL takes as long as half of loading it does."""
UNKNOWN = 1 << 62
"""More bytes than any that are worth it."""
_hashed = 0


def short_sha256(data: bytes) -> bytes:
    """The SHA-256 of a short text."""
    return _sha256(data).digest()


def sha256(data: "Data" = b"", more: int = 0) -> "Hash":
    """Begin a SHA-256 with some bytes; so many more will follow."""
    if _is_little(len(data) + more):
        return _sha256(data)
    import hashlib

    return hashlib.sha256(data)


def sha1(data: "Data" = b"", more: int = 0) -> "Hash":
    """Begin a SHA-1 with some bytes; so many more will follow.

    Git's hash for ids and checksums, not what we trust content by.
    """
    if _is_little(len(data) + more):
        return _small_sha1()(data, usedforsecurity=False)
    import hashlib

    return hashlib.sha1(data, usedforsecurity=False)


def _small_sha1() -> "Callable[..., Hash]":
    """SHA-1 without OpenSSL; only what is stored needs it."""
    try:
        from _sha1 import sha1 as found  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha1 as found

    return found  # type: ignore[no-any-return]


def _is_little(size: int) -> bool:
    """Whether all that was hashed so far, and this, is too little for OpenSSL."""
    global _hashed  # noqa: PLW0603 -- what one process did, whoever asked for it
    _hashed += size
    return _hashed <= _FIRST_BYTES
