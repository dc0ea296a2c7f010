"""A real Dask cluster: a scheduler and workers as processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import longtail

SOURCE = Path(longtail.__file__).parents[1]
ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0  # seconds; no test waits so long unless something hangs


class Cluster:
    """Starts a scheduler; workers are started, stopped and killed one by one."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder, self.workers = folder, []
        path = os.pathsep.join([str(SOURCE), str(ROOT)])
        self.environment = {**os.environ, "PYTHONPATH": path, **environment}
        self.file = folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.scheduler = self._start("dask_scheduler", *options, "--scheduler-file", self.file)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.workers, self.scheduler]:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()

    def add_worker(self, *options: str) -> subprocess.Popen:
        """Start a worker with one thread; without a nanny, so that a kill is the end of it."""
        options = options or ("--no-nanny",)
        worker = self._start(
            "dask_worker",
            *("--scheduler-file", self.file, "--nthreads", "1", "--no-dashboard"),
            *("--local-directory", self.folder, "--name", f"worker-{len(self.workers)}"),
            *options,
        )
        self.workers.append(worker)
        return worker

    def client(self):
        """Return a new client."""
        import distributed

        deadline = time.monotonic() + PATIENCE
        while not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return distributed.Client(scheduler_file=str(self.file), timeout=PATIENCE)

    def _start(self, module: str, *options: object) -> subprocess.Popen:
        with open(self.folder / f"{module}.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *map(str, options)],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )


class Killer:
    """Kills the worker that has a task of a stage, while it has it.

    All workers are stopped before the stage is submitted; the scheduler hands out tasks all the
    same. One that got a task is killed, the others go on, and a new one joins late.
    """

    def __init__(self, cluster: Cluster, client, stages: set[str]) -> None:
        self.cluster, self.client, self.stages = cluster, client, set(stages)
        self.killed: list[str] = []
        self.errors: list[BaseException] = []
        self.thread: threading.Thread | None = None

    def on_stage(self, stage: str, done: int, total: int) -> None:
        """Hear of a stage before its tasks are submitted."""
        if stage not in self.stages or done:
            return
        self.stages.remove(stage)
        alive = [worker for worker in self.cluster.workers if worker.poll() is None]
        for worker in alive:
            worker.send_signal(signal.SIGSTOP)
        self.thread = threading.Thread(target=self._kill, args=(stage, alive))
        self.thread.start()

    def _kill(self, stage: str, alive: list[subprocess.Popen]) -> None:
        try:
            prefix = stage.replace(" ", "_") + "-"
            known = self.client.scheduler_info(n_workers=-1)["workers"]
            deadline = time.monotonic() + PATIENCE
            busy: list[str] = []
            while not busy and time.monotonic() < deadline:
                time.sleep(0.02)
                processing = self.client.processing()
                busy = [
                    address
                    for address, keys in processing.items()
                    if any(str(key).startswith(prefix) for key in keys)
                ]
            number = known[busy[0]]["name"].removeprefix("worker-")
            self.cluster.workers[int(number)].kill()
            self.killed.append(stage)
            self.cluster.add_worker()
        except BaseException as error:
            self.errors.append(error)
        finally:
            for worker in alive:
                if worker.poll() is None:
                    worker.send_signal(signal.SIGCONT)
