"""A model that was saved, opened in new processes: what that costs, and the first answers.

In: a fitted estimator and a document. Out: wall and CPU seconds. The file was just written, so the
system has it in memory: disks are not measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

N_ANSWERS = 3  # the first loads kernels, and touches what the model has not in memory yet

_SCRIPT = f"""
import json, sys, time
import numpy as np
from scipy.sparse import csr_array
import longtail
from longtail import LongTailClassifier, DoubleSamplingClassifier

def clocks():
    return np.array([time.perf_counter(), time.process_time()])

path, verify, document = sys.argv[1], sys.argv[2] == "verified", np.load(sys.argv[3])
X = csr_array((document["data"], document["indices"], document["indptr"]), document["shape"])
LongTailClassifier, DoubleSamplingClassifier
times = [clocks()]
model = longtail.load(path, verify=verify)
times.append(clocks())
for _ in range({N_ANSWERS}):
    model.predict(X)
    times.append(clocks())
print(json.dumps(np.diff(times, axis=0).tolist()))
"""


def measure_opening(classifier: Any, X: Any) -> dict[str, dict[str, list[float]]]:
    """Save a model; open it with and without checksums, and predict the first document of `X`.

    Returns
    -------
    dict
        For ``verified`` and ``unverified`` and each of ``open``, ``first``, ``second`` and
        ``third`` answer: wall and CPU seconds.
    """
    names = ("open", "first", "second", "third")
    with tempfile.TemporaryDirectory(prefix="longtail-opening-") as folder:
        model, document = Path(folder) / "model", Path(folder) / "document.npz"
        classifier.save(model)
        row = X[:1]
        arrays = {name: getattr(row, name) for name in ("data", "indices", "indptr")}
        np.savez(document, shape=np.array(row.shape), **arrays)
        found = {}
        for checks in ("verified", "unverified"):
            command = [sys.executable, "-P", "-c", _SCRIPT, str(model), checks, str(document)]
            done = subprocess.run(
                command, env=dict(os.environ), capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(f"the model could not be opened: {done.stderr[-2000:]}")
            found[checks] = dict(zip(names, json.loads(done.stdout), strict=True))
    return found
