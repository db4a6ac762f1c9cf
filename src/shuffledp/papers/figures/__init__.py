"""The figures and tables of five papers, computed again: ``shuffledp reproduce``.

One module per paper, one function per figure or table. Each returns a ``Result``: panels of numbers and
four short texts (what the paper shows, what is computed here, the difference, and why). Everything that
holds is computed by the certified accountant; what a paper prints and does not hold comes from
``shuffledp.papers`` and is drawn and named as such.

    result.py    what a figure is: curves, maps, tables, texts
    registry.py  the list of all items
    runner.py    runs items and writes NAME.png, NAME.csv and NAME.md; skips what is finished
"""
