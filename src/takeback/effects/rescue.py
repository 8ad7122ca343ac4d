"""Save what a destructive command is about to destroy and no checkpoint holds.

`before` runs just before the command, `after` when it is over. Both run with the lock held, and
neither stops the agent: what cannot be saved is reported.
"""

from takeback.model import rescued

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.capture.workspace import Workspace
    from takeback.model.effects import Judgement
    from takeback.model.rescued import Rescued


def before(work: "Workspace", step: str, judgement: "Judgement") -> "Rescued":
    """Save what a call would destroy; say what could not be saved."""
    _ = (work, step, judgement)
    return rescued.NOTHING


def after(work: "Workspace", step: str) -> None:
    """Drop what turned out to be still there; `step` is over, or nobody will report its end."""
    _ = (work, step)
