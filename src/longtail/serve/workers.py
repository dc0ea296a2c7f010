"""A few threads for slow reads, behind a bounded queue and with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from longtail.serve.problems import busy


class Workers:
    """Runs functions in threads beside the event loop."""

    def __init__(self, name: str, n_threads: int, most_queued: int, seconds: float) -> None:
        self._executor = ThreadPoolExecutor(n_threads, name)
        self._most_queued, self._seconds = most_queued, seconds
        self._n_queued = 0

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns.

        Raises
        ------
        Problem
            503 where too much waits, or it took too long.
        """
        if self._n_queued >= self._most_queued:
            raise busy(f"{self._n_queued} requests are waiting already; try again in a second.")
        self._n_queued += 1
        task = asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)
        try:
            async with asyncio.timeout(self._seconds):
                return await task
        except TimeoutError:
            raise busy("The answer took too long; try again.") from None
        finally:
            self._n_queued -= 1

    def close(self) -> None:
        """End the threads."""
        self._executor.shutdown(wait=False, cancel_futures=True)
