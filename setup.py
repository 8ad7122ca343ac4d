"""Describes the optional C extension; everything else is in `pyproject.toml`.

Here, and not there, because whether the stable ABI can be used depends on the interpreter: a
free-threaded CPython has none, and another Python needs no extension that it would only emulate.
Without a compiler the extension is left out and its twin in Python does the work.
"""

import sys
import sysconfig

from setuptools import Extension, setup

OLDEST = 0x030B0000  # as `requires-python`
STABLE_ABI = sys.implementation.name == "cpython" and not sysconfig.get_config_var(
    "Py_GIL_DISABLED"
)

statloop = Extension(
    "takeback.store._statloop",
    sources=["src/takeback/store/_statloop.c"],
    define_macros=[("Py_LIMITED_API", f"0x{OLDEST:08X}")] if STABLE_ABI else [],
    py_limited_api=STABLE_ABI,
    optional=True,
)

setup(
    ext_modules=[statloop] if sys.implementation.name == "cpython" else [],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE_ABI else {},
)
