"""Environments of peers."""

import sys

import pytest
from longtail_bench import environments
from longtail_bench.systems import SYSTEMS


def test_folder_of_environments(monkeypatch, tmp_path):
    monkeypatch.setenv("LONGTAIL_ENVIRONMENTS", str(tmp_path / "here"))
    assert environments.environments_folder() == tmp_path / "here"
    assert environments.environments_folder(tmp_path / "there") == tmp_path / "there"
    monkeypatch.delenv("LONGTAIL_ENVIRONMENTS")
    assert environments.environments_folder().parts[-2:] == ("longtail", "environments")


def test_environment_is_created_once_and_again_after_an_interruption(monkeypatch, tmp_path):
    commands = []

    def run(name, place, step, command):
        commands.append(list(command))
        (place / "bin").mkdir(parents=True, exist_ok=True)
        (place / "bin" / "python").touch()

    monkeypatch.setattr(environments, "_run", run)
    assert environments.find_environment("pecos", tmp_path) is None
    python = environments.ensure_environment("pecos", tmp_path)
    assert environments.find_environment("pecos", tmp_path) == python
    assert commands[0] == [sys.executable, "-m", "venv", str(tmp_path / "pecos")]
    assert {command[0] for command in commands[1:]} == {str(python)}
    assert commands[2][-2:] == ["--no-deps", "libpecos==1.2.8"]
    assert environments.ensure_environment("pecos", tmp_path) == python
    assert len(commands) == 4
    (tmp_path / "pecos" / "complete.json").unlink()
    (tmp_path / "pecos" / "left over").touch()
    assert environments.find_environment("pecos", tmp_path) is None
    environments.ensure_environment("pecos", tmp_path)
    assert len(commands) == 8
    assert not (tmp_path / "pecos" / "left over").exists()
    other = environments.BaselinePackages(("numpy<2",), ("libpecos",), "pecos")
    monkeypatch.setitem(environments.BASELINES, "pecos", other)
    assert environments.find_environment("pecos", tmp_path) is None


def test_variables_that_reach_into_an_installation_are_left_out(monkeypatch):
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("PIP_TIMEOUT", "15")
    assert not {"PIP_TARGET", "PYTHONPATH"} & set(environments.clean_variables())
    assert environments.clean_variables()["PIP_TIMEOUT"] == "15"


def test_pip_failure_is_one_line_and_is_not_taken_for_an_environment(monkeypatch, tmp_path):
    baseline = environments.BaselinePackages(("no-such-package-of-longtail",), (), "nothing")
    monkeypatch.setitem(environments.BASELINES, "absent", baseline)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(environments.BaselineEnvironmentError) as caught:
        environments.ensure_environment("absent", tmp_path)
    assert "no environment for absent" in str(caught.value)
    assert "pip install failed" in str(caught.value)
    assert "no-such-package-of-longtail" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert environments.find_environment("absent", tmp_path) is None


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(environments.BaselineEnvironmentError, match="no environment for pecos in"):
        environments.ensure_environment("pecos", tmp_path / "file")


def test_every_environment_serves_a_system():
    wanted = {system.environment for system in SYSTEMS.values()} - {None}
    assert wanted == set(environments.BASELINES)


def test_package_names():
    assert environments.package_names("pecos") == ["numpy", "scipy", "scikit-learn", "libpecos"]
