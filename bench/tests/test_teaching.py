"""The benchmark of teaching: every step is taken and counted; nothing is timed here."""

from __future__ import annotations

import lzma

import pytest
from longtail_bench import teaching


@pytest.fixture
def folder(tmp_path):
    """A small data set with texts."""
    animals = {"bear": "eats honey in the wood", "fox": "runs red and sly", "owl": "hoots at night"}
    for part, n_each in (("train", 12), ("test", 8)):
        with lzma.open(tmp_path / f"{part}.tsv.xz", "wt", encoding="utf-8") as file:
            for i in range(n_each):
                for animal, text in animals.items():
                    file.write(f"{animal}\t{text} number{i} {part}\n")
    return tmp_path


def test_every_step_has_its_row(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    teaching.main([str(folder), "--changes", "9", "--model", str(folder / "kept.longtail")])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 14
    counts = {line[:36].strip(): int(line[36:].split()[0]) for line in lines[1:]}
    assert counts == {
        "open the file alone": 5,
        "partial_fit of 12, just opened": 5,
        "teach one": 9,
        "undo the last": 5,
        "forget one": 1,
        "teach 12 together": 1,
        "undo any one": 9,
        "open with 30 changes": 5,  # 9 and 5 taught, 5 undone, 1 forgotten, 1 of several, 9 undone
        "rename a class": 1,
        "merge a class": 1,
        "predict one text then": 1,
        "refine": 1,
        "compact": 1,
    }
    assert (folder / "kept.longtail").exists()
    assert not list(folder.glob("tmp*"))
    teaching.main([str(folder), "--changes", "2", "--model", str(folder / "kept.longtail")])
    assert "teach one" in capsys.readouterr().out
