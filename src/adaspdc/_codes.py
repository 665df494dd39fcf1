"""Integer codes by which the compiled kernels know the built-in losses.

One compilation serves every built-in loss because the loss travels as a number; see
``_kernels/losses.py`` for the code behind each of them.
"""

from typing import Final

SQUARED: Final = 0
SMOOTH_HINGE: Final = 1
LOGISTIC: Final = 2
SQUARED_HINGE: Final = 3
HUBER: Final = 4
SMOOTH_PINBALL: Final = 5
SMOOTH_EPSILON_INSENSITIVE: Final = 6
SQUARED_EPSILON_INSENSITIVE: Final = 7

# Codes from here on couple all coordinates of a block (the others act on each coordinate).
FIRST_VECTOR_CODE: Final = 16
MULTINOMIAL: Final = 16
SMOOTH_CRAMMER_SINGER: Final = 17
