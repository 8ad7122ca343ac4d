"""What events say, in less space.

The text of an event is deflated, with the words that all events share as a dictionary; that is a
third of it, for some microseconds. The commitment in the chain is over the text, and each event
is deflated by itself, so that it can be read, or forgotten, without the others.
"""

import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_WORDS = 1
"""Which dictionary a text was deflated with: its first byte. Dictionaries never change."""
_WINDOW = -13
"""8 KiB, without a head. To set up a larger one takes ten times as long as most texts."""
_LONGEST_TEXT, _STEP = 1 << 16, 64
_WORDS = {
    _FIRST_WORDS: b'"outside":[],"partial":false,"because":"","goal":"","target":null,"entry":null,'
    b'"turns":["","before":"","after":"","restore":"","saves":[["","verb":"undo","redo","rollback",'
    b'"agent":"","own_id":"","title":"","holder":"","inside":null,"parent":null,"tool":"Bash",'
    b'"kind":"shell","summary":"","paths":[],"background":false,"status":"failed","interrupted",'
    b'"omit",0],["","create",0],["","delete",0],["","rename",0],["","mode",0],["","link",0],["src/'
    b'{"step":"","turn":"","tool":"Edit","kind":"edit","summary":"","paths":[""],"looked":179'
    b'{"turn":"","session":"","label":"","whole":true,"checkpoint":"","looked":179,"git":null}'
    b'{"checkpoint":"","label":"","tree":"","root":"","view":"","entries":,'
    b'"changed":,"packs":[[,"pack-","session":null,"turn":"","step":null,"looked":179,"authors":'
    b'[["you","",null,null,null,[]],["step","edit","","","",[]],["step","turn","","",null,[]]],'
    b'"deltas":[["","write",0],["","write",0],["'
    b'{"turn":"","status":"done","git":null,"changes":[["","write",1,0,"edit"],["","write",2,3,'
    b'"shell"],["","write",1,1,"turn"],["","write",1,1,"turn"]],"ended":179,"checkpoint":"",'
    b'"looked":179'
}


def pack(text: str) -> bytes:
    """Return what an event says, deflated."""
    data = text.encode("utf-8", "surrogatepass")
    words = _WORDS[_FIRST_WORDS]
    stream = zlib.compressobj(6, zlib.DEFLATED, _WINDOW, 6, zlib.Z_DEFAULT_STRATEGY, words)
    packed = bytes((_FIRST_WORDS,)) + stream.compress(data) + stream.flush()
    return packed + zlib.crc32(packed).to_bytes(4, "big")


def unpack(data: bytes) -> str:
    """Return what an event says; a ValueError if nobody packed that."""
    words = _WORDS.get(data[0]) if data else None
    # Not every bit of a deflated stream matters to what it inflates to; here each does.
    if words is None or zlib.crc32(data[:-4]).to_bytes(4, "big") != data[-4:]:
        raise ValueError("the words of an event cannot be read")
    stream = zlib.decompressobj(_WINDOW, words)
    try:
        text = stream.decompress(data[1:-4])
    except zlib.error:
        raise ValueError("the words of an event cannot be inflated") from None
    if not stream.eof or stream.unused_data:
        raise ValueError("the words of an event are cut off")
    return text.decode("utf-8", "surrogatepass")


def anywhere_in(data: bytes) -> "Iterator[bytes]":
    """Whatever inflates in some bytes as the text of an event would, whole or cut off.

    For who looks whether something is left of a text where nothing should be.
    """
    view = memoryview(data)
    for first, words in _WORDS.items():
        at = data.find(first)
        while at >= 0:
            found = _inflated(view[at + 1 :], words)
            if found:
                yield found
            at = data.find(first, at + 1)


def _inflated(view: memoryview, words: bytes) -> bytes:
    """What some bytes inflate to, as far as they do."""
    stream, found = zlib.decompressobj(_WINDOW, words), []
    for at in range(0, min(len(view), _LONGEST_TEXT), _STEP):
        try:
            found.append(stream.decompress(view[at : at + _STEP]))
        except zlib.error:
            break
        if stream.eof:
            break
    return b"".join(found)
