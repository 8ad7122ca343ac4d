"""What the doors read from the process's environment; nothing below them does."""

import os
import sys


def default_home(*, usual: bool = False) -> bytes:
    """The folder of all stores: `TAKEBACK_HOME`, or the platform's `usual` place for data."""
    chosen = os.environb.get(b"TAKEBACK_HOME")
    if chosen and not usual:
        return os.path.abspath(chosen)
    if sys.platform == "darwin":
        return user_home() + b"/Library/Application Support/takeback"
    data = os.environb.get(b"XDG_DATA_HOME", b"")
    if not os.path.isabs(data):
        data = user_home() + b"/.local/share"
    return data + b"/takeback"


def user_home() -> bytes:
    home = os.path.expanduser(b"~")
    return home if os.path.isabs(home) else b""


def wants_helper() -> bool:
    """Whether hooks may use a resident helper: not with `TAKEBACK_HELPER=0`."""
    return os.environ.get("TAKEBACK_HELPER", "1") != "0"


def event_id() -> bytes:
    """The id of the event that this process handles; the client in C may have chosen one.

    It says so with the number of the process, which stays when it becomes this program: what is
    left in the environment of other processes is of another event.
    """
    pid, _, chosen = os.environb.get(b"TAKEBACK_EVENT", b"").partition(b" ")
    if pid == b"%d" % os.getpid() and chosen.isalnum():
        return chosen
    return os.urandom(16).hex().encode()


def settings_folder(variable: str, name: str) -> bytes:
    """The folder of an agent's own settings: what a variable names, else one in the home folder."""
    chosen = os.environb.get(variable.encode())
    if chosen:
        return os.path.abspath(chosen)
    config = os.environb.get(b"XDG_CONFIG_HOME", b"")
    if name.startswith(".config/") and config.startswith(b"/"):
        return config + name.removeprefix(".config").encode()
    home = user_home()
    return home + b"/" + name.encode() if home else b""


def current_folder() -> bytes:
    """Where we are, or were: somebody may have deleted the folder."""
    try:
        return os.getcwdb()
    except FileNotFoundError:
        pass
    try:
        # What Linux says; a shell that began in a deleted folder has no `PWD` to hand on.
        return os.readlink(b"/proc/self/cwd").removesuffix(b" (deleted)")
    except OSError:
        return os.path.join(b"/", os.environb.get(b"PWD", b""))
