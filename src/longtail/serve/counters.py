"""Counters for Prometheus, a registry for each service."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
_PROBABILITIES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
_PREDICTED = (
    ("n_documents", "predicted_documents", "Documents predicted."),
    ("n_abstained", "abstained_documents", "Of these, without a label at 90 % precision."),
    ("n_without_words", "documents_without_known_word", "Of these, without a known word."),
    ("n_words", "words", "Distinct words of one document in 16."),
    ("n_unknown_words", "unknown_words", "Of these, words that no document had."),
)
# Of documents whose class became known: field of `OutcomeFigures`, name, description.
OUTCOMES = (
    ("n_outcomes", "outcomes", "Documents held out or taught, at most the last 1,000 of these."),
    ("accuracy", "outcome_accuracy", "Of these, how many were predicted right."),
    ("calibration_error", "outcome_calibration_error", "Calibration error of these."),
    ("abstention", "outcome_abstention", "Share of these below 90 % precision."),
)
_DOCUMENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of a service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        counter = partial(Counter, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.requests = counter(
            "longtail_requests", "Requests, by route and status.", ("method", "route", "status")
        )
        self.seconds = histogram(
            "longtail_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ("route",),
            buckets=_SECONDS,
        )
        self.under_way = Gauge(
            "longtail_requests_under_way", "Requests under way.", registry=self.registry
        )
        self.batches = histogram(
            "longtail_batch_documents", "Documents of each call of the model.", buckets=_DOCUMENTS
        )
        self.predicted = {
            name: counter(f"longtail_{key}", description) for name, key, description in _PREDICTED
        }
        self.probabilities = histogram(
            "longtail_probability",
            "Probability of the first class of each document that has one.",
            buckets=_PROBABILITIES,
        )
        self.changes = counter(
            "longtail_changes", "Changes, by action and outcome.", ("action", "outcome")
        )
        self.audit_lost = counter(
            "longtail_audit_lost", "Lines that the audit trail does not have.", ("reason",)
        )

    def watch(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Report what a function returns when it is asked."""
        Gauge(name, description, registry=self.registry).set_function(value)

    def render(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        return generate_latest(self.registry)
