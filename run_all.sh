#!/usr/bin/env bash
# Makes the environment when there is none, then hands on to the study's command line (lib/study/cli.py).
#   PYTHON=python3.12                the Python that makes the environment (3.11 to 3.13)
#   TORCH="torch==2.13.0 --index-url ..."  what pip installs as torch, for a CUDA build or an index of your own;
#                                    without it a CPU build, where the index in use has one
#   STUDY_DATA=folder                the real data, for every scale but smoke
set -euo pipefail
case "${STUDY_DATA:-}" in "" | /*) ;; *) export STUDY_DATA="$PWD/$STUDY_DATA" ;; esac
cd "$(dirname "$0")"

TORCH_VERSION=2.13.0
if [ "${CONDA_DEFAULT_ENV:-}" = biomedical-language-models ]; then # made from environment.yml
    environment="$CONDA_PREFIX"
else
    environment=.venv
fi
python="$environment/bin/python"
stamp="$environment/study-stamp"
wanted="$(cat requirements.lock pyproject.toml | cksum) $PWD"
have="$(sed -n 1p "$stamp" 2>/dev/null || true)"
have_torch="$(sed -n 2p "$stamp" 2>/dev/null || true)"

if [ "$have" != "$wanted" ] || [ "${TORCH:-$have_torch}" != "$have_torch" ]; then
    if ! "$python" -m pip --version >/dev/null 2>&1; then
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
        if ! "$maker" -c 'import ensurepip, venv' 2>/dev/null; then
            echo "error: $maker has no venv module: install it (on Debian and Ubuntu: apt install python3-venv)" >&2
            exit 1
        fi
        echo "Making the environment in $environment ($("$maker" --version)) ..."
        "$maker" -m venv --clear "$environment"
    fi
    echo "Installing packages ..."
    # Pip before 23.1 builds a source (seqeval's) with what happens to be there, and fails, unless told otherwise.
    pip() { "$python" -m pip install --quiet --disable-pip-version-check --use-pep517 "$@"; }
    if [ -n "${TORCH:-}" ]; then
        # shellcheck disable=SC2086  # the words of TORCH are arguments
        pip $TORCH
    elif ! "$python" -c "import torch, sys; sys.exit(not torch.__version__.startswith('$TORCH_VERSION'))" 2>/dev/null; then
        pip "torch==$TORCH_VERSION+cpu" 2>/dev/null || pip "torch==$TORCH_VERSION"
    fi
    pip --require-hashes -r requirements.lock
    pip --no-deps --editable .
    printf '%s\n' "$wanted" "${TORCH:-$have_torch}" >"$stamp"
fi
exec "$python" -m lib.study.cli "$@"
