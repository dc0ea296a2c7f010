#!/usr/bin/env bash
# Check dist/: metadata, then the wheel in empty environments, where the README's code and commands must print what it
# shows. Every Python from 3.11 on that is installed here (or PYTHONS) gets the newest dependencies; the first one the oldest
# that pyproject.toml allows, too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wheel=$(ls "$PWD"/dist/*.whl)
# A name on the path may be a stub that starts nothing.
pythons=${PYTHONS:-$(for minor in 11 12 13 14; do "python3.$minor" -c '' 2>/dev/null && command -v "python3.$minor" || true; done)}

# check PYTHON NAME REQUIREMENT...: install the wheel beside these requirements and run the README with it.
check() {
    local python=$1 environment=$work/$2
    shift 2
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet "$wheel[cli]" pytest hypothesis "$@"
    (
        cd "$work" # what is imported is the wheel
        unset PYTHONPATH NUMBA_CACHE_DIR
        "$environment/bin/longtail" --version
        "$environment/bin/python" -m pip freeze | grep --ignore-case --extended-regexp '^(numpy|scipy|scikit-learn|numba)='
        "$environment/bin/python" -m pytest --quiet -p no:cacheprovider --rootdir "$OLDPWD" -c "$OLDPWD/pyproject.toml" \
            "$OLDPWD/tests/test_docs.py" -k '(README and blocks) or readme' -W ignore::DeprecationWarning # old typer, new click
    )
    rm -rf "$environment"
}

oldest=$("${PYTHON:-python3}" - <<'PY'
import re, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
required = project["dependencies"] + project["optional-dependencies"]["cli"]
print(*(re.sub(r">=([\d.]+)", r"==\1.*", requirement) for requirement in required))
PY
)
"${PYTHON:-python3}" -m venv "$work/twine"
"$work/twine/bin/python" -m pip install --quiet twine
"$work/twine/bin/python" -m twine check --strict dist/*
first=yes
for python in $pythons; do
    name=$(basename "$python")
    check "$python" "$name"
    if [ "$first" = yes ]; then
        # shellcheck disable=SC2086 # one word for each requirement
        check "$python" "$name-oldest" $oldest
        first=no
    fi
done
echo "The release is fine."
