"""How many random examples a test tries: few in `./check`, or `TAKEBACK_TEST_EXAMPLES`."""

import os


def examples(usual: int) -> int:
    """So many, unless the environment says how many."""
    return int(os.environ.get("TAKEBACK_TEST_EXAMPLES", "0")) or usual
