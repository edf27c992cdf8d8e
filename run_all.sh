#!/usr/bin/env bash
# Makes the environment when there is none, then hands on to the study's command line (lib/running/cli.py).
#   PYTHON=python3.12                the Python that makes the environment (3.11 to 3.13)
#   TORCH="torch==2.13.0 --index-url ..."  what pip installs as torch, for a CUDA build or an index of your own;
#                                    without it a CPU build, where the index in use has one
#   STUDY_DATA=folder                the real data, for every scale but smoke
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)" # no more: relative paths count from where the person stands
if [ ! -w "${HOME:-}" ]; then # as in many containers; packages keep caches there
    echo "The home folder (${HOME:-none}) cannot be written: caches go below outputs/.home" >&2
    caches="$root/outputs/.home"
    mkdir -p "$caches"
    if [ -r "${HOME:-}" ]; then # settings and models of the hub that lie there are read
        hub="$HOME/.cache/huggingface"
        if [ ! -d "$hub" ]; then hub="$caches/huggingface"; fi
        export HF_HOME="${HF_HOME:-$hub}" XDG_CACHE_HOME="${XDG_CACHE_HOME:-$caches}"
        export MPLCONFIGDIR="${MPLCONFIGDIR:-$caches/matplotlib}" IPYTHONDIR="${IPYTHONDIR:-$caches/ipython}"
        export JUPYTER_CONFIG_DIR="${JUPYTER_CONFIG_DIR:-$caches/jupyter}"
        export JUPYTER_DATA_DIR="${JUPYTER_DATA_DIR:-$caches/jupyter}"
        export JUPYTER_RUNTIME_DIR="${JUPYTER_RUNTIME_DIR:-$caches/jupyter}"
    else
        export HOME="$caches"
    fi
fi

TORCH_VERSION=2.13.0
if [ "${CONDA_DEFAULT_ENV:-}" = biomedical-language-models ]; then # made from environment.yml
    environment="$CONDA_PREFIX"
else
    environment="$root/.venv"
fi
python="$environment/bin/python"
stamp="$environment/study-stamp"
wanted="$(cat "$root/requirements.lock" "$root/pyproject.toml" | cksum) $root"
have="$(sed -n 1p "$stamp" 2>/dev/null || true)"
have_torch="$(sed -n 2p "$stamp" 2>/dev/null || true)"

# The environment's Python is gone if a system upgrade removed the one that it was made from.
if [ ! -x "$python" ] || [ "$have" != "$wanted" ] || [ "${TORCH:-$have_torch}" != "$have_torch" ]; then
    if ! "$python" -P -m pip --version >/dev/null 2>&1; then # -P: not what lies where the person stands
        if [ "$environment" != "$root/.venv" ]; then
            echo "error: $environment has no Python of 3.11 or later with pip: conda env update -f environment.yml" >&2
            exit 1
        fi
        maker=
        for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
            if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
                maker="$candidate"
                break
            fi
        done
        if [ -z "$maker" ]; then
            echo "error: no Python 3.11 to 3.13 found (tried ${PYTHON:-python3, python3.13, python3.12, python3.11}): install one, or set PYTHON" >&2
            exit 1
        fi
        if ! "$maker" -P -c 'import ensurepip, venv' 2>/dev/null; then
            echo "error: $maker has no venv module: install it (on Debian and Ubuntu: apt install python3-venv)" >&2
            exit 1
        fi
        echo "Making the environment in .venv ($("$maker" --version)) ..."
        "$maker" -P -m venv --clear "$environment"
    fi
    TORCH="${TORCH:-$have_torch}" "$python" -P "$root/lib/installing.py" "$TORCH_VERSION"
    printf '%s\n' "$wanted" "${TORCH:-$have_torch}" >"$stamp"
fi
exec "$python" -P -m lib.running.cli "$@"
