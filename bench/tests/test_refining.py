"""Predictions are timed with and without a refinement beside them."""

import lzma

import numpy as np
from longtail_bench.refining import main


def test_both_are_printed(tmp_path, capsys):
    rng = np.random.default_rng(0)
    for name, n_documents in (("train", 2_400), ("test", 50)):
        labels = rng.integers(0, 30, n_documents)
        lines = [
            f"c{c}\t{' '.join(f'w{5 * c + i}' for i in rng.integers(0, 9, 6))}\n" for c in labels
        ]
        with lzma.open(tmp_path / f"{name}.tsv.xz", "wt") as file:
            file.writelines(lines)
    main([str(tmp_path)])
    never, auto = capsys.readouterr().out.splitlines()
    assert never.startswith("refine='never':  2000 predictions, p50 ")
    assert auto.startswith("refine='auto': ")
