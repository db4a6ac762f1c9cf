"""The papers checked: one folder for each, with what it prints and its figures computed again.

    as_published.py   formulas that are unsound, wrong or loose as printed: to recognise them, never to rely
                      on. Each is named ``..._as_published`` and says what is wrong with it; the tests show
                      where it falls below the truth
    _figures.py ...   functions marked ``@item``: ``figure_4`` is what ``shuffledp reproduce`` knows as
                      koskela-2023-figure-4; it gives curves, tables and the numbers of its page
    figure_4.md ...   the page: Markdown with places for those numbers (see ``_template``)

Only the comparison (``as_published``) and ``shuffledp reproduce`` import this package.
"""
