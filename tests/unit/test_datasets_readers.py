"""Readers of sparse data files: formats, compression, errors."""

import bz2
import gzip
import io
import lzma
import pickle
import sys

import numpy as np
import pytest
from scipy.sparse import random_array
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from longtail.datasets import DataFormatError, read_extreme, read_lshtc, read_svmlight, streams
from longtail.datasets.count_chunks import read_count_chunks

zstandard = pytest.importorskip("zstandard")


@pytest.fixture
def write(tmp_path):
    """Write a file and return its path."""

    def write_file(content, name="train.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def dense(counts):
    """Return the rows as lists."""
    return counts.X.toarray().tolist()


class TestSvmlight:
    def test_labels_terms_and_comments(self, write):
        counts = read_svmlight(write("# head\n-3 qid:4 1:2 3:0.5 # tail\n\n+2.0 2:1e0\n"))
        assert counts.y.tolist() == [-3, 2]
        assert dense(counts) == [[2, 0, 0.5], [0, 1, 0]]
        assert counts.documents.tolist() == [0, 1]
        assert counts.n_unlabelled == 0
        assert counts.X.dtype == np.float64
        assert counts.y.dtype == np.int64

    @pytest.mark.parametrize(
        ("zero_based", "expected"),
        [(True, [[0, 2, 1]]), (False, [[2, 1]]), ("auto", [[2, 1]])],
    )
    def test_first_term(self, write, zero_based, expected):
        assert dense(read_svmlight(write("1 1:2 2:1\n"), zero_based=zero_based)) == expected

    def test_auto_sees_term_zero(self, write):
        assert dense(read_svmlight(write("1 0:2 1:1\n"))) == [[2, 1]]

    def test_one_based_file_must_not_have_term_zero(self, write):
        with pytest.raises(DataFormatError, match=r"line 1: the term number in '0:2' is out of"):
            read_svmlight(write("1 0:2\n"), zero_based=False)

    def test_number_of_terms(self, write):
        path = write("1 1:2\n")
        assert read_svmlight(path, n_terms=7).X.shape == (1, 7)
        assert read_svmlight(write("1 3:2\n"), n_terms=3).X.shape == (1, 3)
        with pytest.raises(DataFormatError, match="allowed are 0 to 3"):
            read_svmlight(write("1 4:2\n"), n_terms=3)
        with pytest.raises(DataFormatError, match="terms 0 and 3 both occur"):
            read_svmlight(write("1 0:1 3:2\n"), n_terms=3)

    def test_equals_scikit_learn(self, write):
        rng = np.random.default_rng(0)
        X = random_array((60, 40), density=0.2, format="csr", rng=rng) * 1e-7
        y = rng.integers(-5, 5, 60)
        buffer = io.BytesIO()
        dump_svmlight_file(X, y, buffer, zero_based=False)
        path = write(buffer.getvalue())
        theirs, labels = load_svmlight_file(str(path), zero_based=False)
        ours = read_svmlight(path, zero_based=False)
        assert np.array_equal(ours.X.toarray(), theirs.toarray())
        assert np.array_equal(ours.y, labels)


class TestLshtc:
    def test_one_row_per_class(self, write):
        counts = read_lshtc(write("545, 32 1:1 2:2\n7,5,7 0:3\n"))
        assert counts.y.tolist() == [32, 545, 5, 7]
        assert counts.documents.tolist() == [0, 0, 1, 1]
        assert dense(counts) == [[0, 1, 2], [0, 1, 2], [3, 0, 0], [3, 0, 0]]

    @pytest.mark.parametrize("header", ["Data\n", "Data\r\n", "Id,Predicted\n"])
    def test_header_is_passed_over(self, write, header):
        counts = read_lshtc(write(header + "3 1:1\n"))
        assert counts.y.tolist() == [3]
        with pytest.raises(DataFormatError, match="line 3: expected term:count, found 'x'"):
            read_lshtc(write(header + "3 1:1\n3 x\n"))

    def test_words_are_no_header_if_pairs_follow(self, write):
        with pytest.raises(DataFormatError, match=r"line 1: expected a label .* found 'cat'"):
            read_lshtc(write("cat 1:1\n"))

    def test_without_replication_a_document_has_a_label_set(self, write):
        path = write("1 1:1\n3,2 1:1\n 4:1\n2 2:5\n")
        counts = read_lshtc(path, replicate=False, unlabelled="skip")
        assert counts.X.toarray().tolist() == [[0, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 5, 0, 0]]
        assert counts.label_sets.to_lists() == [[1], [2, 3], [2]]
        assert counts.documents.tolist() == [0, 1, 1, 3]
        assert counts.n_unlabelled == 1
        kept = read_lshtc(path, replicate=False, unlabelled="keep")
        assert kept.label_sets.to_lists() == [[1], [2, 3], [], [2]]
        assert kept.X[[2]].toarray().tolist() == [[0, 0, 0, 0, 1]]
        assert kept.n_unlabelled == 0
        replicated = read_lshtc(path, unlabelled="skip")
        assert replicated.label_sets.to_lists() == [[1], [2], [3], [2]]
        assert replicated.X[[1, 2]].toarray().tolist() == counts.X[[1, 1]].toarray().tolist()

    def test_unlabelled_documents(self, write):
        path = write("1 1:1\n 1:2\n3 1:3\n")
        with pytest.raises(DataFormatError, match="line 2: the document has no label"):
            read_lshtc(path)
        counts = read_lshtc(path, unlabelled="skip")
        assert counts.y.tolist() == [1, 3]
        assert counts.documents.tolist() == [0, 2]
        assert counts.n_unlabelled == 1

    def test_documents_without_terms_stay(self, write):
        counts = read_lshtc(write("1\n2 1:1\n3 \n"))
        assert counts.X.shape == (3, 2)
        assert counts.X.nnz == 1
        assert read_lshtc(write("1\n2\n")).X.shape == (2, 0)


class TestExtreme:
    def test_header_sets_the_shape(self, write):
        counts = read_extreme(write("3 4 9\n8,0 0:1.5\n 1:1\n2 3:1\n"))
        assert counts.X.shape == (3, 4)
        assert counts.y.tolist() == [0, 8, 2]
        assert counts.documents.tolist() == [0, 0, 2]
        assert counts.n_unlabelled == 1

    def test_unlabelled_documents_can_be_refused(self, write):
        with pytest.raises(DataFormatError, match="line 3: the document has no label"):
            read_extreme(write("2 4 9\n8 0:1.5\n 1:1\n"), unlabelled="error")

    def test_blank_lines_are_documents_up_to_the_promised_number(self, write):
        counts = read_extreme(write("3 2 2\n\n1 0:1\n\n\n \n"))
        assert counts.documents.tolist() == [1]
        assert counts.n_unlabelled == 2

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("2 2\n1 0:1\n", r"line 1: expected the header 'n_documents n_terms n_labels', found"),
            ("1 0:1\n", "line 1: expected the header"),
            ("1 9999999999 2\n1 0:1\n", "line 1: the header promises 9999999999 terms; the limit"),
            ("2 2 2\n1 0:1\n", "line 1: the header promises 2 documents, the file has 1"),
            ("1 2 2\n1 0:1\n0 0:1\n", "line 3: the header promises 1 documents and here is one"),
            ("1 2 2\n1 2:1\n", r"line 2: the term number in '2:1' is out of range; .* 0 to 1"),
            ("1 2 2\n2 1:1\n", "line 2: the label in '2' is out of range; allowed are 0 to 1"),
            ("1 2 2\n-1 1:1\n", "line 2: the label in '-1' is out of range"),
            ("1 2 2\n", "no documents found"),
        ],
    )
    def test_contradictions(self, write, content, message):
        with pytest.raises(DataFormatError, match=message):
            read_extreme(write(content))


class TestCanonicalForm:
    def test_terms_are_sorted_and_added_up_and_zeros_dropped(self, write):
        counts = read_lshtc(write("1 5:1 2:1 5:2 3:0 0:1\n2 1:0 1:4 9:0\n"))
        assert counts.X.indptr.tolist() == [0, 3, 4]
        assert counts.X.indices.tolist() == [0, 2, 5, 1]
        assert counts.X.data.tolist() == [1, 1, 3, 4]
        # A term written with count 0 still has its column.
        assert counts.X.shape == (2, 10)
        counts.X.check_format(full_check=True)
        assert counts.X.has_canonical_format
        assert counts.X.indices.dtype == np.int32

    @pytest.mark.parametrize(
        "number",
        [
            "7",
            "+7",
            "-0",
            "00012",
            "0.1",
            ".5",
            "5.",
            "1e-3",
            "1E+3",
            "1e0000001",
            "8.5e15",
            "9007199254740992",
            "1e-22",
            "1e-23",
            "1e-400",
            "0.1234567890123456789",
            "0.30000000000000004",
            "179769313486231570e-10",
            "123456789012e-40",
            "5e-324",
            "2.2250738585072011e-308",
        ],
    )
    def test_numbers_equal_python_floats(self, write, number):
        counts = read_lshtc(write(f"1 0:{number} 1:1\n"))
        assert counts.X.toarray()[0, 0] == abs(float(number))


class TestBadLines:
    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("1 2:1 abc", r"expected term:count, found 'abc'; terms are whole numbers from 0"),
            ("1 2:1 3", "expected term:count, found '3'"),
            ("1 -2:1", "expected term:count, found '-2:1'"),
            ("1 2.0:1", "expected term:count, found '2.0:1'"),
            ("1 :1", "expected term:count, found ':1'"),
            ("1 2:", "the count in '2:' is not a number"),
            ("1 2:3:4", "the count in '2:3:4' is not a number"),
            ("1 2:1_0", "the count in '2:1_0' is not a number"),
            ("1 2:1e", "the count in '2:1e' is not a number"),
            ("1 2:.", "the count in '2:.' is not a number"),
            ("1 2:0x1", "the count in '2:0x1' is not a number"),
            ("1 2:-1", "the count in '2:-1' is negative; counts must be 0 or more"),
            ("1 2:-1e-400", "is negative"),
            ("1 2:nan", "the count in '2:nan' is not finite"),
            ("1 2:-Inf", "the count in '2:-Inf' is not finite"),
            ("1 2:1e400", r"the count in '2:1e400' is above 2\*\*53"),
            ("1 2:9007199254740994", r"is above 2\*\*53"),
            ("1 2:99999999999999999999999", r"is above 2\*\*53"),
            ("1 10000000:1", "out of range; allowed are 0 to 9999999"),
            ("1 99999999999999999999:1", "out of range"),
            ("99999999999999999999 1:1", "the label in '9+' is out of range"),
            ("x 2:1", "expected a label .a whole number., found 'x'"),
            ("1.5 2:1", "expected a label .a whole number., found '1.5'"),
            ("1,x 2:1", "expected a label .a whole number., found '1,x'"),
            ("1, 2:1", "expected a label .a whole number., found '2:1'"),
            ("1,", "expected a label .a whole number., found '1,'"),
            ("1, ", "expected a label .a whole number., found the end of the line"),
            (",1 2:1", "expected a label .a whole number., found ',1'"),
            ("2:1", "the document has no label, the line begins with '2:1'"),
            ("1 2:1 # 3", "expected term:count, found '#'"),
            ("1 2:1\x003:1", "is not a number"),
            ("1 2:é", "the count in '2:é' is not a number"),
            ("1 " + "z" * 500, "found 'z{40}...'"),
        ],
    )
    def test_file_line_and_reason(self, write, line, reason):
        path = write(f"5 1:1\n\n{line}\n7 1:1\n")
        with pytest.raises(DataFormatError, match=reason) as caught:
            read_lshtc(path)
        assert caught.value.line == 3
        assert str(caught.value).startswith(f"{path}, line 3: ")

    def test_the_first_bad_line_is_named(self, write):
        with pytest.raises(DataFormatError, match=r"line 2: .*above"):
            read_lshtc(write("1 1:1\n1 1:1e99\n1 x\n"))

    @pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
    def test_empty_file(self, write, content):
        for read in (read_svmlight, read_lshtc):
            with pytest.raises(
                DataFormatError, match=r"train.txt: (the file is empty|no documents)"
            ):
                read(write(content))

    def test_error_survives_pickling(self):
        error = pickle.loads(pickle.dumps(DataFormatError("a.txt", "is bad", 3)))
        assert str(error) == "a.txt, line 3: is bad"

    @pytest.mark.parametrize(
        ("read", "options", "message"),
        [
            (
                read_lshtc,
                {"unlabelled": "drop"},
                "unlabelled must be 'error', 'skip' or 'keep'; got 'drop'",
            ),
            (read_lshtc, {"unlabelled": "keep"}, "unlabelled='keep' needs replicate=False"),
            (read_lshtc, {"n_terms": 0}, "n_terms must be between 1 and .* got 0"),
            (read_svmlight, {"zero_based": "yes"}, "zero_based must be True, False or 'auto'"),
        ],
    )
    def test_options(self, write, read, options, message):
        with pytest.raises(ValueError, match=message):
            read(write("1 1:1\n"), **options)


class TestBlocks:
    CONTENT = "".join(f"{i}, {i + 1} {i}:1 {i + 7}:0.12345678901234567\r\n" for i in range(50))

    @pytest.mark.parametrize("size", [1, 7, 64])
    def test_any_block_size_gives_the_same(self, write, monkeypatch, size):
        path = write(self.CONTENT.rstrip())
        whole = read_lshtc(path)
        monkeypatch.setattr(streams, "BLOCK_BYTES", size)
        parts = read_lshtc(path)
        assert (whole.X != parts.X).nnz == 0
        assert np.array_equal(whole.y, parts.y)
        assert np.array_equal(whole.documents, parts.documents)

    def test_line_numbers_run_through_blocks(self, write, monkeypatch):
        monkeypatch.setattr(streams, "BLOCK_BYTES", 32)
        with pytest.raises(DataFormatError, match="line 51: "):
            read_lshtc(write(self.CONTENT + "1 1:x\n"))

    def test_byte_order_mark(self, write):
        assert read_lshtc(write("\ufeff3 1:1\n")).y.tolist() == [3]


COMPRESS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda content: zstandard.ZstdCompressor().compress(content),
}


class TestCompression:
    # Enough different text that half of the compressed stream is not the whole of it.
    CONTENT = "".join(f"{i} {i * 7919 % 10007}:{i % 13 + 1}\n" for i in range(20_000)).encode()

    @pytest.mark.parametrize("method", COMPRESS)
    def test_told_apart_by_content(self, write, method):
        path = write(COMPRESS[method](self.CONTENT), "data.bin")
        assert read_lshtc(path).y.tolist() == list(range(20_000))

    @pytest.mark.parametrize("method", COMPRESS)
    def test_several_streams_in_one_file(self, write, method):
        half = COMPRESS[method](b"1 1:1\n"), COMPRESS[method](b"2 1:1\n")
        assert read_lshtc(write(b"".join(half))).y.tolist() == [1, 2]

    @pytest.mark.parametrize("method", COMPRESS)
    def test_cut_file(self, write, method):
        content = COMPRESS[method](self.CONTENT)
        for size in (len(content) // 2, len(content) - 1):
            with pytest.raises(DataFormatError, match=f"{method} stream is damaged or cut short"):
                read_lshtc(write(content[:size]))

    @pytest.mark.parametrize("method", COMPRESS)
    def test_damaged_file(self, write, method):
        content = bytearray(COMPRESS[method](self.CONTENT))
        content[len(content) // 2] ^= 0xFF
        with pytest.raises(DataFormatError):
            read_lshtc(write(bytes(content)))

    def test_zip_archive(self, write):
        with pytest.raises(DataFormatError, match="zip archive; unpack it"):
            read_lshtc(write(b"PK\x03\x04rest"))

    def test_missing_package_is_named(self, write, monkeypatch):
        path = write(COMPRESS["zstd"](self.CONTENT))
        monkeypatch.setitem(sys.modules, "zstandard", None)
        with pytest.raises(ImportError, match=r"pip install 'longtail\[data\]'"):
            read_lshtc(path)

    def test_missing_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_lshtc(tmp_path / "none.txt")


class TestChunksOfLabelSets:
    """Files of counts in chunks, against the readers of whole files."""

    def joined(self, path, **options):
        chunks = list(read_count_chunks(path, **options))
        return chunks, [labels for chunk in chunks for labels in chunk.label_lists()]

    def test_svmlight(self, write):
        path = write("3,7 1:2\n5 2:1\n")
        chunks, sets = self.joined(path, replicate=False)
        assert sets == [[3, 7], [5]]
        assert chunks[0].content.toarray().tolist() == [[2, 0], [0, 1]]
        [replicated] = read_count_chunks(path)
        assert replicated.labels.tolist() == [3, 7, 5]
        assert replicated.lines == [1, 1, 2]

    def test_lshtc_has_a_header_or_not(self, write):
        for content in ("Data\n545, 32 1:1 2:2\n7 0:1\n", "545, 32 1:1 2:2\n7 0:1\n"):
            path = write(content)
            chunks, sets = self.joined(path, format="lshtc", replicate=False)
            whole = read_lshtc(path, replicate=False)
            assert sets == whole.label_sets.to_lists() == [[32, 545], [7]]
            assert chunks[0].content.toarray().tolist() == whole.X.toarray().tolist()

    def test_xmc_leaves_out_what_has_no_label(self, write):
        path = write("3 3 5\n4,0 0:1 2:0.5\n 1:1\n2 2:1\n")
        chunks, sets = self.joined(path, format="xmc", replicate=False)
        assert sets == read_extreme(path, replicate=False).label_sets.to_lists() == [[0, 4], [2]]
        assert chunks[0].lines == [2, 4]
        [unlabelled] = read_count_chunks(path, format="xmc", labelled=False)
        assert unlabelled.content.shape[0] == 3

    def test_xmc_keeps_to_its_header(self, write):
        with pytest.raises(DataFormatError, match="promises 3 documents, the file has 1"):
            list(read_count_chunks(write("3 3 5\n4 0:1\n"), format="xmc"))
        with pytest.raises(DataFormatError, match="allowed are 0 to 4"):
            list(read_count_chunks(write("1 3 5\n5 0:1\n"), format="xmc"))
