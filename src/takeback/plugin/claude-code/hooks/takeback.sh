# Finds Takeback and lets it hear one event, which is on stdin. It always ends well: some hosts let
# no tool run after a hook that failed. With `tell`, the user hears if there is no Takeback.
PATH=$PATH:${HOME:-/nowhere}/.local/bin:/opt/homebrew/bin:/usr/local/bin
if command -v takeback >/dev/null; then exec takeback hook "$CLAUDE_PROJECT_DIR"; fi

# The package itself is around us, unless a marketplace copied this folder elsewhere.
main=${0%/*}/../../../__main__.py
if [ -f "$main" ]; then
    main=$(CDPATH='' cd -- "${main%/*}" && pwd)/__main__.py
    for python in python3 python3.11 python3.12 python3.13 python3.14 python3.15; do
        if "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
            </dev/null >/dev/null 2>&1; then
            exec "$python" -I -S "$main" hook "$CLAUDE_PROJECT_DIR"
        fi
    done
fi
if [ "${1-}" = tell ]; then
    echo '{"systemMessage": "Takeback does not cover this turn: its plugin is here, but the command takeback is not. Install it, or disable the plugin."}'
fi
exit 0
