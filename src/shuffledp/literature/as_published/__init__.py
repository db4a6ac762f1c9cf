"""What the papers state and is unsound, wrong or loose as printed: to recognise it, never to rely on it.

Each function is named ``..._as_published`` and says what is wrong with it; the tests show where it falls
below the truth. Only the comparison, which labels it, and the papers' own figures may import it (by test).
"""
