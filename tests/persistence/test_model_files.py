"""Model files: what goes in comes out, and nothing else than a sound file opens."""

import contextlib
import errno
import hashlib
import json
import os
import pickle
import shutil
import signal
import stat
import struct
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from longtail import store as persistence
from longtail.exceptions import ModelFileError
from longtail.store import container, files, manifest
from longtail.store.container import open_model, write_model
from longtail.store.texts import pack_texts

GOLDEN = Path(__file__).parent / "golden"
SOURCE = Path(persistence.__file__).parents[2]
HEADER = struct.Struct("<8sIIQQ32s")
MAGIC = b"\x89LTM\r\n\x1a\n"

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc or tmpfs of Linux")
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals, limits or modes")

PARAMETERS = {
    "C": 0.1,
    "adversaries": 30,
    "nothing": None,
    "flag": True,
    "text": "Ωmega \u2028 \U0001f43b",
    "nested": {"list": [1, -2.5, [], {}], "largest": 2**64 - 1, "smallest": -(2**63)},
    "tiny": 5e-324,
}
ARRAYS = {
    "bool": np.array([[True, False], [False, True]]),
    "bytes": np.array([b"", b"ab", b"abc"]),
    "empty": np.zeros((0, 3), dtype=np.float32),
    "float16": np.array([0.5, np.inf], dtype=np.float16),
    "float32": np.array([np.nan, -0.0, 1e-45], dtype=np.float32),
    "float64": np.array([[[np.pi]], [[-np.inf]]]),
    "int16": np.array([-(2**15), 2**15 - 1], dtype=np.int16),
    "int32": np.array([-(2**31), 2**31 - 1], dtype=np.int32),
    "int64": np.array([-(2**63), 2**63 - 1], dtype=np.int64),
    "int8": np.array([-128, 127], dtype=np.int8),
    "labels": np.array(["", "naïve", "熊", "\U0001f43b bear"]),
    "scalar": np.array(7, dtype=np.int64),
    "uint16": np.array([2**16 - 1], dtype=np.uint16),
    "uint32": np.array([2**32 - 1], dtype=np.uint32),
    "uint64": np.array([2**64 - 1], dtype=np.uint64),
    "uint8": np.arange(70, dtype=np.uint8),
    **pack_texts("terms", ["", "naïve", "a\0b", "\ud800", "熊" * 9]),
}


def assert_same_arrays(found, expected):
    assert list(found) == sorted(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name  # bit-equal: also NaN and -0.0


def signed(manifest, data=None, *, magic=MAGIC, number=1, zero=0, length=None, file_length=None):
    """A file with a right checksum around any manifest and data: what a hostile hand writes."""
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    start = -(-(64 + len(text)) // 64) * 64
    body = text + (b"" if data is None else bytes(start - 64 - len(text)) + data)
    length = len(text) if length is None else length
    file_length = 64 + len(body) if file_length is None else file_length
    header = HEADER.pack(magic, number, zero, length, file_length, bytes(32))[:32]
    return header + hashlib.sha256(header + text).digest() + body


def entry(**changes):
    fields = {"name": "a", "dtype": "<i4", "shape": [4], "offset": 0, "nbytes": 16}
    return {**fields, "sha256": hashlib.sha256(bytes(16)).hexdigest(), **changes}


def manifest_of(*entries, **changes):
    fields = {"format_number": 1, "library_version": "0.1.0", "kind": "k", "parameters": {}}
    return {**fields, "arrays": list(entries), **changes}


def problem_of(path, content=None, **options):
    """Open a file that must be refused; return what is said about it."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        open_model(path, **options)
    assert caught.value.path == os.fspath(path)
    assert str(caught.value) == f"{path}: {caught.value.problem}"
    assert len(caught.value.problem) < 1000
    return caught.value.problem


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.longtail"


@pytest.fixture
def saved(path):
    write_model(path, "centroids", PARAMETERS, ARRAYS)
    return path


# What goes in comes out


@pytest.mark.parametrize("verify", [True, False])
def test_everything_comes_back(saved, verify):
    model = open_model(saved, verify=verify)
    assert model.path == saved
    assert model.kind == "centroids"
    assert model.parameters == PARAMETERS
    assert model.format_number == persistence.FORMAT_NUMBER == 1
    assert model.library_version == manifest._library_version()
    assert_same_arrays(model.arrays, ARRAYS)


def test_texts_come_back(saved):
    assert open_model(saved).texts("terms") == ["", "naïve", "a\0b", "\ud800", "熊" * 9]


def test_no_texts_come_back(path):
    write_model(path, "k", {}, pack_texts("terms", []))
    assert open_model(path).texts("terms") == []


@pytest.mark.parametrize("arrays", [{}, {"a": np.zeros(0)}, {"a": np.zeros(0), "b": np.ones(3)}])
def test_nothing_or_little_comes_back(path, arrays):
    write_model(path, "k", {}, arrays)
    assert_same_arrays(open_model(path).arrays, arrays)


def test_any_memory_layout_is_stored_in_c_order(path):
    table = np.arange(24, dtype=np.int32).reshape(4, 6)
    arrays = {
        "fortran": np.asfortranarray(table),
        "strided": table[::2, ::-1],
        "big": table.astype(">i4"),
    }
    write_model(path, "k", {}, arrays)
    for name, array in open_model(path).arrays.items():
        np.testing.assert_array_equal(array, arrays[name])
        assert array.flags.c_contiguous
        assert array.dtype == np.dtype("<i4")


def test_large_arrays_are_hashed_in_threads_to_the_same_bytes(path, monkeypatch):
    arrays = {f"a{number}": np.arange(number * 40_000) for number in range(1, 7)}
    write_model(path, "k", {}, arrays)
    assert_same_arrays(open_model(path).arrays, arrays)
    threaded = path.read_bytes()
    monkeypatch.setattr(manifest, "_SERIAL_BYTES", 1 << 60)
    write_model(path, "k", {}, arrays)
    assert path.read_bytes() == threaded


def test_arrays_are_aligned_private_views_that_outlive_the_model(saved):
    arrays = open_model(saved).arrays
    for array in arrays.values():
        assert array.ctypes.data % 64 == 0
        assert not array.flags.owndata
    assert_same_arrays(arrays, ARRAYS)


def test_what_is_written_to_an_array_never_reaches_the_file(saved):
    content = saved.read_bytes()
    model = open_model(saved)
    for array in model.arrays.values():
        array[...] = np.zeros_like(array)
    assert saved.read_bytes() == content
    assert_same_arrays(open_model(saved).arrays, ARRAYS)


def test_same_input_gives_same_bytes_whatever_the_order(saved, tmp_path):
    again = tmp_path / "again.longtail"
    write_model(
        again, "centroids", dict(reversed(PARAMETERS.items())), dict(reversed(ARRAYS.items()))
    )
    assert again.read_bytes() == saved.read_bytes()


def test_golden_file_opens_forever():
    model = open_model(GOLDEN / "format_1.longtail")
    assert (model.kind, model.library_version, model.format_number) == ("golden", "0.1.0", 1)
    assert model.parameters == PARAMETERS
    assert_same_arrays(model.arrays, ARRAYS)


def test_golden_file_is_what_is_written_today(path, monkeypatch):
    monkeypatch.setattr(manifest, "_library_version", lambda: "0.1.0")
    write_model(path, "golden", PARAMETERS, ARRAYS)
    golden = GOLDEN / "format_1.longtail"
    assert path.read_bytes() == golden.read_bytes()
    assert golden.stat().st_size < 20_000


def test_layout_is_as_documented(saved):
    content = saved.read_bytes()
    magic, number, zero, length, file_length, digest = HEADER.unpack(content[:64])
    assert (magic, number, zero, file_length) == (MAGIC, 1, 0, len(content))
    assert hashlib.sha256(content[:32] + content[64 : 64 + length]).digest() == digest
    start = -(-(64 + length) // 64) * 64
    for item in json.loads(content[64 : 64 + length])["arrays"]:
        place = start + item["offset"]
        raw = content[place : place + item["nbytes"]]
        assert place % 64 == 0
        assert raw == ARRAYS[item["name"]].tobytes()
        assert hashlib.sha256(raw).hexdigest() == item["sha256"]


# What cannot be stored is refused before anything is written


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array(["bear", "ours"], dtype=object), "'labels' holds Python objects.*pack_texts"),
        (np.zeros(2, dtype=complex), "'labels' must be bool, int8-64.*got complex128"),
        (np.zeros(2, dtype="i4,f4"), "'labels' must be bool"),
        (np.zeros(2, dtype="M8[s]"), "got datetime64"),
        (np.array(["a"], dtype=np.dtypes.StringDType()), "got StringDType"),
        (np.ma.zeros(2), "must be a plain numpy array; got MaskedArray"),
        ([1, 2], "must be a plain numpy array; got list"),
    ],
)
def test_other_arrays_are_refused(path, array, message):
    with pytest.raises(TypeError, match=message):
        write_model(path, "k", {}, {"labels": array})
    assert not list(path.parent.iterdir())


REFUSED_PARAMETERS = {
    "not a number": (float("nan"), "is not plain JSON: nan"),
    "a tuple": ((1, 2), r"would come back changed: \(1, 2\) as \[1, 2\]"),
    "integer keys": ({1: 2}, "would come back changed"),
    "of numpy": (np.int64(3), "is not plain JSON"),
    "65 bits": (2**64, "is not plain JSON: .* integer beyond 64 bits"),
    "many digits": (10**5000, "is not plain JSON: a int"),
    "deep": (json.loads("[" * 31 + "]" * 31), "is not plain JSON: .* nested deeper than 32"),
}


@pytest.mark.parametrize("case", REFUSED_PARAMETERS.values(), ids=REFUSED_PARAMETERS.keys())
def test_other_parameters_are_refused(path, case):
    value, message = case
    with pytest.raises(ValueError, match=f"Parameter 'C' {message}"):
        write_model(path, "k", {"C": value}, {})
    assert not list(path.parent.iterdir())


def test_a_parameter_as_deep_as_allowed_comes_back(path):
    value = json.loads("[" * 30 + "]" * 30)
    write_model(path, "k", {"C": value}, {})
    assert open_model(path).parameters == {"C": value}


def test_other_arguments_are_refused(path):
    with pytest.raises(ValueError, match="kind must be 1 to 128 ASCII"):
        write_model(path, "", {}, {})
    with pytest.raises(ValueError, match=r"An array's name must be .*got 'ä'"):
        write_model(path, "k", {}, {"ä": np.ones(1)})
    with pytest.raises(TypeError, match="name of a parameter must be a string; got 1"):
        write_model(path, "k", {1: 2}, {})
    with pytest.raises(ValueError, match="Put large parameters into arrays"):
        write_model(path, "k", {"C": "x" * (4 << 20)}, {})
    with pytest.raises(TypeError, match="terms must be strings; element 1 is 3"):
        pack_texts("terms", ["a", 3])
    assert not list(path.parent.iterdir())


# Where it is written


def test_a_model_is_replaced_while_its_arrays_are_in_use(saved):
    model = open_model(saved)
    write_model(saved, "centroids", {}, {**model.arrays, "bool": ~model.arrays["bool"]})
    assert_same_arrays(model.arrays, ARRAYS)
    np.testing.assert_array_equal(open_model(saved).arrays["bool"], ~ARRAYS["bool"])
    assert list(saved.parent.iterdir()) == [saved]


def test_an_empty_file_is_replaced(path):
    path.touch()
    write_model(path, "k", {}, {})
    assert open_model(path).kind == "k"


def test_what_is_not_a_model_is_not_replaced(path):
    path.write_text("my thesis")
    with pytest.raises(ModelFileError, match=r"model\.longtail: exists and is not a model file"):
        write_model(path, "k", {}, {})
    assert path.read_text() == "my thesis"


def test_a_folder_is_not_replaced(tmp_path):
    with pytest.raises(ModelFileError, match="is not a regular file"):
        write_model(tmp_path, "k", {}, {})


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere"):
        write_model(tmp_path / "nowhere" / "model", "k", {}, {})


@POSIX
def test_a_link_stays_and_its_target_is_replaced(saved, tmp_path):
    link = tmp_path / "latest"
    link.symlink_to(saved)
    write_model(link, "other", {}, {})
    assert link.is_symlink()
    assert open_model(link).kind == open_model(saved).kind == "other"


@POSIX
def test_permissions_stay(saved):
    saved.chmod(0o640)
    write_model(saved, "k", {}, {})
    assert stat.S_IMODE(saved.stat().st_mode) == 0o640


# What cannot be opened


def test_a_missing_file_is_the_systems_error(path):
    with pytest.raises(FileNotFoundError):
        open_model(path)


def test_a_folder_is_no_model(tmp_path):
    assert "is not a regular file" in problem_of(tmp_path)


@POSIX
def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in problem_of(tmp_path / "pipe")


@pytest.mark.parametrize(
    "content", [b"", MAGIC, MAGIC + bytes(3), b"PK\3\4" + bytes(99), bytes(99)]
)
def test_other_files_are_no_models(path, content):
    assert "is not a longtail model file" in problem_of(path, content)


def test_a_newer_format_asks_to_upgrade(path):
    problem = problem_of(path, signed(manifest_of(format_number=2), number=2))
    assert "has format 2; this version of longtail reads up to 1. Upgrade longtail" in problem


def test_format_0_never_existed(path):
    assert "never existed" in problem_of(path, signed(manifest_of(), number=0))


def test_cut_short_anywhere(saved):
    content = saved.read_bytes()
    for length in {*range(0, 130), *range(130, len(content), 97), len(content) - 1}:
        problem = problem_of(saved, content[:length], verify=False)
        assert "cut short" in problem or (length < 12 and "not a longtail model" in problem)


@pytest.mark.parametrize("extra", [b"\0", bytes(64), b"more"])
def test_extended(saved, extra):
    assert "has been extended" in problem_of(saved, saved.read_bytes() + extra, verify=False)


@POSIX
def test_a_flipped_bit_is_noticed_anywhere(path):
    write_model(path, "k", {"C": 1}, {name: ARRAYS[name] for name in ("bool", "labels")})
    content = bytearray(path.read_bytes())
    one_in_every_byte = {8 * place + place % 8 for place in range(len(content))}
    with path.open("r+b", buffering=0) as file:
        for bit in {*range(64 * 8), *one_in_every_byte}:
            flipped = content[bit // 8] ^ 1 << bit % 8
            os.pwrite(file.fileno(), bytes([flipped]), bit // 8)
            problem_of(path)
            os.pwrite(file.fileno(), content[bit // 8 : bit // 8 + 1], bit // 8)
    assert open_model(path).kind == "k"


def test_without_verification_header_and_manifest_are_still_checked(saved):
    content = bytearray(saved.read_bytes())
    content[100] ^= 1
    assert "damaged header or manifest" in problem_of(saved, bytes(content), verify=False)
    content[100] ^= 1
    content[-1] ^= 1
    assert "array 'uint8' is not what its SHA-256 says" in problem_of(saved, bytes(content))
    assert open_model(saved, verify=False).kind == "centroids"


def test_parts_of_two_models_do_not_mix(saved, tmp_path):
    other = tmp_path / "other.longtail"
    arrays = {**ARRAYS, "int8": np.array([1, 2], dtype=np.int8)}
    write_model(other, "centroids", PARAMETERS, arrays)
    ours, theirs = saved.read_bytes(), other.read_bytes()
    end = 64 + HEADER.unpack(ours[:64])[3]
    assert len(ours) == len(theirs)
    assert "SHA-256" in problem_of(saved, ours[:64] + theirs[64:], verify=False)
    assert "SHA-256" in problem_of(saved, ours[:end] + theirs[end:])
    assert "SHA-256" in problem_of(saved, theirs[:end] + ours[end:])


# Hostile files: the checksum of the manifest is right, what it says is not


def test_the_hostile_frame_is_sound_by_itself(path):
    path.write_bytes(signed(manifest_of(entry()), bytes(16)))
    np.testing.assert_array_equal(open_model(path).arrays["a"], np.zeros(4, dtype=np.int32))


HOSTILE_ENTRIES = {
    "huge shape": ({"shape": [2**62]}, "cannot be"),
    "huge shape and size": ({"shape": [2**60], "nbytes": 2**62}, "its arrays end at"),
    "past the end": ({"shape": [5], "nbytes": 20}, "its arrays end at"),
    "before the end": ({"shape": [3], "nbytes": 12}, "its arrays end at"),
    "shape too large": ({"shape": [5]}, "cannot be"),
    "shape too small": ({"shape": [3]}, "cannot be"),
    "product overflows to 16": ({"shape": [2**32 + 1, 2**32, 4]}, "cannot be"),
    "negative shape": ({"shape": [-4]}, "wrong shape"),
    "negative both": ({"shape": [-2, -2]}, "wrong shape"),
    "negative offset": ({"offset": -64}, "wrong offset"),
    "negative size": ({"nbytes": -16}, "wrong nbytes"),
    "offset beyond 63 bits": ({"offset": 2**63}, "wrong offset"),
    "offset beyond 64 bits": ({"offset": 2**64}, "integer beyond 64 bits"),
    "misplaced": ({"offset": 64}, "instead of"),
    "too many dimensions": ({"shape": [1] * 99 + [4]}, "wrong shape"),
    "shape of floats": ({"shape": [4.0]}, "wrong shape"),
    "shape of booleans": ({"shape": [True]}, "wrong shape"),
    "shape of text": ({"shape": "4"}, "wrong shape"),
    "no shape": ({"shape": None}, "wrong shape"),
    "objects": ({"dtype": "O"}, "wrong dtype"),
    "objects of numpy": ({"dtype": "|O"}, "wrong dtype"),
    "void": ({"dtype": "|V8"}, "wrong dtype"),
    "record": ({"dtype": "i4,O"}, "wrong dtype"),
    "record as list": ({"dtype": [["a", "<i4"]]}, "wrong dtype"),
    "big-endian": ({"dtype": ">i4"}, "wrong dtype"),
    "native": ({"dtype": "int32"}, "wrong dtype"),
    "dates": ({"dtype": "<M8[s]"}, "wrong dtype"),
    "text of huge width": ({"dtype": "<U999999999999"}, "wrong dtype"),
    "dtype with newline": ({"dtype": "<U1\n", "shape": [4]}, "wrong dtype"),
    "name missing": ({"name": ""}, "wrong name"),
    "name of control characters": ({"name": "\x1b[2J"}, "wrong name"),
    "name of a path": ({"name": "../../etc/passwd"}, "wrong name"),
    "name not text": ({"name": 3}, "wrong name"),
    "digest cut": ({"sha256": "00"}, "wrong sha256"),
    "digest missing": ({"sha256": None}, "wrong sha256"),
    "field too many": ({"code": "import os"}, "wrong array entry"),
}


@pytest.mark.parametrize("case", HOSTILE_ENTRIES.values(), ids=HOSTILE_ENTRIES.keys())
def test_hostile_arrays(path, case):
    changes, message = case
    content = signed(manifest_of(entry(**changes)), bytes(16))
    assert message in problem_of(path, content, verify=False)


HOSTILE_EMPTIES = {
    "product overflows to 0": ({"shape": [2**32, 2**32]}, "cannot be"),
    "empty but uncountable": ({"shape": [0, 2**62]}, "cannot be"),
    "text of no width": ({"shape": [2**40], "dtype": "<U0"}, "wrong dtype"),
}


@pytest.mark.parametrize("case", HOSTILE_EMPTIES.values(), ids=HOSTILE_EMPTIES.keys())
def test_hostile_arrays_of_no_bytes(path, case):
    changes, message = case
    content = signed(manifest_of(entry(**changes, nbytes=0)), b"")
    assert message in problem_of(path, content, verify=False)


# All but the fault itself is right: the last array always ends where the file does.
HOSTILE_PLACES = {
    "one byte late": ([entry(offset=1)], 17, "instead of"),
    "one line late": ([entry(offset=64)], 80, "instead of"),
    "overlapping": ([entry(), entry(name="b")], 16, "instead of"),
    "overlapping in part": (
        [entry(shape=[32], nbytes=128), entry(name="b", offset=64)],
        80,
        "instead of",
    ),
    "nested": ([entry(), entry(name="b", shape=[0], nbytes=0)], 0, "instead of"),
    "gap": ([entry(), entry(name="b", offset=128)], 144, "instead of"),
    "twice": ([entry(), entry(offset=64)], 80, "twice or out of order"),
    "out of order": ([entry(name="b"), entry(offset=64)], 80, "twice or out of order"),
    "not an object": ([entry(), []], 16, "wrong array entry"),
}


@pytest.mark.parametrize("case", HOSTILE_PLACES.values(), ids=HOSTILE_PLACES.keys())
def test_hostile_places(path, case):
    entries, n_bytes, message = case
    content = signed(manifest_of(*entries), bytes(n_bytes))
    assert message in problem_of(path, content, verify=False)


HOSTILE_MANIFESTS = {
    "empty": b"",
    "not JSON": b"import os",
    "not UTF-8": b'"\xff"',
    "UTF-16": json.dumps(manifest_of()).encode("utf-16"),
    "a list": [],
    "null": None,
    "fields missing": {"format_number": 1},
    "field too many": manifest_of(extra=1),
    "format of text": manifest_of(format_number="1"),
    "format true": manifest_of(format_number=True),
    "format 2 inside": manifest_of(format_number=2),
    "kind missing": manifest_of(kind=None),
    "kind of control characters": manifest_of(kind="\x1b"),
    "kind with newline": manifest_of(kind="k\n"),
    "version with newline": manifest_of(library_version="1\n2"),
    "parameters a list": manifest_of(parameters=[]),
    "arrays an object": manifest_of(arrays={}),
    "more after the end": json.dumps(manifest_of()).encode() + b"{}",
    "key twice": json.dumps(manifest_of()).encode().replace(b'"kind"', b'"kind": "k", "kind"'),
    "NaN": manifest_of(parameters={"C": float("nan")}),
    "infinity by overflow": json.dumps(manifest_of(parameters={"C": 0}))
    .replace('"C": 0', '"C": 1e999')
    .encode(),
    "integer of many digits": b"[" + b"9" * 1_000_000 + b"]",
    "float of many digits": b"[0." + b"9" * 1_000_000 + b"]",
    "deep lists": b"[" * 1_000_000 + b"]" * 1_000_000,
    "deep lists, open": b"[" * (4 << 20),
    "deep objects": b'{"a":' * 500_000,
    "deep behind a string": b'["]]]]\\"]]]",' + b"[" * 100_000,
    "string without an end": b'"' + b'\\"' * 1_000_000,
    "quotes": b'"' * 1_000_001,
    "many empty lists": b"[" + b"[]," * 1_000_000 + b"[]]",
    "many keys": b"{" + b",".join(b'"%d":0' % key for key in range(200_000)) + b"}",
}


@pytest.mark.parametrize("manifest", HOSTILE_MANIFESTS.values(), ids=HOSTILE_MANIFESTS.keys())
def test_hostile_manifests(path, manifest):
    problem_of(path, signed(manifest), verify=False)


@pytest.mark.parametrize(
    "changes",
    [
        {"length": 2**63},
        {"length": 2**64 - 1},
        {"length": 0},
        {"length": 1 << 30, "file_length": 1 << 40},
        {"file_length": 0},
        {"file_length": 2**64 - 1},
        {"zero": 1},
    ],
)
def test_hostile_headers(path, changes):
    problem_of(path, signed(manifest_of(), **changes), verify=False)


@LINUX
def test_a_manifest_beyond_the_limit_is_not_read(path):
    with path.open("wb") as file:
        file.write(signed(b"", length=1 << 35, file_length=1 << 36))
        file.truncate(1 << 36)  # 64 GB of nothing: takes no room on the disk
    tracemalloc.start()
    try:
        assert "damaged header" in problem_of(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_hostile_shapes_take_no_memory(path):
    content = signed(manifest_of(entry(shape=[2**40], dtype="|i1", nbytes=2**40)), bytes(16))
    tracemalloc.start()
    try:
        assert "its arrays end at" in problem_of(path, content)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_values_that_the_dtype_forbids(path):
    for dtype, data in {"|b1": b"\1\2" * 8, "<U4": b"\0\0\x11\0" * 4}.items():
        changes = {"dtype": dtype, "shape": [16 // np.dtype(dtype).itemsize]}
        digest = hashlib.sha256(data).hexdigest()
        content = signed(manifest_of(entry(**changes, sha256=digest)), data)
        assert "has values in array 'a'" in problem_of(path, content)


def test_nothing_hides_between_the_arrays(saved):
    content = bytearray(saved.read_bytes())
    place = content.index(b"\1\0\0\1") + 4  # right after the array "bool", the first one
    content[place] = 1
    assert "padding before array 'bytes' is not zero" in problem_of(saved, bytes(content))


@pytest.mark.parametrize("offsets", [[], [0], [1, 4], [0, 5], [0, 3, 2, 4], [0, -(2**63), 4]])
def test_offsets_that_do_not_fit_the_texts(path, offsets):
    arrays = pack_texts("terms", ["bear"])
    arrays["terms.offsets"] = np.array(offsets, dtype=np.int64)
    write_model(path, "k", {}, arrays)
    with pytest.raises(
        ModelFileError, match=r"model\.longtail: array 'terms\.offsets' does not cut"
    ):
        open_model(path).texts("terms")


def test_texts_that_are_not_utf8(path):
    arrays = {**pack_texts("terms", ["bear"]), "terms.utf8": np.full(4, 255, dtype=np.uint8)}
    write_model(path, "k", {}, arrays)
    with pytest.raises(ModelFileError, match="is not UTF-8"):
        open_model(path).texts("terms")


def test_arrays_that_the_caller_did_not_expect(saved):
    model = open_model(saved)
    assert model.array("int8", dtype=np.int8, ndim=1) is model.arrays["int8"]
    with pytest.raises(ModelFileError, match="has no array 'indptr'; it has"):
        model.array("indptr")
    with pytest.raises(ModelFileError, match="array 'int8' must be int64; it is int8"):
        model.array("int8", dtype=np.int64)
    with pytest.raises(ModelFileError, match="must have 2 dimension"):
        model.array("int8", ndim=2)


def test_the_error_can_be_pickled(path):
    error = pickle.loads(pickle.dumps(ModelFileError(path, "is cut short")))
    assert (error.path, error.problem) == (str(path), "is cut short")


# A save that fails


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
def test_any_failure_leaves_the_old_model_alone(saved, monkeypatch, call, error):
    def fail(*_):
        raise error

    before = saved.read_bytes()
    monkeypatch.setattr(os, call, fail)
    with pytest.raises(type(error)) as caught:
        write_model(saved, "new", {}, {"a": np.zeros(99_999)})
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
    if isinstance(error, OSError):
        assert caught.value.errno == errno.ENOSPC
        assert caught.value.filename == str(saved)
        assert "what was there is unchanged" in str(caught.value)


def run(script, *arguments, command=(sys.executable,)):
    """Start Python on a script; its standard output says how far it is."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    code = (
        "import os, signal, sys\nimport numpy as np\nfrom longtail import store as persistence\n"
        "from longtail.store import container, files\n" + textwrap.dedent(script)
    )
    full = [*command, "-c", code, *map(str, arguments)]
    return subprocess.Popen(full, env=environment, stdout=subprocess.PIPE, text=True)


@POSIX
def test_a_full_disk_leaves_the_old_model_alone(saved):
    before = saved.read_bytes()
    script = """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            persistence.write_model(sys.argv[1], "new", {}, {"a": np.ones(1 << 20)})
        except OSError as error:
            print(error.errno, error)
    """
    with run(script, saved) as process:
        output = process.communicate()[0]
    assert output.startswith(f"{errno.EFBIG} ")
    assert "The model was not saved; what was there is unchanged" in output
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


@LINUX
def test_a_tiny_filesystem_leaves_the_old_model_alone(tmp_path):
    command = ("unshare", "--user", "--map-root-user", "--mount")
    if os.geteuid() == 0:
        command = ("unshare", "--mount")
    mount = [*command, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("may not mount a tmpfs here")
    script = """
        import subprocess
        folder = sys.argv[1]
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
        path = folder + "/model.longtail"
        persistence.write_model(path, "old", {}, {"a": np.ones(1 << 15)})
        try:
            persistence.write_model(path, "new", {}, {"a": np.ones(1 << 17)})
        except OSError as error:
            print(error.errno, persistence.open_model(path).kind, os.listdir(folder))
    """
    with run(script, tmp_path, command=(*command, sys.executable)) as process:
        output = process.communicate()[0]
    assert output.strip() == f"{errno.ENOSPC} old ['model.longtail']"


BLOCK = """
    def block():
        print("here", flush=True)
        signal.pause()

    def cut_at(number, part):
        blocks = container.file_blocks
        def stop(*arguments):
            for place, piece in enumerate(blocks(*arguments)):
                if place == number:
                    yield bytes(piece)[: int(len(piece) * part)]
                    block()
                yield piece
        container.file_blocks = stop

    moment = sys.argv[2]
    if moment == "before fsync":
        os.fsync = lambda handle: block()
    elif moment == "before rename":
        os.replace = lambda old, new: block()
    elif moment == "after rename":
        files.sync_folder = lambda folder: block()
    else:
        cut_at(*map(float, moment.split()))
    persistence.write_model(sys.argv[1], "new", {}, {"a": np.ones(1 << 18), "b": np.ones(1 << 18)})
"""
MOMENTS = [
    "0 0.5",
    "1 0.5",
    "3 0.01",
    "3 0.9",
    "5 0.5",
    "before fsync",
    "before rename",
    "after rename",
]


@POSIX
@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_at_a_chosen_moment_leaves_a_whole_model(saved, moment):
    before = saved.read_bytes()
    with run(BLOCK, saved, moment) as process:
        assert process.stdout.readline() == "here\n"
        process.kill()
        assert process.wait() == -signal.SIGKILL
    if moment == "after rename":
        assert open_model(saved).kind == "new"
        assert list(saved.parent.iterdir()) == [saved]
        return
    assert saved.read_bytes() == before
    left = [path for path in saved.parent.iterdir() if path != saved]
    assert [path.match(".longtail-*.tmp") for path in left] == [True]
    write_model(saved, "later", {}, {})
    assert open_model(saved).kind == "later"


@POSIX
def test_kill_anywhere_in_a_loop_of_saves_leaves_a_whole_model(path):
    script = """
        arrays = {name: np.full(1 << 18, number) for number, name in enumerate("abcd")}
        for turn in range(10**9):
            persistence.write_model(sys.argv[1], "k", {"turn": turn}, arrays)
            print(turn, flush=True)
    """
    expected = {name: np.full(1 << 18, number) for number, name in enumerate("abcd")}
    for enough in (0, 1 << 12, 1 << 20, 3 << 20, 6 << 20):
        with run(script, path) as process:
            turn = int(process.stdout.readline())
            while size_of_unfinished(path.parent) < enough:
                assert process.poll() is None
            process.kill()
            turn = int((process.stdout.read().split() or [turn])[-1])
        model = open_model(path)
        assert model.parameters["turn"] >= turn
        assert_same_arrays(model.arrays, expected)
        for left in path.parent.glob(".longtail-*.tmp"):
            left.unlink()


def size_of_unfinished(folder):
    """The bytes of the temporary file that is being written, if there is one."""
    sizes = [0]
    for path in folder.glob(".longtail-*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            sizes.append(path.stat().st_size)
    return max(sizes)


# Processes share the pages


@LINUX
def test_two_processes_share_the_pages(path):
    write_model(path, "k", {}, {"a": np.ones(1 << 20)})
    script = """
        model = persistence.open_model(sys.argv[1])
        print("open", flush=True)
        signal.pause()
    """
    with run(script, path) as one, run(script, path) as two:
        try:
            assert [one.stdout.readline(), two.stdout.readline()] == ["open\n", "open\n"]
            pages = mapped_pages(one.pid, path)
        finally:
            one.kill()
            two.kill()
    assert pages["Rss"] >= 8 << 10  # kB: all of it is in memory,
    assert pages["Private_Clean"] == pages["Private_Dirty"] == 0  # and none of it is its own
    assert pages["Pss"] <= pages["Rss"] // 2 + 1


def mapped_pages(process, path):
    """What /proc says about a process's map of a file, in kB."""
    lines = Path(f"/proc/{process}/smaps").read_text().splitlines()
    start = next(place for place, line in enumerate(lines) if line.endswith(str(path)))
    fields = (line.split() for line in lines[start + 1 : start + 24])
    return {field[0].rstrip(":"): int(field[1]) for field in fields if len(field) == 3}


# What killed saves leave behind


def gone_process():
    """The id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


@POSIX
def test_the_next_save_removes_what_a_killed_one_left(saved):
    left = saved.parent / f".longtail-{gone_process()}-0123456789abcdef.tmp"
    ours = saved.parent / f".longtail-{os.getpid()}-0123456789abcdef.tmp"
    others = [saved.parent / name for name in (".longtail-1-xyz.tmp", "notes.tmp")]
    for path in (left, ours, *others):
        path.write_bytes(b"half a model")
    write_model(saved, "later", {}, {})
    assert sorted(saved.parent.iterdir()) == sorted([saved, ours, *others])


@POSIX
def test_a_locked_temporary_file_stays(saved):
    """Its process may run on another machine that shares the folder."""
    import fcntl

    left = saved.parent / f".longtail-{gone_process()}-0123456789abcdef.tmp"
    with left.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_model(saved, "later", {}, {})
        assert left.exists()
    write_model(saved, "later", {}, {})
    assert not left.exists()


@POSIX
def test_a_pipe_or_link_named_like_a_temporary_file_does_no_harm(saved):
    pid, notes = gone_process(), saved.parent / "notes"
    notes.write_text("keep")
    os.mkfifo(saved.parent / f".longtail-{pid}-01.tmp")
    (saved.parent / f".longtail-{pid}-02.tmp").symlink_to(notes)
    write_model(saved, "later", {}, {})
    assert notes.read_text() == "keep"


@POSIX
def test_the_temporary_file_has_the_models_mode_from_the_first_byte(saved, monkeypatch):
    saved.chmod(0o600)
    modes = []

    def blocks(*arguments):
        modes.extend(stat.S_IMODE(p.stat().st_mode) for p in saved.parent.glob(".longtail-*"))
        yield from original(*arguments)

    original = container.file_blocks
    monkeypatch.setattr(container, "file_blocks", blocks)
    write_model(saved, "k", {}, {})
    assert modes == [0o600]
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


@POSIX
def test_a_file_that_becomes_a_pipe_is_refused_without_waiting(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    regular = os.stat(__file__)
    monkeypatch.setattr(files.os, "stat", lambda path: regular)
    assert "is not a regular file" in problem_of(pipe)
