"""Questions asked of what stands beside the kernel and rounds outward, too: facts, randomizers, mechanisms.

An answer is a row of ends, as in ``parts``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from certified.parts import UNEVEN, Ends, above, ends

import shuffledp as sdp
from shuffledp import noise
from shuffledp._randomness.noise_shares import NoiseShares
from shuffledp._randomness.uniform import WORD, log_rounded_up
from shuffledp._spans import of_grid, of_noise
from shuffledp._spans.density import Density
from shuffledp._spans.span import Span
from shuffledp.accounting import _allocation, _renyi, groups
from shuffledp.accounting._curves import clones
from shuffledp.accounting._curves.exact_binary import ExactBinaryProfile
from shuffledp.accounting._curves.far import log_far
from shuffledp.accounting._curves.mixture import MixtureProfile
from shuffledp.accounting._curves.profile import SupportingLines
from shuffledp.accounting._curves.subsampled import SubsampledProfile
from shuffledp.accounting.shuffled_batches import ShuffledBatches
from shuffledp.facts import Matrix, enclosed
from shuffledp.randomizers import _privunit_crowds, _privunit_directions


def lower(*bounds: object) -> Ends:
    return ends(*((bound, 0.0) for bound in bounds))


def mechanisms() -> dict[str, Callable[[], Ends]]:
    sure = clones.strong_clones(1.0, 30)
    one = sdp.Shuffled(sdp.KaryRandomizedResponse(3, epsilon0=1.0), n=5)
    vague = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0, delta0=1e-9), n=5)
    people: dict[str, Any] = {"n": 100, "dimension": 10, "farthest": 200, "variance": 72.0}
    vectors: Any = sdp.MixedVectors(**people, messages=9, modulus=2**20)
    seen: Any = sdp.MixedVectors(**people, messages=30, modulus=1000)
    batches, one_batch = (ShuffledBatches(noise_multiplier=1.0, batches=count) for count in (5, 1))
    drawn: Any = _allocation.allocation(1.0, 3)
    known = sdp.MixedSum(n=200, levels=100, scale=100.0, messages=10, modulus=2**24, noise_distance=0.3)
    mixed: Any = sdp.MixedVectors(**people, messages=9, modulus=2**20)
    vars(mixed)["mixing"] = 0.3
    two: Any = sdp.ShuffledGroups.of(sdp.KaryRandomizedResponse, {1.0: 3, 2.0: 3}, k=5)

    def cells() -> Ends:
        at = np.array([0.1])
        line = SupportingLines(at, np.array([0.4]), np.array([0.3]), np.array([0.3]))
        lines = _renyi._Lines(at, 1.0, line)
        before, after = (lines._half(1.0, np.array([step]), line.slope_low) for step in (-0.1, 0.1))
        chord = _renyi._log_chord(1.0, *(np.array([each]) for each in (0.1, 0.2, 0.5, 0.4)))
        return ends((before, 0.0), (after, 0.0), (0.0, np.exp(chord)))

    def integral() -> Ends:
        kinds = _renyi._Lines, _renyi._Chords
        return ends(tuple(math.exp(_renyi._integrals(kind, sure, [1.0], 0.5)[0]) for kind in kinds))

    def divergence() -> Ends:
        kinds = _renyi._Lines, _renyi._Chords
        return ends(tuple(_renyi._divergences(kind, (sure, sure), [2.0], 0.5)[0] for kind in kinds))

    def far() -> Ends:
        binary, at = ExactBinaryProfile(30, 1.0), np.array([0.5])
        kinds = sure, binary, SubsampledProfile(binary, 0.5), MixtureProfile((0.5, 0.5), (sure, binary))
        return above(*(float(np.exp(log_far(kind, at))[0]) for kind in kinds))

    def parts_of_blankets() -> Ends:
        pair = np.array([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2]])
        least = [np.array([0.3, 0.2, 0.1]), np.array([0.1, 0.07, 0.03])]
        return lower(*groups.shared(least, 0, (10, 20), pair, pair)[1][1:])

    def of_vectors() -> Ends:
        near, *shown = vectors.round.profile, seen.round.witnesses[0], vectors.round.witnesses[0]
        return ends((shown[1].shift, near.shift)) + above(near.off, *(-one.off for one in shown))

    def of_sums() -> Ends:
        whole: Any = known.round
        return above(whole.profile.off, -whole.witnesses[0].off, mixed.round.profile.off)

    return {
        "Renyi cells": cells,
        "far tails": far,
        "Renyi integral": integral,
        "Renyi": divergence,
        "Renyi of rounds": lambda: ends(tuple((2 * one).renyi(2.0, tolerance=0.3))),
        "trade-off": lambda: ends(tuple(one.trade_off([0.1, 0.5, 0.99], tolerance=0.1))),
        "left of one": lambda: ends(tuple(one.profile([0.5, 0.9]))),
        "local epsilons": lambda: above((3 * vague)._alone(1e-8)),
        "claim": lambda: above(one.delta(epsilon=0.3).source.keywords["delta"]),
        "parts of blankets": parts_of_blankets,
        "vectors": of_vectors,
        "sums": of_sums,
        "shares of groups": lambda: lower(*two._hidden(1, (3, 2))[1]),
        "batches at zero": lambda: ends(tuple(batches.delta(epsilon=0.0)), tuple(batches.delta(epsilon=3.0))),
        "random allocation": lambda: above(
            *(part.error for part in (*drawn.profile.profiles[:1], *drawn.witnesses)),
            _allocation._Normal.cut(np.array([-1.0, 0.5, 2.0]), 0.3).doubt,
        ),
        "one batch": lambda: ends(tuple(one_batch.delta(epsilon=0.5))),
        "local epsilon of a matrix": lambda: above(Matrix(UNEVEN).epsilon0),
        "enclosed": lambda: lower(enclosed(1.0).lower),
        "shares": lambda: above(NoiseShares(10.0, 100).distance, NoiseShares(10.0, 100).tail(20)),
        "ratio": lambda: above(log_rounded_up(Fraction(3, 2))),
    }


def on_the_line() -> dict[str, Callable[[], Ends]]:
    laplace = noise._Noise(lambda t: -t - math.log(2.0), lambda t: 0.5 * np.exp(-t), 1e-15, 1.0)
    at = np.array([0.5, 0.25, 0.0, -0.5, -1.0])
    cell = noise._Cell((0.3, 0.31), (0.2, 0.21), (0.25, 0.26), 1.2, 1.8)

    def cells() -> Ends:
        found = [*laplace.cells(at), *laplace.cells(at[:2])]
        return ends(*((each.r, each.s) for each in found), *(each.v for each in found))

    def law() -> Ends:
        own, other, clone = noise._spread(list(laplace.cells(at)))
        return above(math.fsum(own)) + lower(math.fsum(other), math.fsum(clone))

    def spanning() -> Ends:
        span = Span(np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), np.array([0.1, 0.0, 0.1]), np.full(3, 1e-3))
        own, other, clone, _ = span.sides
        first, second = np.array([0]), np.array([1])
        gap, less, _ = span.laws(first, second, first, 1.2)
        high, low, common = span.pooled
        most = own.sum(), clone.sum(), gap[gap > 0.0].sum(), high.sum(), span.excess, span.epsilon0
        return above(*map(float, most)) + lower(*(float(part.sum()) for part in (other, less, low, common)))

    def types() -> Ends:
        normal = Density(lambda t: -0.5 * t * t, np.vectorize(lambda t: 0.5 * math.erfc(t)), 1e-13, math.inf)
        rows, found = np.array([[0.4, 0.3, 0.3], [0.3, 0.3, 0.4]]), list[float]()
        for density, width in ((laplace, 3), (normal, 3)):
            edges = np.array([0.0, 1.0]) if density is laplace else np.array([-1.0, 0.25, 0.75, 2.0])
            table = of_noise._Table.of(density, edges, 4)
            weights = np.linspace([1.0, 0.0], [0.0, 1.0], 5)
            missed = of_noise._missed(table, rows[:, :width], weights)
            parts = table.doubt, of_noise._spreads(density, table), missed
            found += [table.lost, *(float(part.sum()) for part in parts)]
        grid = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
        pairs, masses = np.array([0, 2]), np.array([[0.7, 0.3], [0.3, 0.7]])
        found.append(float(of_grid._spreads(grid, pairs).sum()))
        found.append(float(of_grid._missed(masses, masses, np.eye(2)).sum()))
        return above(*found[1:])

    def excess() -> Ends:
        (most, least), (left, right) = cell.excess, cell.split()
        return ends((least, most), (right, left), (cell.attained, 0.0))

    return {
        "cells of noise": cells,
        "law of noise": law,
        "cell": excess,
        "rows that span": spanning,
        "types of noise": types,
        "masses of noise": lambda: ends(*laplace._masses(at[:2], at[:2] + 0.1), laplace._tail_mass(2.0)),
        "crowds of noise": lambda: above(noise._crowds(laplace, at)[0].error),
    }


def randomizers() -> dict[str, Callable[[], Ends]]:
    ramp, unit = sdp.RampUnit(dimension=4, epsilon0=2.0), sdp.PrivUnit(300, epsilon0=2.0)
    shape, drawn = ramp.shape, sdp.PrivUnit(600, epsilon0=2.0)
    leaned = sdp.RampUnit(dimension=4, epsilon0=2.0)
    vars(drawn)["weight"] = vars(leaned)["weight"] = 10 << 60

    def normal() -> Ends:
        _, _, _, off = shape.lifted(shape.grid.height)
        return above(shape.grid.doubt, off, shape.means[2]) + ends(shape.masses, ramp._mean_rise)

    def leaning() -> Ends:
        law = leaned.law()
        half = law.own[: len(law.own) // 2]
        found = half, ramp.twist, ramp.margin, leaned.realised_epsilon0, leaned.total_variation
        return above(*found) + lower(law.other, law.clone, ramp.weight / WORD)

    def cuts() -> Ends:
        found = _privunit_crowds._cuts(300, unit.cap.threshold, Fraction(unit.cap.small), 1e-9)
        return above(*(float(row[0]) for row in found))

    return {
        "normal heights": normal,
        "leaning": leaning,
        "leaning, seen": lambda: above(*(law.error for law in (*leaned._seen, leaned._in_a_plane))),
        "cuts of caps": cuts,
        "directions": lambda: above(
            _privunit_directions.height_error(300),
            _privunit_directions.twist(600),
            _privunit_directions.plane_height(600),
        ),
        "caps": lambda: ends(drawn._densities) + lower(unit.weight / WORD),
        "caps in a plane": lambda: above(unit._in_a_plane(2.0).error),
        "apart": lambda: above(
            sdp.SymmetricUnaryEncoding(4, epsilon0=1.5).total_variation,
            sdp.DiscreteLaplace(epsilon0=1.0, levels=4).total_variation,
            sdp.KaryRandomizedResponse(5, gamma=0.3).epsilon0,
        ),
        "members": lambda: lower(*(law.own[0] for law in sdp.LocalRandomizer(epsilon0=1.0)._members())),
    }


def questions() -> dict[str, Callable[[], Ends]]:
    return {
        f"beside: {name}": ask for name, ask in {**mechanisms(), **on_the_line(), **randomizers()}.items()
    }
