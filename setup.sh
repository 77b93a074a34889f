#!/bin/sh
# Make the environment that `make` uses: a Java for Spark, and the pinned packages in a folder.
set -eu
venv=$1
python=${PYTHON:-python3}

say() { printf '%s\n' "$*" >&2; }

java_version() { "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    say "Eventide needs Python 3.11 or newer; name one with 'make PYTHON=python3.12 …'."
    exit 1
fi

found=$(java_version 2>/dev/null || true)
if [ -z "$found" ] || [ "$found" -lt 17 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
        say "No Java 17 found: installing openjdk-17-jre-headless."
        { apt-get update -qq && apt-get install -y -qq openjdk-17-jre-headless > /dev/null; } || {
            say "That failed: install a JDK 17 by hand and run make again."
            exit 1
        }
    else
        say "Spark needs Java 17 or newer, which is not on the PATH: install a JDK 17 (on Debian or Ubuntu: sudo apt-get install openjdk-17-jre-headless; on macOS: brew install openjdk@17) and run make again."
        exit 1
    fi
fi

case $venv in
    /*) home=$venv ;;
    *) home=$(pwd -P)/$venv ;;
esac
# The scripts of an environment that was copied or moved here run the Python of the old one, and
# would install into it.
if ! head -n 3 "$venv/bin/pip" 2> /dev/null | grep -qF "$home/bin/"; then
    clear=
    if [ -f "$venv/pyvenv.cfg" ]; then clear=--clear; fi # and never a folder of something else
    "$python" -m venv $clear "$venv" || {
        say "Python cannot make a virtual environment (on Debian or Ubuntu: sudo apt-get install python3-venv)."
        exit 1
    }
fi
say "Installing the pinned packages into $venv; the first time takes a minute or two."
"$venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.lock
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
