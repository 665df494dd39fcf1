"""What ``as_rows`` accepts, what it copies, and what it refuses."""

import hashlib

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from adaspdc._rows import as_rows


def digest(*arrays):
    return [(hashlib.sha256(a.tobytes()).hexdigest(), a.flags.writeable, a.dtype) for a in arrays]


def to_dense(rows):
    if not rows.is_sparse:
        return np.asarray(rows.kernel.values)
    data, indices, indptr = (np.asarray(part) for part in rows.kernel)
    parts = (data, indices.astype(np.int64), indptr.astype(np.int64))
    return sparse.csr_array(parts, shape=(rows.n, rows.d)).toarray()


def example(seed=0, shape=(7, 5)):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) * (rng.random(shape) < 0.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_c_ordered_array_is_used_as_it_is(dtype):
    X = example().astype(dtype)
    before = digest(X)
    rows = as_rows(X)
    assert np.shares_memory(rows.kernel.values, X)
    assert (rows.n, rows.d, rows.nnz, rows.dtype, rows.is_sparse) == (7, 5, 35, dtype, False)
    assert not rows.kernel.values.flags.writeable
    assert digest(X) == before


def test_read_only_memory_map_is_used_as_it_is(tmp_path):
    X = example()
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    rows = as_rows(mapped)
    assert np.shares_memory(rows.kernel.values, mapped)
    assert type(rows.kernel.values) is np.ndarray
    np.testing.assert_array_equal(rows.kernel.values, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2]])
def test_other_layouts_are_copied_in_their_own_dtype(layout, dtype):
    X = layout(example().astype(dtype))
    rows = as_rows(X)
    assert rows.kernel.values.flags.c_contiguous
    assert rows.dtype == dtype
    np.testing.assert_array_equal(rows.kernel.values, X)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (np.int8, np.float64),
        (np.uint64, np.float64),
        (bool, np.float64),
        (np.float16, np.float32),
        (">f8", np.float64),
        (">f4", np.float32),
    ],
)
def test_conversions(given, stored):
    X = np.array([[0, 1], [1, 1], [0, 0]]).astype(given)
    rows = as_rows(X)
    assert rows.kernel.values.dtype == np.dtype(stored)
    np.testing.assert_array_equal(rows.kernel.values, X.astype(float))
    if X.dtype != np.float16 and X.dtype.isnative:
        rows = as_rows(sparse.csr_array(X))
        assert rows.kernel.data.dtype == np.dtype(stored)


def test_misaligned_array_is_copied():
    raw = np.zeros(8 * 6 + 1, np.uint8)
    X = raw[1:].view(np.float64).reshape(3, 2)
    assert as_rows(X).kernel.values.flags.aligned


def test_lists_and_data_frames():
    np.testing.assert_array_equal(as_rows([[1, 2], [3, 4]]).kernel.values, [[1.0, 2.0], [3.0, 4.0]])
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [True, False], "c": [1, 2]})
    np.testing.assert_array_equal(as_rows(frame).kernel.values, [[1.5, 1, 1], [2.5, 0, 2]])
    nullable = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [1.0, 2.0]})
    np.testing.assert_array_equal(as_rows(nullable).kernel.values, [[1, 1], [np.nan, 2]])


def test_rows_pass_through():
    rows = as_rows(example())
    assert as_rows(rows) is rows


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("writeable", [True, False])
def test_csr_is_used_as_it_is(container, index, dtype, writeable):
    X = container(example().astype(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    parts = (X.data, X.indices, X.indptr)
    for part in parts:
        part.flags.writeable = writeable
    before = digest(*parts)
    rows = as_rows(X)
    for mine, theirs in zip(rows.kernel, parts, strict=True):
        assert np.shares_memory(mine, theirs)
        assert not mine.flags.writeable
    assert rows.kernel.indices.dtype == rows.kernel.indptr.dtype == np.dtype(f"u{index().itemsize}")
    assert (rows.n, rows.d, rows.nnz, rows.dtype, rows.is_sparse) == (7, 5, X.nnz, dtype, True)
    np.testing.assert_array_equal(to_dense(rows), X.toarray())
    assert digest(*parts) == before
    assert X.data is parts[0]
    assert X.indices is parts[1]
    assert X.indptr is parts[2]


@pytest.mark.parametrize("fmt", ["csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("make", [sparse.coo_array, sparse.coo_matrix])
def test_other_formats_are_converted(fmt, make):
    X = make(example()).asformat(fmt)
    rows = as_rows(X)
    assert X.format == fmt
    np.testing.assert_array_equal(to_dense(rows), example())


def test_bsr_with_blocks():
    X = sparse.bsr_array(example(1, (6, 4)), blocksize=(2, 2))
    np.testing.assert_array_equal(to_dense(as_rows(X)), example(1, (6, 4)))


@pytest.mark.parametrize(
    ("index", "pointer"), [(np.int32, np.int64), (np.int64, np.int32), (np.int16, np.int32)]
)
def test_mismatched_index_types(index, pointer):
    X = sparse.csr_array(example())
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(pointer)
    kernel = as_rows(X).kernel
    assert kernel.indices.dtype == kernel.indptr.dtype
    np.testing.assert_array_equal(to_dense(as_rows(X)), example())
    assert X.indices.dtype == index
    assert X.indptr.dtype == pointer


def csr_of(data, indices, indptr, shape, dtype=np.float64):
    """A CSR array that SciPy has not looked at."""
    X = sparse.csr_array(shape)
    X.data = np.array(data, dtype)
    X.indices, X.indptr = np.array(indices, np.int32), np.array(indptr, np.int32)
    return X


def test_unsorted_indices_are_fine():
    X = csr_of([1.0, 2.0, 3.0], [2, 0, 1], [0, 2, 3], (2, 3))
    rows = as_rows(X)
    assert np.shares_memory(rows.kernel.data, X.data)
    np.testing.assert_array_equal(to_dense(rows), [[2, 0, 1], [0, 3, 0]])


@pytest.mark.parametrize(
    ("indices", "expected"), [([1, 1, 0], [4.0, 3.0]), ([1, 0, 1], [2.0, 5.0])]
)
@pytest.mark.parametrize("claim", [True, False])
def test_duplicates_are_summed_on_a_copy(indices, expected, claim):
    X = csr_of([1.0, 2.0, 4.0], indices, [0, 3, 3], (2, 2))
    X.has_canonical_format = claim  # SciPy's cached flag may be wrong
    before = digest(X.data, X.indices, X.indptr)
    rows = as_rows(X)
    np.testing.assert_array_equal(to_dense(rows), [expected, [0.0, 0.0]])
    assert rows.nnz == 2
    assert digest(X.data, X.indices, X.indptr) == before


def test_duplicates_of_small_integers_do_not_wrap():
    X = csr_of([100, 100], [0, 0], [0, 2], (1, 1), np.int8)
    assert to_dense(as_rows(X)) == 200.0


def test_excess_storage_is_ignored():
    X = csr_of([1.0, 2.0, np.nan], [0, 1, 99], [0, 1, 2], (2, 2))
    rows = as_rows(X)
    assert rows.nnz == rows.kernel.data.size == 2
    np.testing.assert_array_equal(to_dense(rows), [[1, 0], [0, 2]])


def test_matrix_without_entries():
    rows = as_rows(sparse.csr_array((3, 4)))
    assert (rows.n, rows.d, rows.nnz) == (3, 4, 0)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones(3), ValueError, r"X must be two-dimensional.*shape \(3,\).*reshape\(-1, 1\)"),
        (np.ones((2, 2, 2)), ValueError, r"X must be two-dimensional.*\(2, 2, 2\)"),
        (3.0, ValueError, r"X must be two-dimensional.*shape \(\)"),
        ([], ValueError, r"X must be two-dimensional.*shape \(0,\)"),
        (np.ones((0, 3)), ValueError, r"X has shape \(0, 3\).*at least one row"),
        (np.ones((3, 0)), ValueError, r"X has shape \(3, 0\).*at least one column"),
        (sparse.csr_array((0, 3)), ValueError, r"X has shape \(0, 3\).*at least one row"),
        (sparse.coo_array(np.ones(3)), ValueError, r"X must be two-dimensional.*\(3,\)"),
        ([[1, 2], [3]], ValueError, "X cannot be read.*same number of numbers"),
        (np.ones((2, 2), complex), TypeError, r"X must hold real.*complex128.*\.real"),
        (sparse.csr_array(np.eye(2) * 1j), TypeError, "X must hold real.*complex128"),
        (np.ones((2, 2), np.longdouble), TypeError, r"X must hold.*float128|longdouble.*astype"),
        (np.ones((2, 2), object), TypeError, r"X must hold.*dtype object.*astype"),
        ([["a", "b"]], TypeError, "X must hold.*dtype <U1.*Encode"),
        (np.zeros((2, 2), "M8[s]"), TypeError, "X must hold.*datetime64.*int64"),
        ([[2**70, 1]], TypeError, "X must hold.*object"),
        (None, TypeError, "X must hold.*object"),
        (aslinearoperator(np.eye(2)), TypeError, "X must hold.*object"),
        (np.ma.masked_array(np.eye(2), np.eye(2)), TypeError, "X is a masked array.*filled"),
        (
            pd.DataFrame({"a": [1.0], "city": ["x"]}),
            TypeError,
            "X has columns.*city.*get_dummies",
        ),
    ],
)
def test_bad_matrices(X, error, message):
    with pytest.raises(error, match=message):
        as_rows(X)


@pytest.mark.parametrize(
    ("indices", "indptr", "message"),
    [
        ([0, 5], [0, 1, 2], r"index 5 lies outside 0\.\.2"),
        ([0, -1], [0, 1, 2], r"index -1 lies outside"),
        ([0, 1], [0, 2, 1], "never decrease"),
        ([0, 1], [1, 1, 2], "start at 0"),
        ([0, 1], [0, 1, 9], "ends at 9, beyond 2"),
        ([0, 1], [0, 2], "indptr has length 2, expected 3"),
        ([0, 1], [0, 1, 1, 2], "indptr has length 4, expected 3"),
        ([0], [0, 1, 2], "indices has length 1, data 2"),
        ([0, 1], [0, -1, 2], "never decrease"),
    ],
)
def test_inconsistent_csr(indices, indptr, message):
    with pytest.raises(ValueError, match=f"X is not a valid sparse matrix.*{message}.*Rebuild"):
        as_rows(csr_of([1.0, 2.0], indices, indptr, (2, 3)))


def test_index_types_that_are_not_integer():
    X = sparse.csr_array(np.eye(2))
    X.indices = X.indices.astype(float)
    with pytest.raises(ValueError, match="index dtypes float64"):
        as_rows(X)


def test_inconsistent_coo_csc_and_bsr():
    coo = sparse.coo_matrix(np.eye(3))
    coo.col[0] = 7
    csc = sparse.csc_array(np.eye(3))
    csc.indices[0] = 7
    bsr = sparse.bsr_array(np.eye(4), blocksize=(2, 2))
    bsr.indices[0] = 2
    for bad in (coo, csc, bsr):
        with pytest.raises(ValueError, match="not a valid sparse matrix"):
            as_rows(bad)


def test_the_name_appears_in_messages():
    with pytest.raises(ValueError, match=r"blocks\[2\] must be two-dimensional"):
        as_rows(np.ones(2), "blocks[2]")
