"""Prompts to go back to inside a client, and what is said to somebody who went back."""

import re
from typing import Any

from clients.client import Client
from clients.place import Place

OFFERED = re.compile(r"`takebackrollback([a-z]+-)`restoresthem")
"""What is said to somebody who went back, as a screen shows it, without blanks."""


def done(place: Place) -> list[dict[str, Any]]:
    """The turns that ended by themselves, the oldest first."""
    return [turn for turn in place.turns() if turn["status"] == "done"]


def offered(drawn: str) -> str:
    """The command that a screen offers to somebody who went back: the words after `rollback`."""
    (found,) = set(OFFERED.findall("".join(drawn.split())))
    return str(found)


def script(place: Place, client: Client) -> None:
    """Four prompts, each of which makes a file by an edit tool and adds a line by a shell."""
    for name in ("first", "second", "third", "fourth"):
        made = client.create(place.tree / f"{name}.txt", f"CONTENT OF THE {name}\n")
        place.model.plays(f"make the {name} file", made, client.shell(f"echo {name} >> a.txt"))


def asked_before(place: Place, prompt: str) -> list[str]:
    """The prompts that the model read, up to one of them."""
    texts = place.model.wait_for(prompt).texts
    return [text for text in texts if text.startswith("make the") and text.endswith("file")]
