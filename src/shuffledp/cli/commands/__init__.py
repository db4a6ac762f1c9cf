"""One file per command, found by its name: ``commands/NAME.py`` defines the command ``NAME``.

These modules import click and nothing heavy: NumPy and the rest of shuffledp are imported when a
command runs, so that ``--help`` and shell completion stay fast.
"""
