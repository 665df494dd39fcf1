"""Which data sets there are, where they live, and how a right copy is recognised."""

from __future__ import annotations

from dataclasses import dataclass

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_LIBSVM_PAGE = f"{_LIBSVM}.html"
_KDD_PAGE = "https://www.kdd.org/kdd-cup/view/kdd-cup-2004/Data"
_KDD_URLS = (
    "https://www.kdd.org/cupfiles/KDDCupData/2004/data_kddcup04.tar.gz",
    "https://kdd.org/cupfiles/KDDCupData/2004/data_kddcup04.tar.gz",
)
_UCI_URLS = (
    "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz",
    "https://ndownloader.figshare.com/files/5976039",
)


class DatasetError(OSError):
    """A data set cannot be had, or is not what it should be; the message says what to do."""


@dataclass(frozen=True)
class Dataset:
    """A public data set with two classes.

    Parameters
    ----------
    name : str
        What the command line and the lookup call it.
    title : str
        The name for people.
    home : str
        The page that describes it.
    urls : tuple of str
        Addresses of one and the same file, tried in this order.
    checksums : tuple of str
        SHA-256 sums of that file, any of which will do. Where none is published the tuple is empty:
        a first copy is then recognised by its shape, and its sum is kept for the next time.
    files : tuple of str
        Names under which a copy may lie in a folder, with or without ``.xz``, ``.bz2`` or ``.gz``.
        The first is that of the download.
    rows, columns : int
        The shape.
    entries : int, optional
        How many numbers are not zero, where that is known.
    positive : float
        The label of the class +1; every other label means -1.
    member : str, optional
        The file inside, where the download is an archive.
    label, first : int
        In a table of plain numbers, the column of the label and that of the first feature.
    """

    name: str
    title: str
    home: str
    urls: tuple[str, ...]
    checksums: tuple[str, ...]
    files: tuple[str, ...]
    rows: int
    columns: int
    entries: int | None = None
    positive: float = 1.0
    member: str | None = None
    label: int = 0
    first: int = 1


_ALL = (
    Dataset(
        name="w8a",
        title="w8a",
        home=_LIBSVM_PAGE,
        urls=(f"{_LIBSVM}/w8a",),
        checksums=(  # copies in circulation differ in a final newline
            "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2",
            "b464b4f6ce6a5d9e181ffc793e19a04751036273722312398ef7673705014902",
            "5745d77182ae41c3f489f05e6874b6490842556ec8a0184e70ff4670ca71d9bb",
        ),
        files=("w8a",),
        rows=49_749,
        columns=300,
        entries=579_586,
    ),
    Dataset(
        name="rcv1",
        title="rcv1.binary",
        home=_LIBSVM_PAGE,
        urls=(f"{_LIBSVM}/rcv1_train.binary.bz2",),
        checksums=(),
        files=("rcv1_train.binary.bz2", "rcv1_train.binary"),
        rows=20_242,
        columns=47_236,
        entries=1_498_952,
    ),
    Dataset(
        name="covtype",
        title="covtype.binary",
        home="https://archive.ics.uci.edu/dataset/31/covertype",
        urls=_UCI_URLS,
        checksums=("614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",),
        files=("covtype.data.gz", "covtype.data", "covtype.libsvm.binary.scale"),
        rows=581_012,
        columns=54,
        entries=6_940_438,
        positive=2.0,
        label=54,
        first=0,
    ),
    Dataset(
        name="url",
        title="url (combined)",
        home=_LIBSVM_PAGE,
        urls=(f"{_LIBSVM}/url_combined.bz2",),
        checksums=(),
        files=("url_combined.bz2", "url_combined"),
        rows=2_396_130,
        columns=3_231_961,
        entries=277_058_644,
    ),
    Dataset(
        name="quantum",
        title="KDD Cup 2004 quantum physics",
        home=_KDD_PAGE,
        urls=_KDD_URLS,
        checksums=(),
        files=("data_kddcup04.tar.gz", "phy_train.dat"),
        rows=50_000,
        columns=78,
        member="phy_train.dat",
        label=1,
        first=2,
    ),
    Dataset(
        name="protein",
        title="KDD Cup 2004 protein homology",
        home=_KDD_PAGE,
        urls=_KDD_URLS,
        checksums=(),
        files=("data_kddcup04.tar.gz", "bio_train.dat", "protein_bio_train"),
        rows=145_751,
        columns=74,
        entries=10_700_802,
        member="bio_train.dat",
        label=2,
        first=3,
    ),
)

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
"""The data sets by name."""


def find(dataset: str | Dataset) -> Dataset:
    """The data set of a name; a `Dataset` is returned as it is."""
    if isinstance(dataset, Dataset):
        return dataset
    if dataset not in DATASETS:
        raise ValueError(f"data set {dataset!r} is unknown; the sets are: {', '.join(DATASETS)}")
    return DATASETS[dataset]
