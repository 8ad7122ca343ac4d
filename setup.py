"""Describes what is built: in C, and by the program itself. All else is in `pyproject.toml`.

Here, and not there, because whether the stable ABI can be used depends on the interpreter: a
free-threaded CPython has none, and another Python needs no extension that it would only emulate.
Without a compiler both are left out, and what is written in Python does the work.

The man page and the scripts of shells are what the program prints, so that they fit its help.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

OLDEST = 0x030B0000  # as `requires-python`
STABLE_ABI = sys.implementation.name == "cpython" and not sysconfig.get_config_var(
    "Py_GIL_DISABLED"
)


SHARED = {
    "man": ("man/man1/takeback.1", "man/man1/tb.1"),
    "completion bash": ("bash-completion/completions/takeback", "bash-completion/completions/tb"),
    "completion fish": (
        "fish/vendor_completions.d/takeback.fish",
        "fish/vendor_completions.d/tb.fish",
    ),
    "completion zsh": ("zsh/site-functions/_takeback",),
}
"""What lies in `share` where it is installed, by the command that prints it."""
PLACES = [f"share/{path}" for paths in SHARED.values() for path in paths]


class Program(Extension):
    """Not a module: a program that stands beside modules, and goes wherever they go."""


class Build(build_ext):
    """Builds programs, too, and what lies beside them."""

    def run(self) -> None:
        """Build everything."""
        for words, paths in SHARED.items():
            command = [sys.executable, "-I", "-S", "src/takeback/__main__.py", *words.split()]
            printed = subprocess.run(command, capture_output=True, check=True)  # noqa: S603
            for place in (Path("build/share", path) for path in paths):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(printed.stdout)
        super().run()

    def get_ext_filename(self, fullname: str) -> str:
        """Where it is put: a program has no ending."""
        if isinstance(self.ext_map.get(fullname), Program):
            return fullname.replace(".", "/")
        return str(super().get_ext_filename(fullname))

    def build_extension(self, ext: Extension) -> None:
        """Compile and link."""
        if not isinstance(ext, Program):
            super().build_extension(ext)
            return
        objects = self.compiler.compile(ext.sources, output_dir=self.build_temp, debug=self.debug)
        path = self.get_ext_fullpath(ext.name)
        self.mkpath(path.rpartition("/")[0])
        self.compiler.link_executable(objects, path, extra_preargs=self._architectures())

    def _architectures(self) -> list[str]:
        """What a Python for several processors compiles for; the linker is not told by itself."""
        said = list(self.compiler.compiler_so)
        found = [said[at : at + 2] for at, word in enumerate(said) if word == "-arch"]
        return [word for pair in found for word in pair]


statloop = Extension(
    "takeback.worktree._statloop",
    sources=["src/takeback/worktree/_statloop.c"],
    define_macros=[("Py_LIMITED_API", f"0x{OLDEST:08X}")] if STABLE_ABI else [],
    py_limited_api=STABLE_ABI,
    optional=True,
)
ask = Program("takeback.hooks.ask", sources=["src/takeback/hooks/_ask.c"], optional=True)

setup(
    cmdclass={"build_ext": Build},
    data_files=[(path.rpartition("/")[0], [f"build/{path}"]) for path in PLACES],
    ext_modules=[statloop, ask] if sys.implementation.name == "cpython" else [ask],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE_ABI else {},
)
