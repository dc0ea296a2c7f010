"""Random sequences of changes, for as long as they are wanted.

python -m tests.sequences [--kinds plain,sums] [--first SEED] [--seconds S] [--steps N]
"""

import argparse
import logging
import os
import sys
import tempfile
import time
import traceback
import warnings

from tests.sequences.steps import KINDS, ORACLES, Runner


def main():
    """Run sequences of each kind in turn; print what fails, and how many there were."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", default=",".join([*KINDS, *ORACLES]))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    os.fsync = lambda handle: None  # what a power cut takes is of other tests
    kinds, end = options.kinds.split(","), time.monotonic() + options.seconds
    seed, failed, done = options.first, [], 0
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.path.isdir(memory) else None) as folder:
        runner = Runner(folder)
        while time.monotonic() < end:
            for kind in kinds:
                steps = runner.steps(kind, seed, options.steps)
                done += 1
                try:
                    runner.run(kind, steps)
                except Exception:
                    failed.append((kind, seed))
                    text = traceback.format_exc()[-3000:]
                    steps = runner.shorten(kind, steps) if len(failed) < 4 else steps
                    sys.stdout.write(f"{kind} {seed} fails:\n{text}\n{steps}\n\n")
            seed += 1
    sys.stdout.write(
        f"{done} sequences of {options.steps} changes, {len(failed)} fail {failed[:9]}; "
        f"{', '.join(kinds)}, seeds {options.first} to {seed - 1}\n"
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
