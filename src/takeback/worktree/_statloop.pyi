"""The stat loop in C (optional: there only where the package was built with a compiler)."""

def scan(
    records: bytes | bytearray | memoryview, root_fd: int, part: int, parts: int, /
) -> bytes: ...
