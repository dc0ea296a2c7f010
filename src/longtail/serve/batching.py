"""Requests that arrive together become one call of the model.

While one call runs in its thread, requests gather; the next call takes all that fit. A document
alone waits for nothing; under load each call has more documents and costs less for each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from longtail.serve.predictions import Prediction
from longtail.serve.problems import busy

# One call takes some 60 µs a document: a document that arrives just after it began waits 15 ms.
MAX_DOCUMENTS = 256


class _Waiting(NamedTuple):
    texts: list[str]
    future: asyncio.Future[list[Prediction]]


class Batcher:
    """Gathers requests and has them predicted together.

    `predict` is called in a thread and returns one result for each text. `on_batch` is told how
    many documents each call has.
    """

    def __init__(
        self,
        predict: Callable[[list[str]], list[Prediction]],
        most_queued: int,
        seconds: float,
        on_batch: Callable[[int], None] = lambda n_documents: None,
    ) -> None:
        self._predict, self._on_batch = predict, on_batch
        self._most_queued, self._seconds = most_queued, seconds
        self._queue: deque[_Waiting] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._executor = ThreadPoolExecutor(1, "longtail-predict")
        self.n_queued = 0

    async def submit(self, texts: list[str]) -> list[Prediction]:
        """Return one result for each text.

        Raises
        ------
        Problem
            503 where too many documents wait, or it took too long.
        """
        if self.n_queued + len(texts) > self._most_queued:
            raise busy(f"{self.n_queued} documents are waiting already; try again in a second.")
        loop = asyncio.get_running_loop()
        waiting = [
            _Waiting(texts[start : start + MAX_DOCUMENTS], loop.create_future())
            for start in range(0, len(texts), MAX_DOCUMENTS)
        ]
        self._queue.extend(waiting)
        self.n_queued += len(texts)
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._work())
        try:
            async with asyncio.timeout(self._seconds):
                results = [await entry.future for entry in waiting]
        except TimeoutError:
            raise busy("The prediction took too long; try again.") from None
        finally:
            for entry in waiting:
                entry.future.cancel()
        return [result for some in results for result in some]

    def close(self) -> None:
        """End the thread."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        """Run calls until nothing waits."""
        while self._queue:
            batch = self._gather()
            if not batch:
                continue
            try:
                await self._run(batch)
            except Exception:
                # One request must not fail for another's sake.
                for entry in batch:
                    try:
                        await self._run([entry])
                    except Exception as error:
                        if not entry.future.done():
                            entry.future.set_exception(error)

    def _gather(self) -> list[_Waiting]:
        """Take what fits into one call; requests that gave up are left out."""
        batch: list[_Waiting] = []
        n_documents = 0
        while self._queue and n_documents + len(self._queue[0].texts) <= MAX_DOCUMENTS:
            entry = self._queue.popleft()
            self.n_queued -= len(entry.texts)
            if not entry.future.done():
                batch.append(entry)
                n_documents += len(entry.texts)
        return batch

    async def _run(self, batch: list[_Waiting]) -> None:
        """Predict the documents of some requests in one call."""
        texts = [text for entry in batch for text in entry.texts]
        self._on_batch(len(texts))
        loop = asyncio.get_running_loop()
        results = await loop.run_in_executor(self._executor, self._predict, texts)
        start = 0
        for entry in batch:
            stop = start + len(entry.texts)
            if not entry.future.done():
                entry.future.set_result(results[start:stop])
            start = stop
