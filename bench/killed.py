"""Takes the newest turn back and dies in the middle of it.

    killed.py TREE HOME NUMBER

When the file with this number comes into its place, the process kills itself. If that never
happens it ends with 1.
"""

import os
import signal
import sys

import takeback
from takeback.disk import operations

INTO_PLACE = "exchange"


def main() -> int:
    """Undo, up to a point."""
    tree, home, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    left = number

    def hook(step: str, _: tuple[object, ...]) -> None:
        nonlocal left
        left -= step == INTO_PLACE
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with takeback.open(tree, home=home) as project:
        operations.hook = hook
        project.undo()
    return 1


if __name__ == "__main__":
    sys.exit(main())
