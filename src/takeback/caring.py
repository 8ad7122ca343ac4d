"""A project as one takes care of its history: what is kept, and how long."""

from takeback.capturing import Capturing


class Caring(Capturing):
    """A work tree and its store, with what keeps the store small, private and healthy."""
