"""The public data sets of the paper's experiments: found, fetched, checked and read.

A set is looked for in the folder that ``ADASPDC_DATA`` names, then in the user's cache, and is
fetched from its public home otherwise.

>>> from adaspdc import datasets
>>> sorted(datasets.DATASETS)
['covtype', 'protein', 'quantum', 'rcv1', 'url', 'w8a']
"""

from ._fetch import fetch, load, locate, sha256
from ._read import Table, read
from ._registry import DATASETS, Dataset, DatasetError, find

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetError",
    "Table",
    "fetch",
    "find",
    "load",
    "locate",
    "read",
    "sha256",
]
