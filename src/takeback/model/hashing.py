"""SHA-256 of short texts without loading OpenSSL.

`hashlib` loads OpenSSL, which takes 3 ms: worth it for file contents, whose hashing it makes
several times faster, but not for the three short hashes of a checkpoint that changed nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256 as _sha256
else:
    try:
        from _sha2 import sha256 as _sha256  # Python 3.12 and newer
    except ImportError:
        try:
            from _sha256 import sha256 as _sha256  # Python 3.11
        except ImportError:
            from hashlib import sha256 as _sha256


def short_sha256(data: bytes) -> bytes:
    """The SHA-256 of a short text."""
    return _sha256(data).digest()
