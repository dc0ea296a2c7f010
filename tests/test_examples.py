"""The examples run and say what they should."""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import longtail

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(longtail.__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
EXPECTED = {
    "explain.py": ["writer [n10794014], score", "who writes", "the runner-up is"],
    "fit_from_csv.py": ["22,073 definitions of 467 classes", "the right class is among five"],
    "grid_search.py": ["'counts__ngram_range': (1, 2)}", "best: {"],
    "teach_a_class.py": [
        "taught: language model\n",
        "opened from the file again: language model [new]",
        "1. teach by ann, undone",
        "folded into the file: language model [new]",
    ],
    "your_own_counts.py": ["names of 28 classes", "from the spelling alone"],
}


def test_every_example_is_expected():
    assert [path.name for path in EXAMPLES] == sorted(EXPECTED)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-W", "error", str(example)]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for line in EXPECTED[example.name]:
        assert line in done.stdout
    assert example.read_text().startswith('"""')
    assert len(done.stdout.splitlines()) <= 16


@pytest.mark.slow
def test_the_notebook_prints_what_it_shows(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "examples" / "tour.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) == 6
    names = {}
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
        shown = ["".join(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream"]
        assert output.getvalue() == "".join(shown)
