"""Compiled inner loops: flat arrays in, flat arrays out, no Python objects.

Importing any module of this package imports numba; nothing outside it does so at import time.
"""
