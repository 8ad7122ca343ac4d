"""What it costs to save files before a command destroys them: `.venv/bin/python bench/rescue.py`.

Makes many large, empty files beside a project, on the disk of the store, and times `before` and
`after` around their deletion.
"""

import os
import shutil
import sys
import time
from pathlib import Path

from takeback.effects import rescue
from takeback.model.beyond.effects import DELETE, Judgement, Target
from takeback.model.reasons import Reason
from takeback.testing import Sandbox

FILES, SIZE, RUNS = 3500, 2_000_000, 3


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else FILES
    took: dict[str, list[float]] = {"before": [], "after": []}
    for _ in range(RUNS):
        with Sandbox() as box:
            box.write("covered", b"covered")
            folder = Path(box.tree).parent / "papers"
            folder.mkdir()
            for number in range(files):
                path = folder / f"{number}.pdf"
                path.touch()
                os.truncate(path, SIZE)
            target = Target(os.fsencode(folder), DELETE, is_recursive=True)
            judged = Judgement("destructive", "bench", Reason("bench"), targets=(target,))
            project = box.project
            work = project.workspace
            with project.session(agent="bench") as session, session.turn("delete") as turn:
                step = turn.step("Bash", {"command": "rm -rf ../papers"})
                with work.held():
                    start = time.perf_counter()
                    assert rescue.before(work, step.id, judged).is_whole
                    took["before"].append(time.perf_counter() - start)
                shutil.rmtree(folder)
                with work.held():
                    start = time.perf_counter()
                    rescue.after(work, step.id)
                    took["after"].append(time.perf_counter() - start)
                step.end()
    for name, seconds in took.items():
        print(f"{name:7} {min(seconds) * 1000:6.0f} ms for {files} files of {SIZE}")


if __name__ == "__main__":
    main()
