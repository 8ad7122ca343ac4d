"""Starts the command line, for `python -m takeback` and for the launcher `./takeback`.

The launcher runs this file with `python -I -S`: nothing comes in from the environment, the
current folder or `site`, and a start is several milliseconds shorter. The price is that the two
folders which hold our code are named here. They go last, so nothing in them hides a module of
Python itself.

`python -m takeback` finds the current folder and `PYTHONPATH` in the path of modules. What an
agent wrote there must not run, so it starts once more, isolated, or takes the folder away.
"""

import os
import sys

_UNSAFE = ("PATH", "HOME", "PYCACHEPREFIX", "USERBASE", "PLATLIBDIR", "WARNINGS")
_source = __file__.removesuffix("/takeback/__main__.py")

if __name__ == "__main__" and not sys.flags.isolated:
    if any("PYTHON" + name in os.environ for name in _UNSAFE):
        _options = ["-I", "-B"] if sys.flags.dont_write_bytecode else ["-I"]
        os.execv(sys.executable, [sys.executable, *_options, __file__, *sys.argv[1:]])  # noqa: S606
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, or the one of this file

if sys.flags.no_site:
    _version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    sys.path += [_source, f"{_source}/../.venv/lib/{_version}/site-packages"]
elif __name__ == "__main__" and "takeback" not in sys.modules:
    # This Takeback, whichever is installed beside this Python; for all else its folder goes last.
    sys.path.insert(0, _source)
    __import__("takeback")
    sys.path.append(sys.path.pop(0))

try:
    # An agent's settings may add the folder that it was started in.
    _is_hook = sys.argv[1:2] == ["hook"] and sys.argv[2:3] not in (["--help"], ["-h"])
    if __name__ == "__main__" and _is_hook and len(sys.argv) <= 3:
        # A hook answers, whatever the rest of the program is like, and never fails.
        from takeback.hooks.hook import finish

        finish(*sys.argv[2:])

    from takeback.cli.app import entry

    if __name__ == "__main__":
        entry()
except KeyboardInterrupt:
    # So early that nothing was begun.
    sys.exit(130)
