# Sourced by `takeback` and `check`, which set `root` first. `environment KIND` makes the Python
# environment in `.venv` unless it is up to date, and sets `python` to the interpreter behind it:
# the real one, because a shim such as pyenv's costs more than the whole command.

# The environment is made anew when one of these is newer than its stamp.
inputs='pyproject.toml setup.py scripts/make_environment.py src/takeback/worktree/_statloop.c
src/takeback/hooks/_ask.c scripts/console/takeback scripts/console/tb'

up_to_date() {
    [ -f "$1" ] || return 1
    { read -r python && read -r made_in; } <"$1" || return 1
    [ -x "$python" ] || return 1
    for input in $inputs; do
        if [ "$root/$input" -nt "$1" ]; then return 1; fi
    done
}

# Prints the first Python that can make an environment. TAKEBACK_PYTHON names another one.
find_python() {
    for candidate in "${TAKEBACK_PYTHON:-python3}" \
        python3.11 python3.12 python3.13 python3.14 python3.15; do
        if "$candidate" -I -c \
            'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' \
            </dev/null >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    printf '%s\n' \
        'takeback: needs Python 3.11 or newer with its `venv` module, and found none.' \
        'Install one (Debian, Ubuntu: apt install python3-venv; macOS: brew install python;' \
        'anywhere: uv python install 3.13) or name one: TAKEBACK_PYTHON=/path/to/python3' >&2
    return 1
}

environment() {
    stamp=$root/.venv/$1.stamp
    # A moved checkout still runs; its tools do not, they have the old place written in them.
    if up_to_date "$stamp" && { [ "$1" = run ] || [ "$made_in" = "$root" ]; }; then return; fi
    maker=$(find_python) || exit 1
    # shellcheck disable=SC2086 # a list of names without spaces
    "$maker" -I "$root/scripts/make_environment.py" "$1" $inputs </dev/null >&2 || exit
    read -r python <"$stamp"
}
