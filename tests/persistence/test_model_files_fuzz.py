"""The reader on any bytes: the one documented error or the very model, never anything else."""

import hashlib
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from longtail.exceptions import ModelFileError
from longtail.store.container import open_model, write_model
from longtail.store.texts import pack_texts
from tests.conftest import examples

HEADER = struct.Struct("<8sIIQQ32s")
MAGIC = b"\x89LTM\r\n\x1a\n"

fuzz = examples(200)

INTEGERS = st.integers(-(2**65), 2**65) | st.sampled_from(
    [0, 1, 16, 64, 2**31, 2**32, 2**62, 2**63]
)
JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
NUMBERS = hnp.boolean_dtypes() | hnp.integer_dtypes() | hnp.unsigned_integer_dtypes()
DTYPES = (
    NUMBERS
    | hnp.floating_dtypes(sizes=(16, 32, 64))
    | hnp.byte_string_dtypes()
    | hnp.unicode_string_dtypes()
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_./-]{0,9}", fullmatch=True)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "model.longtail"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a sound file, with some of everything."""
    path = tmp_path_factory.mktemp("sound") / "model.longtail"
    arrays = {
        "counts": np.arange(20),
        "flags": np.array([True, False]),
        "labels": np.array(["a", "bc"]),
    }
    write_model(path, "k", {"C": 1.0}, {**arrays, **pack_texts("terms", ["bear", "熊"])})
    return path.read_bytes()


def sign(header, manifest):
    return header[:32] + hashlib.sha256(header[:32] + manifest).digest()


def open_or_refuse(path, content, verify):
    """Open any bytes; return the model, or None where the documented error says what is wrong."""
    path.write_bytes(content)
    try:
        model = open_model(path, verify=verify)
    except ModelFileError as error:
        problem = error.problem
    else:
        for array in model.arrays.values():
            array.tobytes()  # every byte of every view is there
        return model
    assert 0 < len(problem) < 1000
    return None


@fuzz
@given(st.binary(max_size=300), st.booleans(), st.booleans())
def test_random_bytes(path, content, verify, with_magic):
    start = MAGIC + struct.pack("<I", 1) if with_magic else b""
    assert open_or_refuse(path, start + content, verify) is None


@fuzz
@given(st.data())
def test_a_mutated_file_is_refused_or_unchanged(path, sound, data):
    content = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 70))
        content[place : place + length] = data.draw(st.binary(max_size=70))
    model = open_or_refuse(path, bytes(content), verify=True)
    assert (model is not None) == (content == sound)


@fuzz
@given(st.data(), st.booleans())
def test_a_mutated_and_signed_manifest(path, sound, data, verify):
    """Mutations that pass the checksum reach the parser and the audit."""
    end = 64 + HEADER.unpack(sound[:64])[3]
    manifest = bytearray(sound[64:end])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(manifest) - 1))
        manifest[place] = data.draw(st.sampled_from(b'0123456789{}[],:"<|ieEfbUSOV.- \\\xff'))
    content = sign(sound[:64], bytes(manifest)) + bytes(manifest) + sound[end:]
    open_or_refuse(path, content, verify)


@fuzz
@given(st.data(), st.booleans())
def test_a_signed_manifest_with_any_value_anywhere(path, sound, data, verify):
    end = 64 + HEADER.unpack(sound[:64])[3]
    manifest = json.loads(sound[64:end])
    holder = data.draw(st.sampled_from([manifest, *manifest["arrays"]]))
    holder[data.draw(st.sampled_from(sorted(holder)))] = data.draw(
        JSON | st.lists(INTEGERS, max_size=4)
    )
    text = json.dumps(manifest).encode()
    padding = bytes(-(64 + len(text)) % 64)
    start = -(-end // 64) * 64
    body = text + padding + sound[start:]
    header = HEADER.pack(MAGIC, 1, 0, len(text), 64 + len(body), bytes(32))
    open_or_refuse(path, sign(header, text) + body, verify)


@fuzz
@given(
    st.dictionaries(
        NAMES, st.tuples(DTYPES, SHAPES).flatmap(lambda both: hnp.arrays(*both)), max_size=4
    ),
    st.dictionaries(st.text(max_size=5), JSON, max_size=3),
)
def test_what_is_accepted_comes_back(path, arrays, parameters):
    path.unlink(missing_ok=True)
    try:
        write_model(path, "k", parameters, arrays)
    except ValueError as error:
        problem = str(error)
    else:
        problem = ""
    if problem:
        assert problem.startswith("Parameter ")  # NaN, an infinity, or an integer beyond 64 bits
        assert not path.exists()
        return
    model = open_model(path)
    assert model.parameters == parameters
    for name, array in arrays.items():
        assert model.arrays[name].shape == array.shape
        assert model.arrays[name].dtype == array.dtype.newbyteorder("<")
        assert model.arrays[name].astype(array.dtype).tobytes() == array.tobytes()


@fuzz
@given(st.lists(st.text()))
def test_any_texts_come_back(path, texts):
    write_model(path, "k", {}, pack_texts("terms", texts))
    assert open_model(path).texts("terms") == texts
