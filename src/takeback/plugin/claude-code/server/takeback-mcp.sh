# Finds Takeback and starts its server for tools. Without it, the client shows this error.
PATH=$PATH:${HOME:-/nowhere}/.local/bin:/opt/homebrew/bin:/usr/local/bin
if command -v takeback >/dev/null; then exec takeback mcp; fi

# The package itself is around us, unless a marketplace copied this folder elsewhere.
main=${0%/*}/../../../__main__.py
if [ -f "$main" ]; then
    main=$(CDPATH='' cd -- "${main%/*}" && pwd)/__main__.py
    for python in python3 python3.11 python3.12 python3.13 python3.14 python3.15; do
        if "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' </dev/null \
            >/dev/null 2>&1; then
            exec "$python" -I "$main" mcp
        fi
    done
fi
echo "takeback: the plugin is here, but the command takeback is not; install takeback[mcp]" >&2
exit 1
