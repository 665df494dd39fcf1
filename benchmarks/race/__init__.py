"""The race: adaspdc's default against the solvers a user would pick instead.

``make bench`` runs it; README.md one folder up says what is measured and how.
"""
