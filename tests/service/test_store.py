"""The store and the shuffler as a whole, over random histories: arrivals, repetitions, releases, restarts."""

import random
from collections import Counter

import pytest
from service.running import Setting
from service.test_promises import released_rows

from shuffledp.service.sealing import inner_size
from shuffledp.service.shuffler import Shuffler
from shuffledp.service.store import Report

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_in_whatever_order_every_report_counts_once(embedded: Setting, seed: int) -> None:
    histories(embedded, seed, steps=40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_long_histories_on_both_stores(setting: Setting, seed: int) -> None:
    histories(setting, seed, steps=200)


def histories(setting: Setting, seed: int, steps: int) -> None:
    rng = random.Random(seed)
    task = setting.create(spread=rng.choice([0, 30]))
    width = inner_size(task.report_bytes)
    shuffler, seen = setting.shuffler(), dict[bytes, bytes]()
    for _ in range(steps):
        what = rng.random()
        if what < 0.75:
            fresh = [
                Report(key(shuffler), rng.randbytes(16), rng.randbytes(width))
                for _ in range(rng.randrange(60))
            ]
            again = [
                Report(key(shuffler), name, seal)
                for name, seal in rng.sample(sorted(seen.items()), len(seen) // 9)
            ]
            group = [*fresh, *again, *fresh[:3]]
            rng.shuffle(group)
            told = shuffler.store.add(group)
            counted = Counter(one.id for one, new in zip(group, told, strict=True) if new)
            assert counted == Counter({one.id for one in fresh}), "each new one once, no old one"
            seen |= {one.id: one.sealed for one in fresh}
        elif what < 0.9:
            before = shuffler.pending("pets")
            assert (shuffler.release_if_ready("pets") is None) or before >= 300
        else:
            shuffler.close()
            shuffler = setting.shuffler()
            shuffler.reconcile()
    out = released_rows(setting)
    assert len(out) == len(set(out))
    assert set(out) <= set(seen.values())
    assert len(out) + shuffler.pending("pets") == len(seen)
    sizes = [batch.n for batch in shuffler.store.batches(key(shuffler))]
    assert all(size >= 300 for size in sizes)
    assert sum(sizes) == len(out)
    shuffler.close()


def key(shuffler: Shuffler) -> int:
    return shuffler.collection("pets").key
