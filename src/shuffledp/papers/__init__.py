"""The papers checked: one folder for each, its figures and tables computed again.

    _figures.py ...   functions marked ``@item``: ``figure_4`` is what ``shuffledp reproduce`` knows as
                      koskela-2023-figure-4; it gives curves, tables and the numbers of its page
    figure_4.md ...   the page: Markdown with places for those numbers (see ``_template``)

What a paper states and is wrong stands in ``literature.as_published``. Only ``shuffledp reproduce`` imports
this package.
"""
