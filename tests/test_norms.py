"""Norms against NumPy's dense ones, over the whole range of float64."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from adaspdc._norms import batch_eso, block_norms, operator_norm, row_norms, whole_norm
from adaspdc._rows import as_rows

KINDS = ["dense64", "dense32", "csr32", "csr64", "csr_float32", "read_only", "memmap"]


def variant(kind, X, folder=None):
    """``X`` as the kind of matrix named."""
    if kind == "dense32":
        return X.astype(np.float32)
    if kind == "read_only":
        X = X.copy()
        X.flags.writeable = False
    if kind == "memmap":
        np.save(folder / "x.npy", X)
        return np.load(folder / "x.npy", mmap_mode="r")
    if kind.startswith("csr"):
        X = sparse.csr_array(X.astype(np.float32) if kind == "csr_float32" else X)
        if kind == "csr64":
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def numbers(X):
    return (X.toarray() if sparse.issparse(X) else np.array(X)).astype(np.float64)


def sparse_example(n, d, density=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    X *= np.exp(rng.standard_normal((n, 1)))
    X[n // 2] = 0.0
    X[:, d // 2] = 0.0
    return X


def true_norm(A):
    """Spectral norm, safe for tiny and huge entries."""
    peak = np.abs(A).max(initial=0.0)
    return peak * np.linalg.norm(A / peak, 2) if peak else 0.0


# ---- rows ----


@pytest.mark.parametrize("kind", KINDS)
def test_row_norms(kind, tmp_path):
    X = variant(kind, sparse_example(40, 23), tmp_path)
    rows = as_rows(X)
    np.testing.assert_allclose(row_norms(rows), np.linalg.norm(numbers(X), axis=1), rtol=1e-14)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_row_norms_over_the_whole_range(container):
    sizes = [1e-300, 1e-160, 1e-150, 1e-3, 1.0, 1e150, 1e155, 1e300, 5e-324, 0.0]
    X = np.outer(sizes, [3.0, 0.0, -4.0])
    expected = [5.0 * size for size in sizes]
    np.testing.assert_allclose(row_norms(as_rows(container(X))), expected, rtol=1e-15)
    mixed = container(np.array([[1e-300, 1e300], [1e-170, 1.0]]))
    np.testing.assert_allclose(row_norms(as_rows(mixed)), [1e300, 1.0], rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(container, bad, dtype):
    X = np.eye(5, 4, dtype=dtype)
    X[3, 2] = X[3, 3] = X[4, 0] = bad
    message = rf"features must be finite, got {bad} at row 3, column 2\. Remove"
    with pytest.raises(ValueError, match=message):
        row_norms(as_rows(container(X), "features"))


def test_norm_beyond_float64():
    X = np.ones((2, 4))
    X[1] = 1.7e308
    with pytest.raises(ValueError, match=r"X has a row \(1\).*range of float64.*Rescale"):
        row_norms(as_rows(X))


# ---- batches ----


@pytest.mark.parametrize("kind", ["dense64", "csr32", "csr64", "dense32"])
@pytest.mark.parametrize("m", [1, 2, 7, 20])
def test_batch_eso_formula(kind, m):
    X = variant(kind, sparse_example(20, 9))
    A = numbers(X)
    counts = (A != 0).sum(axis=0)
    expected = A**2 @ (1 + np.maximum(counts - 1, 0) * (m - 1) / 19)
    np.testing.assert_allclose(batch_eso(as_rows(X), m), expected, rtol=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
def test_batch_eso_bounds_the_second_moment(weighted):
    """The exact expectation over all m-subsets is a quadratic form; the bound lies above it."""
    n, m = 8, 3
    A = sparse_example(n, 6, density=0.4, seed=3)
    weights = np.where(np.arange(n) % 3 == 0, 0.0, 2.0) if weighted else None
    v = batch_eso(as_rows(A), m, weights)
    gram = A @ A.T
    pair = m * (m - 1) / (n * (n - 1))
    moment = pair * gram + (m / n - pair) * np.diag(np.diag(gram))
    slack = (m / n) * np.diag(v) - moment
    if weighted:
        slack = slack[np.ix_(weights > 0, weights > 0)]
    assert np.linalg.eigvalsh(slack)[0] >= -1e-12
    assert (v <= m * np.linalg.norm(A, axis=1) ** 2 * (1 + 1e-14)).all()


def test_batch_eso_of_one_row_and_bad_sizes():
    rows = as_rows([[3.0, 4.0]])
    np.testing.assert_allclose(batch_eso(rows, 1), [25.0])
    for m in (0, 2):
        with pytest.raises(ValueError, match=rf"batch_size must lie in 1\.\.1.*got {m}"):
            batch_eso(rows, m)
    with pytest.raises(ValueError, match="squared norm exceeds"):
        batch_eso(as_rows([[1e200], [1.0]]), 1)
    with pytest.raises(ValueError, match=r"weights must have shape \(2,\)"):
        batch_eso(as_rows([[1.0], [1.0]]), 2, np.ones(3))


# ---- blocks ----


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 3, 12, 40])
def test_block_norms_are_exact_for_small_blocks(kind, d, tmp_path):
    X = variant(kind, sparse_example(90, d), tmp_path)
    ptr = np.array([0, 1, 3, 6, 7, 15, 24, 25, 45, 46, 90])
    norms, exact = block_norms(as_rows(X), ptr)
    A = numbers(X)
    expected = [true_norm(A[a:b]) for a, b in pairwise(ptr)]
    np.testing.assert_allclose(norms, expected, rtol=1e-13)
    assert exact.all()


@pytest.mark.parametrize("kind", ["dense64", "dense32", "csr32", "csr64", "csr_float32"])
@pytest.mark.parametrize("limit", [0, 1, 5])
def test_bounds_are_bounds(kind, limit):
    X = variant(kind, sparse_example(90, 12, density=0.15))
    ptr = np.array([0, 1, 3, 15, 24, 45, 46, 90])
    norms, exact = block_norms(as_rows(X), ptr, exact_limit=limit)
    A = numbers(X)
    blocks = [A[a:b] for a, b in pairwise(ptr)]
    expected = np.array([true_norm(B) for B in blocks])
    frobenius = np.array([np.linalg.norm(B) for B in blocks])
    sides = [np.sqrt(np.linalg.norm(B, 1) * np.linalg.norm(B, np.inf)) for B in blocks]
    assert not exact.all()
    np.testing.assert_allclose(norms[exact], expected[exact], rtol=1e-13)
    assert (norms >= expected * (1 - 1e-13)).all()
    assert (norms <= np.minimum(frobenius, sides) * (1 + 1e-11)).all()


def test_bound_is_sharp_for_non_negative_blocks():
    A = np.abs(sparse_example(60, 30))
    norms, exact = block_norms(as_rows(A), [0, 60], exact_limit=0)
    assert not exact[0]
    assert true_norm(A) * (1 - 1e-13) <= norms[0] <= 1.05 * true_norm(A)


def test_bound_of_unconnected_parts_of_very_different_size():
    A = np.zeros((8, 8))
    A[:4, :4], A[4:, 4:] = 1e-160, 1.0
    for container in (np.asarray, sparse.csr_array):
        norms, _ = block_norms(as_rows(container(A)), [0, 8], exact_limit=0)
        np.testing.assert_allclose(norms, 4.0, rtol=1e-10)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1.0, 1e150, 1e300])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("limit", [256, 0])
def test_block_norms_over_the_whole_range(size, container, limit):
    A = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1]]) * 1.0
    A[:2] *= size
    A[4:] *= 7.0
    norms, _ = block_norms(as_rows(container(A)), [0, 2, 4, 6], exact_limit=limit)
    expected = np.array([size * np.sqrt(3.0), 0.0, 7.0 * np.sqrt(6.0)])
    assert (norms >= expected * (1 - 1e-13)).all()
    rtol = 1e-13 if limit else 0.2
    np.testing.assert_allclose(norms, expected, rtol=rtol, atol=0)


def test_repeated_singular_values_and_narrow_limits():
    A = np.vstack([np.eye(8), 3 * np.eye(8)[:3], np.eye(8)[[0, 0]]])
    norms, exact = block_norms(as_rows(A), [0, 8, 11, 13])
    np.testing.assert_allclose(norms, [1.0, 3.0, np.sqrt(2.0)], rtol=1e-14)
    assert exact.all()


def test_larger_blocks_than_the_limit():
    A = np.random.default_rng(0).standard_normal((600, 300))
    norms, exact = block_norms(as_rows(A), [0, 200, 600])
    assert exact.tolist() == [True, False]
    np.testing.assert_allclose(norms[0], true_norm(A[:200]), rtol=1e-13)
    assert norms[1] >= true_norm(A[200:])


def test_rows_as_blocks_are_row_norms():
    rows = as_rows(sparse_example(9, 4))
    norms, exact = block_norms(rows, np.arange(10))
    np.testing.assert_array_equal(norms, row_norms(rows))
    assert exact.all()


@pytest.mark.parametrize(
    "ptr", [[0, 2], [1, 3], [0, 2, 2, 3], [0, 3, 2], [0], [0.0, 3.0], [[0, 3]], [0, 4]]
)
def test_bad_pointers(ptr):
    with pytest.raises(ValueError, match="ptr must"):
        block_norms(as_rows(np.eye(3)), np.array(ptr))


# ---- the whole matrix ----


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(30, 6), (6, 30), (40, 25), (25, 40), (1, 5), (5, 1)])
def test_whole_norm(kind, shape, tmp_path):
    X = variant(kind, sparse_example(*shape, density=0.8, seed=1), tmp_path)
    scale = np.random.default_rng(2).random(shape[0]) + 0.1
    A = numbers(X)
    rows = as_rows(X)
    np.testing.assert_allclose(whole_norm(rows), true_norm(A), rtol=3e-12, atol=0)
    expected = true_norm(scale[:, None] * A)
    np.testing.assert_allclose(whole_norm(rows, scale), expected, rtol=3e-12, atol=0)
    assert whole_norm(rows, scale) >= expected * (1 - 1e-13)


def test_whole_norm_sums_large_dense_data_in_pieces(monkeypatch):
    monkeypatch.setattr("adaspdc._norms.CHUNK", 50)
    for shape in [(70, 11), (11, 70)]:
        A = sparse_example(*shape)
        np.testing.assert_allclose(whole_norm(as_rows(A)), true_norm(A), rtol=3e-12)


def test_whole_norm_falls_back_to_a_bound(monkeypatch):
    A = sparse_example(50, 40)
    monkeypatch.setattr("adaspdc._norms.GRAM_BUDGET", 10)
    bound = whole_norm(as_rows(sparse.csr_array(A)))
    assert true_norm(A) <= bound <= np.linalg.norm(A) * (1 + 1e-11)


def test_whole_norm_of_extreme_rows_and_scales():
    A = np.array([[3e-200, 4e-200], [0.0, 0.0], [1e-220, 0.0]])
    scale = np.array([1e200, 1e308, 1.0])
    for container in (np.asarray, sparse.csr_array):
        np.testing.assert_allclose(whole_norm(as_rows(container(A)), scale), 5.0, rtol=3e-12)
        assert whole_norm(as_rows(container(np.zeros((3, 2))))) == 0.0
    with pytest.raises(ValueError, match="range of float64"):
        whole_norm(as_rows([[1e200]]), np.array([1e200]))


@pytest.mark.parametrize("scale", [np.ones(2), [1.0, -1.0, 1.0], [1.0, np.nan, 1.0]])
def test_bad_row_scale(scale):
    with pytest.raises(ValueError, match="row_scale must be 3 finite"):
        whole_norm(as_rows(np.eye(3)), scale)


# ---- operators ----


@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (1, 4), (4, 1), (600, 20), (20, 600)])
def test_operator_norm_is_exact_for_a_short_side(shape):
    A = np.random.default_rng(0).standard_normal(shape)
    norm, exact = operator_norm(aslinearoperator(A))
    assert exact
    np.testing.assert_allclose(norm, true_norm(A), rtol=1e-13)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_operator_norm_over_the_whole_range(size):
    A = np.array([[1.0, 2.0], [3.0, 4.0]])
    norm, _ = operator_norm(aslinearoperator(A * size))
    np.testing.assert_allclose(norm, true_norm(A) * size, rtol=1e-13)


def test_operator_norm_is_frobenius_otherwise():
    A = sparse.random_array((520, 530), density=0.02, rng=np.random.default_rng(0), format="csr")
    norm, exact = operator_norm(aslinearoperator(A))
    assert not exact
    frobenius = np.linalg.norm(A.data)
    assert frobenius * (1 - 1e-13) <= norm <= frobenius * (1 + 1e-11)


def operator(matvec, dtype=float, shape=(2, 2), **others):
    return LinearOperator(shape, matvec=matvec, dtype=dtype, **others)


def twice(matvec):
    return operator(matvec, rmatvec=matvec)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (operator(lambda x: x, complex), TypeError, r"blocks\[1\].*dtype complex128.*real"),
        (twice(lambda x: x * 1j), TypeError, r"blocks\[1\].*returned dtype complex128"),
        (twice(lambda x: x * np.nan), ValueError, r"blocks\[1\].*NaN or infinity"),
        (operator(lambda x: x[:1], shape=(1, 2)), TypeError, r"blocks\[1\].*lacks.*rmatvec"),
        (operator(lambda x: x, shape=(0, 2)), ValueError, r"blocks\[1\].*shape \(0, 2\)"),
    ],
)
def test_bad_operators(bad, error, message):
    with pytest.raises(error, match=message):
        operator_norm(bad, "blocks[1]")


def test_nothing_is_mutated():
    X = sparse_example(30, 8)
    csr = sparse.csr_array(X)
    parts = (X, csr.data, csr.indices, csr.indptr)
    before = [part.tobytes() for part in parts]
    for rows in (as_rows(X), as_rows(csr)):
        batch_eso(rows, 3)
        block_norms(rows, [0, 9, 30])
        block_norms(rows, [0, 9, 30], exact_limit=0)
        whole_norm(rows, np.ones(30))
    assert [part.tobytes() for part in parts] == before
    assert all(part.flags.writeable for part in parts)
