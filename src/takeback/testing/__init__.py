"""For authors of agents, adapters and participants: sandboxes, and suites that an author runs."""

from takeback.testing.sandbox import Sandbox, answer

__all__ = ("Sandbox", "answer")
