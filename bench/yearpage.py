"""Writes the figures of a year as a page of Markdown."""

from year import MIB, Found

MOST = 1.5
"""How many times the size of git's repository a store may have that keeps everything."""
ABOUT = """\
Written by `bench/run --only year`; do not edit. Each turn edits 25 KiB, most of it in files of one
folder, some anywhere: 25 KiB of lines are replaced by new ones; or, which is harder, some lines in
files that have 25 KiB together, so that there is little new text beside what describes it. It goes
through the API that harnesses use, one session for 50 turns, without steps. The same states are
commits of a git repository, packed by `git gc --aggressive`; its index counts as our stat cache
does. The clock is set back a year and goes on with each turn. Default retention (30 days, 200
turns) is what becomes of a copy at the end. Syncs are left out but where times are taken. `gc` runs
in a process of its own; its peak of memory is what the system says."""


def render(years: list[Found], machine: str) -> str:
    """The page."""
    parts = ["# A year of turns", ABOUT, machine]
    for found in years:
        plan = found.plan
        what = "some lines in files of 25 KiB" if plan.few else "25 KiB of new lines each"
        parts += [f"## {plan.turns:,} turns on {plan.files:,} files, {what}"]
        parts += [section(found)]
    return "\n\n".join(parts)


def section(found: Found) -> str:
    """The figures of one year."""
    plan, git = found.plan, sum(found.git.values())
    each = f"{found.edits / plan.turns:.1f} files in {found.folders / plan.turns:.1f} folders"
    ratio = sum(found.cases[0].late.sizes.values()) / git
    holds = "yes" if ratio <= MOST else "**no**"
    lines = [
        f"A turn changed {each}, {plan.spread:.0%} of them anywhere in the tree.",
        f"`gc` ran every {plan.gc_every} turns. It took {found.seconds / 60:.0f} minutes.",
        "",
        f"Promised: everything kept takes at most {MOST} x git. Measured: {ratio:.2f} x; {holds}.",
        "",
        "| MB | "
        + " | ".join([*(case.name for case in found.cases), "git gc --aggressive"])
        + " |",
        "| --- |" + " ---: |" * (len(found.cases) + 1),
    ]
    for part in found.git:
        row = [case.late.sizes[part] for case in found.cases] + [found.git[part]]
        lines.append(f"| {part} | " + " | ".join(f"{size / 1e6:.2f}" for size in row) + " |")
    sums = [sum(case.late.sizes.values()) for case in found.cases]
    cells = [f"**{size / 1e6:.2f}** ({size / git:.2f} x)" for size in sums]
    lines.append("| together | " + " | ".join([*cells, f"**{git / 1e6:.2f}**"]) + " |")
    before = " | ".join(f"{case.before_gc / 1e6:.2f}" for case in found.cases)
    lines += [f"| before the last gc | {before} | |", ""]
    lines += ["| | after 50 turns | at the end |", "| --- | ---: | ---: |"]
    for case in found.cases:
        for what in ("checkpoint", "log", "show"):
            pair = (getattr(moment, what) * 1e3 for moment in (case.early, case.late))
            name = {"checkpoint": "checkpoint, 1 file changed"}.get(
                what, f"`takeback {what}`, cold"
            )
            lines.append(
                f"| {case.name}: {name} | " + " | ".join(f"{n:.1f} ms" for n in pair) + " |"
            )
        early, late = case.early, case.late
        lines.append(f"| {case.name}: gc | {early.gc:.1f} s | {late.gc:.1f} s |")
        peaks = " | ".join(f"{one.gc_memory / MIB:.0f} MiB" for one in (early, late))
        lines.append(f"| {case.name}: gc, peak of memory | {peaks} |")
    return "\n".join(lines) + "\n"
