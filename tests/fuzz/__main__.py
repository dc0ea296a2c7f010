"""The long run: ``python -m tests.fuzz --cases 1000000``; a second one goes on where it stopped.

First every systematic case of every seed, then random ones.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.driver import ROOT, Report, run_cases
from tests.fuzz.seeds import SEEDS

CHUNK = 5_000  # cases of one process


def main() -> int:
    """Run cases in chunks; after each, say how far it got. Returns 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--state", type=Path, default=ROOT / ".fuzz.json")
    options = parser.parse_args()
    state = {"seeds": 0, "next": 0, "works": 0, "refused": 0, "found": []}
    if options.state.exists():
        state |= json.loads(options.state.read_text())

    def note(report: Report, done: str, **reached: int) -> None:
        state.update(reached, works=state["works"] + report.works)
        state.update(refused=state["refused"] + report.refused, found=state["found"] + report.found)
        options.state.write_text(json.dumps(state, indent=1))
        print(f"{done}: {state['works']:,} work, {state['refused']:,} are refused, "
              f"{len(state['found'])} findings", flush=True)  # fmt: skip
        for found in report.found:
            print(f"  {found['case']}: {found['file']}\n{found['trace']}", flush=True)

    first, n_seeds = state["next"], state["seeds"]
    with ThreadPoolExecutor(options.jobs) as pool:
        seeds = pool.map(lambda seed: run_cases("systematic", seed, 0), SEEDS[n_seeds:])
        for i, report in enumerate(seeds, n_seeds):
            note(report, f"every mutation of {SEEDS[i]}", seeds=i + 1)
        starts = range(first, options.cases, CHUNK)
        ends = [min(start + CHUNK, options.cases) for start in starts]
        chunks = pool.map(lambda start, end: run_cases("random", "", start, end), starts, ends)
        for end, report in zip(ends, chunks, strict=True):
            note(report, f"{end:,} cases", next=end)
    return int(bool(state["found"]))


if __name__ == "__main__":
    raise SystemExit(main())
