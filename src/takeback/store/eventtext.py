"""What events say, in less space.

An event is written as plain text. When it is old, its text is deflated, with the words that all
events share as a dictionary; that is a third of it. The commitment in the chain is over the text,
so nothing else changes, and each event can still be read, or forgotten, by itself.
"""

import zlib

from takeback.store import fsops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.store.sqlite import Connection

STAY_PLAIN = 200
"""So many of the newest events stay as they were written."""
_FIRST_WORDS = 1
"""Which dictionary a text was deflated with: its first byte. Dictionaries never change."""
_WORDS = {
    _FIRST_WORDS: b'"outside":[],"partial":false,"because":"","goal":"","target":null,"entry":null,'
    b'"turns":["","before":"","after":"","restore":"","saves":[["","verb":"undo","redo","rollback",'
    b'"agent":"","own_id":"","title":"","holder":"","inside":null,"parent":null,"tool":"Bash",'
    b'"kind":"shell","summary":"","paths":[],"background":false,"status":"failed","interrupted",'
    b'"omit",0],["","create",0],["","delete",0],["","rename",0],["","mode",0],["","link",0],["src/'
    b'{"step":"","turn":"","tool":"Edit","kind":"edit","summary":"","paths":[""],"looked":179'
    b'{"turn":"","session":"","label":"","whole":true,"checkpoint":"","looked":179,"git":null}'
    b'{"checkpoint":"","label":"","tree":"","root":"","pack":,"view":"","keep":"","entries":,'
    b'"changed":,"packs":[[,"pack-","session":null,"turn":"","step":null,"looked":179,"authors":'
    b'[["you","",null,null,null,[]],["step","edit","","","",[]],["step","turn","","",null,[]]],'
    b'"deltas":[["","write",0],["","write",0],["'
    b'{"turn":"","status":"done","git":null,"changes":[["","write",1,0,"edit"],["","write",2,3,'
    b'"shell"],["","write",1,1,"turn"],["","write",1,1,"turn"]],"ended":179,"checkpoint":"",'
    b'"looked":179'
}
_NEWEST_PACKED = "SELECT seq FROM events WHERE typeof(payload) = 'blob' ORDER BY seq DESC LIMIT 1"
_LAST = "SELECT coalesce(max(seq), 0) FROM events"
_PLAIN = (
    "SELECT seq, payload FROM events WHERE seq > ? AND seq <= ? AND typeof(payload) = 'text'"
    " ORDER BY seq LIMIT ?"
)


def pack(text: str) -> bytes:
    """Return what an event says, deflated."""
    data = text.encode("utf-8", "surrogatepass")
    words = _WORDS[_FIRST_WORDS]
    stream = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, words)
    packed = bytes((_FIRST_WORDS,)) + stream.compress(data) + stream.flush()
    return packed + zlib.crc32(packed).to_bytes(4, "big")


def unpack(data: bytes) -> str:
    """Return what an event says; a ValueError if nobody packed that."""
    words = _WORDS.get(data[0]) if data else None
    # Not every bit of a deflated stream matters to what it inflates to; here each does.
    if words is None or zlib.crc32(data[:-4]).to_bytes(4, "big") != data[-4:]:
        raise ValueError("the words of an event cannot be read")
    stream = zlib.decompressobj(-15, words)
    try:
        text = stream.decompress(data[1:-4])
    except zlib.error:
        raise ValueError("the words of an event cannot be inflated") from None
    if not stream.eof or stream.unused_data:
        raise ValueError("the words of an event are cut off")
    return text.decode("utf-8", "surrogatepass")


def squeeze(db: "Connection", most: int) -> int:
    """Deflate the oldest of the old events that are plain; return how many."""
    packed = db.execute(_NEWEST_PACKED).fetchone()
    last = int(db.execute(_LAST).fetchone()[0])
    bounds = (packed[0] if packed else 0, last - STAY_PLAIN, most)
    rows = [(pack(text), seq) for seq, text in db.execute(_PLAIN, bounds)]
    if rows:
        fsops.sql_many(db, "UPDATE events SET payload = ? WHERE seq = ?", rows)
    return len(rows)
