"""Git's deltas: one version of a thing, told as what it copies from another and what is new.

delta       = size of the base, size of the result (7 bits a byte, lowest first), instructions
instruction = a copy: bits 0 to 3 say which bytes of its offset follow, 4 to 6 which of its length
            | a number below 128: so many new bytes follow
"""

_BLOCK = 16
"""What is the same for 31 bytes anywhere holds a whole block of the base, and is found."""
_LONGEST_COPY = 0xFFFFFF
_LONGEST_INSERT = 127
_LONGEST_SIZE = 10


class BadDeltaError(ValueError):
    """Bytes that are not a delta on the base they are used with."""


def encode(base: bytes, target: bytes, most: "int | None" = None) -> "bytes | None":
    """Return `target` as a delta on `base`, None if it would be longer than `most` bytes."""
    limit = len(target) + 64 if most is None else most
    shortest = min(len(base), len(target))
    before = _common(base, 0, target, 0, shortest)
    after = _common(base[::-1], 0, target[::-1], 0, shortest - before)
    writer = _Writer(base, target, limit)
    writer.copy(0, before)
    end = len(target) - after
    if end - before >= _BLOCK and len(base) >= _BLOCK and not _match(writer, before, end):
        return None
    writer.take_up_to(end)
    writer.copy(len(base) - after, after)
    return writer.finish()


def apply(base: bytes, delta: bytes, most: int) -> bytes:
    """Return what a delta makes of a base: at most `most` bytes, or a BadDeltaError."""
    expected, at = _size(delta, 0)
    size, at = _size(delta, at)
    if expected != len(base):
        raise BadDeltaError("is on another base")
    if size > most:
        raise BadDeltaError("is of impossible size")
    parts: list[bytes] = []
    made, end = 0, len(delta)
    while at < end:
        code = delta[at]
        at += 1
        if code & 0x80:
            start, length, at = _read_copy(delta, code, at)
            part = base[start : start + length]
        elif code:
            length = code
            part = delta[at : at + length]
            at += length
        else:
            raise BadDeltaError("has an unknown instruction")
        made += length
        if len(part) != length or made > size:
            raise BadDeltaError("reads outside its base")
        parts.append(part)
    if made != size:
        raise BadDeltaError("produces less than declared")
    return b"".join(parts)


def _read_copy(delta: bytes, code: int, at: int) -> "tuple[int, int, int]":
    value = shift = 0
    try:
        for bit in range(7):
            if code >> bit & 1:
                value |= delta[at] << shift
                at += 1
            shift += 8
    except IndexError:
        raise BadDeltaError("breaks off") from None
    return value & 0xFFFFFFFF, value >> 32 or 0x10000, at


def _size(delta: bytes, at: int) -> "tuple[int, int]":
    value = shift = 0
    for byte in delta[at : at + _LONGEST_SIZE]:
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
    raise BadDeltaError("breaks off")


def _match(writer: "_Writer", at: int, end: int) -> bool:
    """Tell what stands between `at` and `end`; False if that is getting too long."""
    base, target = writer.base, writer.target
    blocks: dict[bytes, int] = {}
    for start in range(len(base) // _BLOCK * _BLOCK - _BLOCK, -1, -_BLOCK):
        blocks[base[start : start + _BLOCK]] = start
    find, last, expected = blocks.get, end - _BLOCK, at
    give_up = at + writer.room()
    while at <= last:
        start = find(target[at : at + _BLOCK], -1)
        if start < 0:
            at += 1
            if at > give_up:
                return False
            continue
        # What comes where it was expected, as after a change in place, is the better choice.
        ahead = expected + at - writer.done
        if ahead != start and base[ahead : ahead + _BLOCK] == target[at : at + _BLOCK]:
            start = ahead
        while at > writer.done and start and target[at - 1] == base[start - 1]:
            at, start = at - 1, start - 1
        length = _common(base, start, target, at, min(len(base) - start, end - at))
        writer.take_up_to(at)
        writer.copy(start, length)
        at += length
        expected = start + length
        give_up = at + writer.room()
    return True


def _common(base: bytes, start: int, target: bytes, at: int, most: int) -> int:
    done, step = 0, 64
    while done < most:
        step = min(step, most - done)
        left, right = start + done, at + done
        if base[left : left + step] == target[right : right + step]:
            done += step
            step *= 2
        elif step == 1:
            break
        else:
            step = (step + 1) // 2
            most = min(most, done + 2 * step)
    return done


class _Writer:
    """A delta in the making. `done` is how much of the target it tells already."""

    def __init__(self, base: bytes, target: bytes, limit: int) -> None:
        self.base = base
        self.target = target
        self.done = 0
        self._limit = limit
        self._parts = [_as_size(len(base)), _as_size(len(target))]
        self._length = len(self._parts[0]) + len(self._parts[1])

    def room(self) -> int:
        return max(0, self._limit - self._length)

    def take_up_to(self, end: int) -> None:
        for at in range(self.done, end, _LONGEST_INSERT):
            piece = self.target[at : min(end, at + _LONGEST_INSERT)]
            self._add(bytes((len(piece),)) + piece)
        self.done = end

    def copy(self, start: int, length: int) -> None:
        self.done += length
        while length > 0:
            part = min(length, _LONGEST_COPY)
            self._add(_copy(start, part))
            start, length = start + part, length - part

    def finish(self) -> "bytes | None":
        return b"".join(self._parts) if self._length <= self._limit else None

    def _add(self, part: bytes) -> None:
        self._parts.append(part)
        self._length += len(part)


def _copy(start: int, length: int) -> bytes:
    code, parts = 0x80, bytearray()
    value = start | (0 if length == 0x10000 else length) << 32
    for bit in range(7):
        byte = value >> 8 * bit & 0xFF
        if byte:
            code |= 1 << bit
            parts.append(byte)
    return bytes((code,)) + parts


def _as_size(size: int) -> bytes:
    parts = bytearray()
    while size > 0x7F:
        parts.append(size & 0x7F | 0x80)
        size >>= 7
    parts.append(size)
    return bytes(parts)
