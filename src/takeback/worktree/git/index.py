"""Reads which paths a git index lists: versions 2, 3 and 4, SHA-1 and SHA-256, also split.

The format is told by structure alone, so no setting of the repository is needed. An index
whose own hash does not fit, or that is odd or too large in any way, is "unknown": empty and
not complete.
"""

import os

from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

LARGEST_INDEX = 128 << 20
"""Bytes; about a million paths. Something larger is not read at all."""

_LONGEST_NAME = 4096
_MOST_NAME_BYTES = 256 << 20  # version 4 can make huge names out of few bytes
_PROBE = 16 << 10
_HEADER = 12
_STAT_FIELDS = 40
_NAME_LENGTH = 0x0FFF
_EXTENDED = 0x4000
_HASH_SIZES = (20, 32)
_SHA1, _STEP = 20, 8
_MANY = 64
"""More objects than that are looked for in one pass over the index instead of one by one."""


class Index(Value):
    """The paths that an index lists; `complete` says whether those are surely all.

    A submodule is listed as one path. What a sparse index folds into a folder is left out,
    and then `complete` is False.
    """

    files: frozenset[bytes]
    complete: bool

    def __repr__(self) -> str:
        return f"Index({len(self.files)} files, complete={self.complete})"


EMPTY = Index(frozenset(), complete=True)
UNKNOWN = Index(frozenset(), complete=False)


class _DamagedError(Exception):
    """These bytes are not an index that we understand."""


class _Parsed(Value):
    """One index file taken apart: names in order (a replaced one is empty) and extensions."""

    names: list[bytes]
    extensions: dict[bytes, bytes]


def read_index(fd: int, open_shared: "Callable[[str], int | None]") -> Index:
    """Read the index open as `fd`; `open_shared` opens the shared half of a split one."""
    try:
        parsed = _parse(_read_whole(fd))
        if b"link" in parsed.extensions:
            names = _join_split(parsed, open_shared)
        else:
            names = parsed.names
        folded = b"sdir" in parsed.extensions
    except (_DamagedError, IndexError, ValueError):
        return UNKNOWN
    if folded:
        names = [name for name in names if not name.endswith(b"/")]
    return Index(frozenset(names), complete=not folded)


def with_objects(fd: int, files: "Mapping[bytes, bytes]") -> list[bytes]:
    """Those of the paths that the index open as `fd` has with just this object.

    Objects of SHA-1, and versions 2 and 3: in 4, where names are cut short, none is found.
    """
    try:
        data = _read_whole(fd)
    except _DamagedError:
        return []
    places = _places(data, set(files.values()))
    return [name for name, oid in files.items() if _has_entry(data, name, places[oid])]


def _places(data: bytes, oids: "set[bytes]") -> "dict[bytes, list[int]]":
    """Where objects stand in an index; of many in one pass, as each entry begins on a step."""
    found: dict[bytes, list[int]] = {oid: [] for oid in oids}
    if len(oids) > _MANY:
        for at in range(_HEADER + _STAT_FIELDS, len(data), _STEP):
            oid = data[at : at + _SHA1]
            if oid in oids:
                found[oid].append(at)
        return found
    for oid, places in found.items():
        at = data.find(oid)
        while at >= 0:
            places.append(at)
            at = data.find(oid, at + 1)
    return found


def _has_entry(data: bytes, name: bytes, places: "Iterable[int]") -> bool:
    for at in places:
        for flags in (2, 4):  # version 3 may have two bytes more
            start = at + _SHA1 + flags
            if data[start : start + len(name) + 1] == name + b"\0":
                return True
    return False


def read_checksum(fd: int) -> str | None:
    """Give the hash at the end of the index open as `fd`, reading little of it."""
    size = os.fstat(fd).st_size
    try:
        version, count = _parse_header(read_bytes(fd, 0, _HEADER), size)
        if count:
            hash_size = _hash_size_of_first_entry(read_bytes(fd, 0, _PROBE), version)
        else:
            hash_size = _hash_size_without_entries(read_bytes(fd, 0, _PROBE), size)
    except (_DamagedError, IndexError):
        return None
    checksum = read_bytes(fd, size - hash_size, hash_size)
    return checksum.hex() if len(checksum) == hash_size and any(checksum) else None


def read_bytes(fd: int, offset: int, length: int) -> bytes:
    first = os.pread(fd, min(length, 1 << 20), offset)
    if len(first) == length or not first:
        return first
    pieces = [first]
    done = len(first)
    while done < length and (piece := os.pread(fd, min(length - done, 8 << 20), offset + done)):
        pieces.append(piece)
        done += len(piece)
    return b"".join(pieces)


def _read_whole(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    if size > LARGEST_INDEX:
        raise _DamagedError
    _parse_header(read_bytes(fd, 0, _HEADER), size)
    return read_bytes(fd, 0, size)


def _parse_header(header: bytes, size: int) -> tuple[int, int]:
    version = int.from_bytes(header[4:8])
    count = int.from_bytes(header[8:12])
    shortest_entry = _STAT_FIELDS + _HASH_SIZES[0] + 2
    fits = size >= _HEADER + _HASH_SIZES[0] + count * shortest_entry
    if header[:4] != b"DIRC" or version not in (2, 3, 4) or not fits:
        raise _DamagedError
    return version, count


def _parse(data: bytes) -> _Parsed:
    version, count = _parse_header(data[:_HEADER], len(data))
    if count:
        hash_size = _hash_size_of_first_entry(data[:_PROBE], version)
    else:
        hash_size = _hash_size_without_entries(data, len(data))
    _check_hash(data, hash_size)
    end = len(data) - hash_size
    read_names = _names_with_prefixes if version == 4 else _names_in_full
    names, offset = read_names(data, count, _STAT_FIELDS + hash_size, end)
    return _Parsed(names, _read_extensions(data, offset, end))


def _check_hash(data: bytes, hash_size: int) -> None:
    checksum = data[-hash_size:]
    if not any(checksum):
        return  # git was told to leave the hash out
    from hashlib import sha1, sha256

    content = memoryview(data)[:-hash_size]
    digest = sha1(content, usedforsecurity=False) if hash_size == 20 else sha256(content)
    if digest.digest() != checksum:
        raise _DamagedError


def _names_in_full(data: bytes, count: int, fixed: int, end: int) -> tuple[list[bytes], int]:
    """Read the entries of versions 2 and 3: each name whole, padded to eight bytes."""
    names = []
    offset = _HEADER
    for _ in range(count):
        at = offset + fixed
        flags = data[at] << 8 | data[at + 1]
        at += 4 if flags & _EXTENDED else 2
        length = flags & _NAME_LENGTH
        if length == _NAME_LENGTH:
            length = data.index(b"\0", at, end) - at
        name_end = at + length
        if data[name_end]:
            raise _DamagedError
        names.append(data[at:name_end])
        offset += (name_end - offset + 8) & ~7
    return names, offset


def _names_with_prefixes(data: bytes, count: int, fixed: int, end: int) -> tuple[list[bytes], int]:
    """Read the entries of version 4: how much to cut off the name before, and what to add."""
    names = []
    name = b""
    total = 0
    offset = _HEADER
    for _ in range(count):
        at = offset + fixed
        at += 4 if data[at] & (_EXTENDED >> 8) else 2
        cut = data[at]
        at += 1
        if cut & 0x80:
            cut, at = _offset_number(data, at - 1)
        name_end = data.index(b"\0", at, end)
        keep = len(name) - cut
        if keep < 0:
            raise _DamagedError
        name = name[:keep] + data[at:name_end]
        total += len(name)
        if len(name) > _LONGEST_NAME or total > _MOST_NAME_BYTES:
            raise _DamagedError
        names.append(name)
        offset = name_end + 1
    return names, offset


def _offset_number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of variable width as git writes pack offsets."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = (value + 1) << 7 | data[at] & 0x7F
        if value > _LONGEST_NAME:
            raise _DamagedError
    return value, at + 1


def _read_extensions(data: bytes, offset: int, end: int) -> dict[bytes, bytes]:
    extensions = {}
    while offset < end:
        name = data[offset : offset + 4]
        length = int.from_bytes(data[offset + 4 : offset + 8])
        offset += 8 + length
        if offset > end:
            raise _DamagedError
        if name in (b"link", b"sdir"):
            extensions[name] = data[offset - length : offset]
        elif not name[:1].isupper():
            raise _DamagedError  # lower case says: not to be read without knowing this
    if offset != end:
        raise _DamagedError
    return extensions


def _hash_size_of_first_entry(start: bytes, version: int) -> int:
    """Tell the hash function by where the first entry's name is found."""
    for size in _HASH_SIZES:
        at = _HEADER + _STAT_FIELDS + size
        flags = start[at] << 8 | start[at + 1]
        at += 4 if flags & _EXTENDED else 2
        if version == 4:
            at += 1  # nothing can be cut off the first name, so this is one zero byte
            if start[at - 1]:
                continue
        length = start.find(b"\0", at) - at
        if length >= 0 and min(length, _NAME_LENGTH) == flags & _NAME_LENGTH:
            return size
    raise _DamagedError


def _hash_size_without_entries(data: bytes, size: int) -> int:
    """Tell the hash function by where the extensions end; `data` is the file or its start."""
    for hash_size in _HASH_SIZES:
        try:
            _read_extensions(data, _HEADER, size - hash_size)
        except _DamagedError:
            continue
        return hash_size
    raise _DamagedError


def _join_split(parsed: _Parsed, open_shared: "Callable[[str], int | None]") -> list[bytes]:
    link = parsed.extensions[b"link"]
    hash_size = 20 if len(link) < 32 or _looks_like_bitmaps(link[20:]) else 32
    base_id, bitmaps = link[:hash_size], link[hash_size:]
    own = [name for name in parsed.names if name]
    if not any(base_id):
        return own
    shared_fd = open_shared(base_id.hex())
    if shared_fd is None:
        raise _DamagedError
    try:
        shared = _parse(_read_whole(shared_fd))
    except OSError:
        raise _DamagedError from None
    finally:
        os.close(shared_fd)
    if b"link" in shared.extensions or b"sdir" in shared.extensions:
        raise _DamagedError
    deleted = frozenset(_set_bits(bitmaps, len(shared.names)))
    own.extend(name for at, name in enumerate(shared.names) if at not in deleted)
    return own


def _looks_like_bitmaps(data: bytes) -> bool:
    """Whether two EWAH bitmaps (deleted, replaced) fill these bytes exactly, or none do."""
    offset = 0
    for _ in range(2):
        if offset < len(data):
            offset += 12 + 8 * int.from_bytes(data[offset + 4 : offset + 8])
    return offset == len(data)


def _set_bits(bitmap: bytes, size: int) -> "Iterator[int]":
    words = int.from_bytes(bitmap[4:8])
    at = 0
    position = 0
    while at < words and position < size:
        marker = _word(bitmap, at)
        filled = min((marker >> 1 & 0xFFFFFFFF) * 64, size - position)
        if marker & 1:
            yield from range(position, position + filled)
        position += filled
        at += 1
        for _ in range(min(marker >> 33, words - at)):
            literal = _word(bitmap, at)
            yield from (position + bit for bit in range(64) if literal >> bit & 1)
            position += 64
            at += 1


def _word(bitmap: bytes, at: int) -> int:
    word = bitmap[8 + 8 * at : 16 + 8 * at]
    if len(word) < 8:
        raise _DamagedError
    return int.from_bytes(word)
