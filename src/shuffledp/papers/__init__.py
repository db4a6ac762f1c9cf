"""Formulas as the papers print them that are unsound or wrong: to recognise them, never to rely on.

Each function is named ``..._as_published`` and says what is wrong with it; the tests show where it
falls below the truth. Only the comparison and ``shuffledp reproduce`` import this package.
"""
