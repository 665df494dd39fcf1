"""``python -m race`` with the folder above on the path; ``make bench`` does that."""

import os

from .pinned import PINNED

for variable in PINNED:  # before NumPy is imported here: the peers' own processes are told apart
    os.environ[variable] = "1"

from .cli import main  # noqa: E402

main()
