"""Situations in which trust is won or lost: what a user does, and then sees.

Each has a title and a script. A line with `$` is shown with what it prints and how it ends; the
others come before it, unseen. `agent NAME …` tells what an agent does, through its hooks; `disk …`
and `as …` make a small disk and another user. What no line says is a shell's.
"""

from collections.abc import Iterator
from typing import NamedTuple


class Situation(NamedTuple):
    """What happens, under a heading and a title."""

    group: str
    title: str
    lines: tuple[str, ...]


def situations() -> Iterator[Situation]:
    """All of them, in the order of the page."""
    group = title = ""
    lines: list[str] = []
    for line in [*SCRIPT.strip().splitlines(), "# end"]:
        if line.startswith("#"):
            if title:
                yield Situation(group, title, tuple(lines))
            title, lines = "", []
            name = line.lstrip("# ")
            group, title = (group, name) if line.startswith("##") else (name, "")
        elif line.strip():
            lines.append(line)


GIT = "git init -q -b main && git add -A && git commit -qm start"

SCRIPT = f"""
# Deleted and left out

## The agent deletes a covered folder
mkdir src && echo 'def pay(): ...' > src/pay.py
takeback checkpoint
takeback run -q -m 'tidy up' -- rm -r src
$ takeback undo
$ cat src/pay.py

## The agent deletes a folder that can be made again
mkdir node_modules && (cd node_modules && seq 300 | xargs touch)
echo '{{}}' > package-lock.json
takeback checkpoint
$ takeback run -m 'start over' -- sh -c 'rm -r node_modules; echo 1 > a.txt'
$ takeback undo

## The agent deletes only what is left out
truncate -s 20M big.bin
echo a > a.txt
takeback checkpoint
$ takeback run -m 'free space' -- rm big.bin
$ takeback undo
$ takeback log

## The agent overwrites a big file that is left out
truncate -s 20M big.bin
takeback checkpoint
$ takeback run -m 'shrink it' -- sh -c 'echo small > big.bin'
$ takeback undo
$ test "$(wc -c < big.bin)" = 20971520 && echo all 20 MB

## The agent makes a big file
takeback checkpoint
takeback run -q -m 'dump' -- truncate -s 20M dump.bin
$ takeback
$ takeback undo
$ ls

## The agent deletes an empty folder and a link
mkdir notes && ln -s nowhere current
takeback checkpoint
takeback run -q -m 'tidy up' -- sh -c 'rmdir notes; rm current'
$ takeback undo
$ readlink current

## The agent deletes the whole project
echo mine > a.txt
takeback checkpoint
takeback run -q -m 'clean' -- sh -c 'rm -rf "$PWD"'
cd $ANA
$ takeback undo -C tree
$ cat tree/a.txt

## You delete the project folder, and want it back
echo mine > a.txt
takeback checkpoint
cd $ANA && rm -r tree
$ takeback projects
$ takeback -C tree undo
$ takeback log -C tree

# The user's git

## The agent deletes .git
echo a > a.txt
{GIT}
takeback checkpoint
$ takeback run -m 'start over' -- rm -rf .git
$ takeback undo

## The agent commits
echo a > a.txt
{GIT}
takeback checkpoint
takeback run -q -m 'add b' -- sh -c 'echo b > b.txt && git add -A && git commit -qm b'
$ takeback undo
$ git log --oneline --format=%s

## The agent commits, and you stage something after it
echo a > a.txt
{GIT}
takeback checkpoint
takeback run -q -m 'add b' -- sh -c 'echo b > b.txt && git add -A && git commit -qm b'
echo mine > mine.txt && git add mine.txt
$ takeback undo
$ git status --short

## The agent switches branches, edits and comes back
echo a > a.txt
{GIT}
takeback checkpoint
takeback run -q -m 'on a branch' -- sh -c 'git switch -qc side && \
echo b > b.txt && git add -A && git commit -qm b && git switch -q main && echo 2 > a.txt'
$ takeback show @~0
$ takeback undo

## The agent leaves you on another branch
echo a > a.txt
{GIT}
takeback checkpoint
takeback run -q -m 'new branch' -- sh -c 'git switch -qc side && \
echo b > b.txt && git add -A && git commit -qm b'
$ takeback undo

## You switched branches since
echo a > a.txt
{GIT}
git branch other
takeback checkpoint
takeback run -q -m 'edit a' -- sh -c 'echo 2 > a.txt'
git stash -q && git switch -q other
$ takeback undo
$ git branch --show-current

## The agent drops your stash
echo a > a.txt
{GIT}
echo wip > a.txt && git stash -q
takeback checkpoint
$ takeback run -m 'tidy git' -- git stash drop -q
$ takeback undo

## The agent deletes your branch
echo a > a.txt
{GIT}
git switch -qc feature && echo f > f.txt && git add -A && git commit -qm f && git switch -q main
takeback checkpoint
$ takeback run -m 'tidy git' -- git branch -qD feature
$ takeback undo

## The agent resets your staged work
echo a > a.txt
{GIT}
echo staged > a.txt && git add a.txt
takeback checkpoint
takeback run -q -m 'start over' -- git reset -q --hard
$ takeback undo
$ cat a.txt

## The agent cleans untracked and ignored files
printf '.env\\n' > .gitignore && echo a > a.txt
{GIT}
echo KEY=1 > .env && echo draft > draft.txt
takeback checkpoint
takeback run -q -m 'clean' -- git clean -qfdx
$ takeback undo
$ cat .env draft.txt

## The agent adds a worktree
echo a > a.txt
{GIT}
takeback checkpoint
$ takeback run -m 'try it' -- git worktree add -q ../beside -b try
$ takeback undo

# Conflicts

## You changed the same line
printf '1\\n2\\n3\\n' > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sed -i s/2/agent/ a.txt
sed -i s/agent/mine/ a.txt
$ takeback undo
$ cat a.txt

## You keep your line; the agent's other line goes back
seq 9 > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sed -i 's/2/agent/; s/8/agent8/' a.txt
sed -i 's/agent$/mine/' a.txt
$ takeback undo --keep-mine
$ cat a.txt
$ takeback log

## You take the agent's line back; your other line stays
seq 9 > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sed -i 's/2/agent/' a.txt
sed -i 's/agent$/mine/; s/8/my8/' a.txt
$ takeback undo --take-back
$ cat a.txt

## You leave the conflict and take the rest
seq 9 > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sed -i 's/2/agent/; s/8/agent8/' a.txt
sed -i 's/agent$/mine/' a.txt
$ takeback undo --skip-conflicts
$ cat a.txt
$ takeback log
$ takeback redo
$ cat a.txt

## Both versions, with markers
printf '1\\n2\\n3\\n' > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sed -i s/2/agent/ a.txt
sed -i s/agent/mine/ a.txt
$ takeback undo --markers
$ cat a.txt
$ takeback
$ takeback undo --dry-run

## A binary file that both changed
printf 'a\\0b' > a.bin
takeback checkpoint
takeback run -q -m 'edit' -- sh -c "printf 'a\\\\0c' > a.bin"
printf 'a\\0d' > a.bin
$ takeback undo
$ takeback undo --take-back
$ od -c a.bin

## You edited other lines
seq 9 > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sed -i s/2/agent/ a.txt
sed -i s/8/mine/ a.txt
$ takeback undo
$ cat a.txt

## You edited the agent's new file
takeback checkpoint
takeback run -q -m 'new file' -- sh -c 'echo agent > new.txt'
echo mine >> new.txt
$ takeback undo
$ cat new.txt

## You deleted what the agent edited
echo a > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sh -c 'echo b > a.txt'
rm a.txt
$ takeback undo
$ ls

## You renamed what the agent edited
seq 9 > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sed -i s/2/agent/ a.txt
mv a.txt b.txt
$ takeback undo
$ cat b.txt

## A later turn builds on it
seq 9 > a.txt
takeback checkpoint
takeback run -q -m 'first' -- sed -i s/2/first/ a.txt
takeback run -q -m 'second' -- sed -i s/first/second/ a.txt
$ takeback undo first
$ cat a.txt

# Several agents

## Two agents whose shells overlap
takeback checkpoint
agent A prompt 'from A'
agent B prompt 'from B'
agent A begin
agent B begin
echo 1 > both.txt
agent B end
agent A end
agent A stop
agent B stop
$ takeback undo
$ takeback undo --shared --yes
$ ls

## Two turns together take what only they share
takeback checkpoint
agent A prompt 'from A'
agent B prompt 'from B'
agent A begin
agent B begin
echo 1 > both.txt
agent B end
agent A end
agent A stop
agent B stop
$ takeback undo 'from A' 'from B' --yes
$ ls

## Another agent works while you undo
echo a > a.txt && echo b > b.txt
takeback checkpoint
agent A prompt 'edit a'
agent A edit a.txt changed
agent A stop
agent B prompt 'edit b'
agent B edit b.txt changed
$ takeback log
$ takeback undo 'edit a' --yes
$ cat a.txt b.txt

## The agent is told the net effect
echo a > a.txt
takeback checkpoint
agent A prompt 'edit a'
agent A edit a.txt changed
agent A stop
takeback undo
takeback redo
takeback undo
$ agent A prompt 'go on'

# Names and times

## A name is a reference
echo 1 > a.txt
takeback checkpoint -m 'tests green'
takeback run -q -m 'break it' -- sh -c 'echo 2 > a.txt'
$ takeback diff 'tests green'
$ takeback rollback 'tests green' --yes
$ cat a.txt

## A name for what is named already
echo 1 > a.txt
takeback checkpoint -m 'start'
$ takeback checkpoint -m 'tests green'
$ takeback log --checkpoints
$ takeback show 'tests green'

## A name that is a time
$ takeback checkpoint -m 'yesterday'
$ takeback checkpoint -m '@~1'
$ takeback checkpoint -m 'base-'

## A time before the history
echo 1 > a.txt
takeback checkpoint
$ takeback show 'yesterday'

## A turn that does not exist
echo 1 > a.txt
takeback checkpoint
$ takeback undo zzzz
$ takeback show 'no such prompt'

## Words that several prompts have
echo 1 > a.txt
takeback checkpoint
takeback run -q -m 'fix the login' -- sh -c 'echo 2 > a.txt'
takeback run -q -m 'fix the logout' -- sh -c 'echo 3 > a.txt'
$ takeback undo 'fix the'
$ takeback undo login --yes
$ cat a.txt

## Now is now
echo 1 > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sh -c 'echo 2 > a.txt'
echo mine > b.txt
$ takeback
$ takeback show @ b.txt

# Bad input

## A path where a turn is expected
echo 1 > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sh -c 'echo 2 > a.txt'
$ takeback undo a.txt

## An unknown command
$ takeback rewind
$ takeback undoo

## An unknown option
$ takeback undo --force

## Two decisions at once
$ takeback undo --keep-mine --take-back

## A folder without history
$ takeback
$ takeback undo
$ takeback log

## A folder that is not there
$ takeback -C nowhere log
$ takeback -C nowhere undo

## The home folder
$ takeback -C "$HOME" checkpoint

## A typo in the settings
echo 1 > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sh -c 'echo 2 > a.txt'
printf '[retention\\ndays = 3\\n' > "$TAKEBACK_HOME/config.toml"
$ takeback undo
$ cat a.txt

## An agent that does not exist
$ takeback install claude

## Nothing to undo
echo 1 > a.txt
takeback checkpoint
$ takeback undo
$ takeback redo

## Undo twice, redo, and a new turn
echo 1 > a.txt
takeback checkpoint
takeback run -q -m 'one' -- sh -c 'echo 2 > a.txt'
takeback undo
takeback run -q -m 'two' -- sh -c 'echo 3 > b.txt'
$ takeback redo
$ takeback redo one --yes
$ cat a.txt

# Commands

## A command that fails
echo 1 > a.txt
takeback checkpoint
$ takeback run -m 'build' -- sh -c 'echo 2 > a.txt; exit 7'
$ takeback log
$ takeback undo
$ cat a.txt

## A command that cannot start
$ takeback run -- no-such-program

## A masked diff cannot be applied
echo KEY=old-secret-value > .env
takeback checkpoint
echo KEY=new-secret-value > .env
$ takeback diff
$ takeback diff | git apply -R
$ cat .env

## Why a turn was undone
echo 1 > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sh -c 'echo 2 > a.txt'
takeback undo --because 'the tests fail'
$ takeback log --all
$ takeback show edit

## Turned off
echo 1 > a.txt
takeback checkpoint
$ takeback off
$ takeback run -m 'edit' -- sh -c 'echo 2 > a.txt'
$ takeback
$ takeback on

# Folders that move

## The project was moved
echo 1 > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sh -c 'echo 2 > a.txt'
cd $ANA && mv tree moved && cd moved
$ takeback undo
$ takeback projects

## The project was copied
echo 1 > a.txt
takeback checkpoint
cd $ANA && cp -a tree copy && cd copy
$ takeback log
$ takeback run -m 'edit' -- sh -c 'echo 2 > a.txt'

## The folder was cloned again
echo 1 > a.txt
takeback checkpoint
cd $ANA && rm -r tree && mkdir tree && cd tree && echo 2 > a.txt
$ takeback run -m 'edit' -- sh -c 'echo 3 > a.txt'
$ takeback undo
$ cat a.txt

## A new history on purpose
echo 1 > a.txt
takeback checkpoint
$ takeback relocate --new
$ takeback relocate --new --yes
$ takeback projects

## The store was deleted
echo 1 > a.txt
takeback checkpoint
rm -r "$TAKEBACK_HOME"/projects/*
$ takeback undo
$ takeback run -m 'edit' -- sh -c 'echo 2 > a.txt'

## A ledger that is damaged
echo 1 > a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sh -c 'echo 2 > a.txt'
for f in "$TAKEBACK_HOME"/projects/*/ledger.db; do printf 'damaged' | \
dd of="$f" conv=notrunc status=none; rm -f "$f-wal" "$f-shm"; done
$ takeback undo
$ takeback run -m 'again' -- sh -c 'echo 3 > a.txt'
$ cat a.txt

# Disks and other users

## The disk of the store is full
disk full
$ takeback undo
$ takeback checkpoint
$ takeback run -m 'edit' -- sh -c 'echo 3 > a.txt'
$ cat a.txt

## The disk of the store is read-only
disk read-only
$ takeback log
$ takeback undo
$ cat a.txt

## The store belongs to another user
echo 1 > a.txt
takeback checkpoint
chown -R 1234 "$TAKEBACK_HOME"
$ takeback undo
$ takeback run -m 'edit' -- sh -c 'echo 2 > a.txt'

## An open folder for the store
chmod 755 "$TAKEBACK_HOME" 2>/dev/null || mkdir -m 755 "$TAKEBACK_HOME"
echo 1 > a.txt
$ takeback checkpoint

## A file of the project belongs to another user
echo 1 > a.txt && chown 1234 a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sh -c 'echo 2 > a.txt'
$ takeback undo
$ stat -c %u a.txt

## A file that may not be written
echo 1 > a.txt && chmod 444 a.txt
takeback checkpoint
takeback run -q -m 'edit' -- sh -c 'chmod 644 a.txt && echo 2 > a.txt'
$ takeback undo
$ stat -c %a a.txt
"""
