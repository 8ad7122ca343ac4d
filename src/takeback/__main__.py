"""Starts the command line, for `python -m takeback` and for the launcher `./takeback`.

The launcher runs this file with `python -I -S`: nothing comes in from the environment, the
current folder or `site`, and a start is several milliseconds shorter. The price is that the two
folders which hold our code are named here. They go last, so nothing in them hides a module of
Python itself.
"""

import sys

if sys.flags.no_site:
    _source = __file__.removesuffix("/takeback/__main__.py")
    _version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    sys.path += [_source, f"{_source}/../.venv/lib/{_version}/site-packages"]

try:
    if __name__ == "__main__" and sys.argv[1:] == ["hook"]:
        from takeback import linked

        linked.begin(__file__.removesuffix("/__main__.py"))
        # A hook answers, whatever the rest of the program is like, and never fails.
        from takeback.hooks.entry import finish

        finish()

    from takeback.cli.app import entry

    if __name__ == "__main__":
        entry()
except KeyboardInterrupt:
    # So early that nothing was begun.
    sys.exit(130)
