"""Schemathesis against a running service: no 5xx, no answer that its description lacks."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import checks

from tests.serve.conftest import BEARER, Running

pytestmark = pytest.mark.slow
_CHECKS = (
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
)


@pytest.fixture(scope="module")
def service(
    fitted_file: Path, start: Callable[..., Running], tmp_path_factory: pytest.TempPathFactory
) -> Running:
    path = tmp_path_factory.mktemp("schema") / "animals.longtail"
    shutil.copy(fitted_file, path)
    return start(path)


def test_every_answer_is_as_described(service: Running) -> None:
    schema = schemathesis.openapi.from_url(f"{service.address}openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) > 15
    for operation in operations:

        @settings(
            max_examples=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
            database=None,
        )
        @given(case=operation.as_strategy())
        def check(case: Any) -> None:
            case.call_and_validate(headers=BEARER, checks=_CHECKS)

        check()
