"""Sources of random words."""

import builtins
import os
from typing import Any

import numpy as np
import pytest

from shuffledp._randomness.words import GeneratorWords, KeyStreamWords, SystemWords, source

pytestmark = pytest.mark.quick


@pytest.fixture
def no_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package `cryptography` cannot be imported."""
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "cryptography":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


def secure_sources() -> tuple[KeyStreamWords, SystemWords]:
    pytest.importorskip("cryptography")
    return KeyStreamWords(), SystemWords()


def test_the_key_stream_is_the_default_where_cryptography_is_installed() -> None:
    pytest.importorskip("cryptography")
    assert isinstance(source(), KeyStreamWords)


def test_without_cryptography_the_operating_system_gives_the_words(no_cryptography: None) -> None:
    words = source()
    assert isinstance(words, SystemWords)
    assert len(set(words.draw(1000).tolist())) == 1000


def test_no_word_comes_twice_within_a_source_or_from_another_one() -> None:
    # 4 x 60,000 words out of 2^64: a repetition by chance has probability 2e-9.
    seen = [s.draw(count) for s in secure_sources() for count in (59_000, 1000)]
    seen += [s.draw(60_000) for s in secure_sources()]
    assert np.unique(np.concatenate(seen)).size == 240_000


def test_every_bit_of_secure_words_is_set_half_of_the_time() -> None:
    # 128 bits, each within 7 standard deviations: a false alarm has probability 4e-10.
    for words in secure_sources():
        drawn = words.draw(50_000)
        ones = np.array([(drawn >> np.uint64(bit) & np.uint64(1)).sum() for bit in range(64)])
        assert np.abs(ones - 25_000.0).max() < 7 * np.sqrt(12_500)


def test_draws_of_any_size_have_that_size_and_the_type_of_words() -> None:
    for words in (*secure_sources(), source(np.random.default_rng(1))):
        for count in (0, 1, 2, 3, 32_767, 32_768, 32_769, 100_001):
            drawn = words.draw(count)
            assert (drawn.shape, drawn.dtype) == ((count,), np.dtype(np.uint64))


def test_no_part_of_a_large_draw_is_left_empty() -> None:
    # Eight zero words by chance: 100,000 / 2^64 each at most.
    for words in secure_sources():
        assert np.count_nonzero(words.draw(100_000) == 0) == 0


@pytest.mark.parametrize("kind", [KeyStreamWords, SystemWords])
def test_a_fork_does_not_repeat_the_stream_of_its_parent(kind: Any) -> None:
    pytest.importorskip("cryptography")
    words = kind()
    words.draw(10)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # only write and leave: nothing of the test run belongs to the child
        os.write(write, words.draw(4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    of_child = np.frombuffer(os.read(read, 32), dtype=np.uint64)
    os.close(read)
    os.close(write)
    of_parent = words.draw(100)
    assert of_child.size == 4
    assert not set(of_child.tolist()) & set(of_parent.tolist())


def test_a_generator_gives_the_same_words_again_in_pieces_of_any_size() -> None:
    whole = source(np.random.default_rng(3)).draw(10)
    words = source(np.random.default_rng(3))
    assert isinstance(words, GeneratorWords)
    assert np.concatenate([words.draw(4), words.draw(6)]).tolist() == whole.tolist()


def test_words_of_a_generator_reach_both_halves_of_the_range() -> None:
    drawn = source(np.random.default_rng(4)).draw(1000)
    assert drawn.min() < 2**60
    assert drawn.max() > 2**64 - 2**60


@pytest.mark.parametrize("wrong", [7, "seed", np.random.RandomState(1), np.random.PCG64(1), True])
def test_anything_but_none_or_a_generator_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"rng must be None .* or a numpy\.random\.Generator"):
        source(wrong)
