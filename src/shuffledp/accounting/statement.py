"""What may be said about a planned collection: in plain words, in formal ones, for machines, for a registry.

>>> import shuffledp as sdp
>>> yearly = 12 * sdp.Shuffled(sdp.KaryRandomizedResponse(k=5, epsilon0=3.0), n=20_000)
>>> statement = yearly.statement(delta=1e-7)
>>> print(statement.meaning)
Had one person given other answers in every round, nothing that can be seen would be more than 1.85 times as \
likely, plus at most 1e-7 (1 in 10,000,000).
"""

from __future__ import annotations

import datetime
import html
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shuffledp import __version__
from shuffledp._certified.rounding import CALL, capped, up
from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp.accounting._analyses import BY_NAME, covers_leaks
from shuffledp.accounting._curves.subsampled import subsampled_epsilon
from shuffledp.accounting.mechanism import Composition, Mechanism, OneRound, Shuffled
from shuffledp.bound import Bound
from shuffledp.errors import NoCertificateError
from shuffledp.verifying.verification import Verification

NEIGHBOURS = (
    "substitution: all data of one user, who takes part in both datasets; the number of reports is public"
)
ADVERSARY = (
    "sees the shuffled reports of every round, knows the data of all other users, and may choose later "
    "questions in the light of earlier results; does not learn who sent which report"
)
_MUCH_DELTA = 0.1  # of one over the number of people
_FAR_APART = 1.5  # upper over lower
_FEWER, _STEEP = 0.99, 1.05  # with so many of the reports, epsilon is so much larger
_FILL_IN = "(fill in)"


@dataclass(frozen=True)
class PlannedStatement:
    """The certified guarantee of rounds that are planned, and what it rests on (``Mechanism.statement``).

    ``plain`` is for a policy or a consent form, ``formal`` for a reviewer, ``to_json`` for machines and
    ``registry`` for the OpenDP Deployments Registry. ``warnings`` are sentences to read before signing."""

    mechanism: Mechanism
    bound: Bound
    delta: float
    analysis: str
    warnings: tuple[str, ...] = ()
    verification: Verification | None = None
    """That the number was derived a second time (``verified``)."""

    def verified(self) -> PlannedStatement:
        """The same statement, which says that its number was verified; refused where it could not be."""
        found = self.bound.verify()
        if not found:
            raise NoCertificateError(str(found))
        return replace(self, verification=found)

    @property
    def epsilon(self) -> str:
        """The number to publish, rounded up."""
        return rounded_up(self.bound.upper)

    @property
    def meaning(self) -> str:
        """What (epsilon, delta) says: the definition, in a sentence."""
        other = "another answer" if self._rounds == 1 else "other answers in every round"
        spare = f", plus at most {_chance(self.delta)}" if self.delta else ""
        return (
            f"Had one person given {other}, nothing that can be seen would be more than "
            f"{factor(self.bound.upper)} times as likely{spare}."
        )

    @property
    def assumption(self) -> str:
        """What the number rests on."""
        honest = "; ".join(
            f"at least {_crowd(part)}" for part, _ in self._parts if isinstance(part, Shuffled)
        )
        counted = f"{honest}, randomized as prescribed" if honest else "the rounds are as described"
        return f"This rests on {counted}, and on a shuffler that reveals nothing but the mixed reports."

    @property
    def plain(self) -> str:
        """For people who take part."""
        rounds = "" if self._rounds == 1 else f", in each of {self._rounds:,} rounds"
        alone = max((f for part, _ in self._parts if (f := _alone(part)) is not None), default=None)
        fails = (
            ""
            if alone is None
            else (
                " If the shuffler failed, each report would still be randomized: no report would be more "
                f"than {factor(alone)} times as likely for one answer as for another."
            )
        )
        return (
            f"What you answer is randomized on your own device before it is sent{rounds}. A shuffler then "
            "mixes the reports of all people and forgets who sent which. "
            f"{self.meaning} {self.assumption}{fails}"
        )

    @property
    def formal(self) -> str:
        """For a reviewer."""
        delta = written(self.delta)
        return (
            f"({self.epsilon}, {delta})-differential privacy in the shuffle model: for all neighbouring "
            f"datasets D, D' and all events E, Pr[E | D] <= e^{self.epsilon} Pr[E | D'] + {delta}. "
            f"Neighbours: {NEIGHBOURS}. The adversary {ADVERSARY}. Rounds, adaptively composed: "
            f"{'; '.join(self._described)}. {self.assumption} {self._certificate}. "
            f"Certified with shuffledp {__version__}."
        )

    @property
    def text(self) -> str:
        """All of it: plain words, formal words, warnings."""
        return "\n\n".join([self.plain, self.formal, *(f"WARNING: {text}" for text in self.warnings)])

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        head = f"<p><b>({self.epsilon}, {written(self.delta)})-differential privacy</b></p>"
        warned = "".join(f"<p><b>Warning:</b> {html.escape(text)}</p>" for text in self.warnings)
        return f"<div>{head}<p>{html.escape(self.plain)}</p><p>{html.escape(self.formal)}</p>{warned}</div>"

    def to_dict(self) -> dict[str, Any]:
        """Numbers in full and the texts, ready for JSON."""
        return {
            "epsilon": self.bound.upper,
            "epsilon_lower": self.bound.lower,
            "delta": self.delta,
            "analysis": self.analysis,
            "rounds": [{"round": repr(part), "times": count} for part, count in self._parts],
            "neighbours": NEIGHBOURS,
            "adversary": ADVERSARY,
            "assumption": self.assumption,
            "plain": self.plain,
            "formal": self.formal,
            "warnings": list(self.warnings),
            "verified": None if self.verification is None else str(self.verification),
            "version": __version__,
        }

    def to_json(self) -> str:
        """``to_dict`` as text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def registry(
        self,
        *,
        name: str = _FILL_IN,
        curators: tuple[str, ...] = (_FILL_IN,),
        authors: tuple[str, ...] = (_FILL_IN,),
        description: str = _FILL_IN,
        intended_use: str = _FILL_IN,
        region: str = _FILL_IN,
        product: str = "Summary statistics",
        date: datetime.date | None = None,
    ) -> str:
        """A draft for the OpenDP Deployments Registry, in YAML; what we cannot know is to be filled in.

        ``date`` (of publication) is today's where none is given."""
        many = self._rounds > 1
        day = (date or datetime.date.today()).isoformat()
        slug = "".join(c if c.isalnum() else "_" for c in name.lower()).strip("_")
        record = {
            "url_slug": f"{slug}_{day[:4]}",
            "status": "Draft",
            "tier": 3,
            "deployment": {
                "basic": {
                    "name": name,
                    "data_curators": list(curators),
                    "description": description,
                    "intended_use": intended_use,
                    "data_product_type": product,
                    "data_product_region": region,
                    "publication_date": day,
                },
                "dp_variant": {
                    "variant_name": "Approximate DP" if self.delta else "Pure DP",
                    "unprotected_quantities": "The number of reports in each round",
                },
                "privacy_loss": {
                    "privacy_unit": f"User: all answers of one person in {_times(self._rounds)}",
                    "privacy_unit_details": f"Neighbouring datasets: {NEIGHBOURS}",
                    "privacy_parameters": {"epsilon": float(self.epsilon), "delta": self.delta},
                    "privacy_parameters_details": self._certificate,
                },
                "deployment_model": {
                    "model_name": "Shuffle",
                    "model_name_details": "; ".join(self._described),
                    "actors": (
                        "Devices: randomize each report. Shuffler: trusted to mix the reports and to reveal "
                        f"nothing else. Analyst and everybody else: {ADVERSARY}. {self.assumption}"
                    ),
                    "release_type": "Many releases" if many else "One release",
                    "data_source_type": "Dynamic" if many else "Static",
                    "access_type": "Non-interactive",
                },
                "accounting": {
                    "composition": f"Adaptive composition of {_times(self._rounds)}, certified numerically"
                },
                "implementation": {"mechanisms": f"{'; '.join(self._described)}; shuffledp {__version__}"},
                "administrative": {"registry_authors": list(authors)},
            },
        }
        return "\n".join(_yaml(record)) + "\n"

    @property
    def _parts(self) -> list[tuple[OneRound, int]]:
        return [(part, count) for part, count in self.mechanism.parts if count]

    @property
    def _rounds(self) -> int:
        return sum(count for _, count in self._parts)

    @property
    def _described(self) -> list[str]:
        return [f"{_times(count)} of {_described(part)}" for part, count in self._parts]

    @property
    def _certificate(self) -> str:
        low = rounded_down(self.bound.lower)
        covered = (
            ""
            if leaks_are_covered(self.mechanism, self.analysis)
            else "; no leaked coin of anybody is covered"
        )
        return (
            f"The smallest epsilon at this delta lies in [{low}, {self.epsilon}] (analysis: {self.analysis}"
            f"{covered})"
            f"{'' if self.verification is None else f'; {self.verification}'}"
        )


def stated(mechanism: Mechanism, delta: float, tolerance: float | None) -> PlannedStatement:
    """The statement, with all warnings."""
    bound = mechanism.epsilon(delta=delta, tolerance=tolerance)
    if math.isinf(bound.upper):
        raise ValueError(
            f"{mechanism!r} has no finite epsilon at delta = {delta!r}: there is nothing to state"
        )
    found = cautions(mechanism, bound, delta, steep=True)
    return PlannedStatement(mechanism, bound, float(delta), analysis_used(mechanism, bound.upper), found)


def analysis_used(mechanism: Mechanism, epsilon: float) -> str:
    """The analysis that is tightest for a round's share of a total ``epsilon``; several rounds: of each kind.

    The analyses that apply form a chain, each below the next for every epsilon: the share matters
    only where two of them agree, as all do from epsilon0 on, where delta is zero. In a sum of losses all of a
    curve counts: those that cover no leaked coin are named if they may be the smaller one anywhere."""
    parts = [(part, count) for part, count in mechanism.parts if isinstance(part, Shuffled) and count]
    rounds = sum(count for _, count in parts)
    names = [_of_round(part, epsilon / rounds) for part, _ in parts]
    if rounds > 1:
        names += [name for part, _ in parts for name in part.rival_analyses if not covers_leaks(name)]
    return ", ".join(dict.fromkeys(names)) or "given losses"


def leaks_are_covered(mechanism: Mechanism, analysis: str) -> bool:
    """Whether all analyses that ``analysis_used`` names hold if it leaks which others answered at random.

    With a delta0 none does (docs/proofs/approximate-local.md)."""
    leaking = any(count and part.delta0 > 0.0 for part, count in mechanism.parts)
    return not leaking and all(covers_leaks(name) for name in analysis.split(", ") if name in BY_NAME)


def _of_round(part: Shuffled, share: float) -> str:
    inside = subsampled_epsilon(0.5 * part.facts.epsilon0.upper, part.fraction)
    try:
        return part.analysis_at(capped(min(share, inside)))
    except NoCertificateError:
        return part.analysis


def cautions(mechanism: Mechanism, bound: Bound, delta: float, *, steep: bool = False) -> tuple[str, ...]:
    """What somebody who signs should know: a large delta, ends far apart, a cliff nearby.

    A cliff is looked for where the ends are far apart, or if ``steep`` (one more evaluation)."""
    shuffled = [part for part, count in mechanism.parts if isinstance(part, Shuffled) and count]
    people = max((part.population or part.n for part in shuffled), default=0)
    found = []
    if delta * people > _MUCH_DELTA:
        found.append(
            f"delta = {written(delta)} is not far below 1/{people:,}, one over the number of people: "
            "(epsilon, delta) then allows that somebody's data are published. Choose delta below "
            f"{rounded_down(_MUCH_DELTA / people, 2)}."
            if delta < 1.0
            else "delta = 1 allows everything: the guarantee says nothing."
        )
    apart = bound.lower > 0.0 and bound.upper > _FAR_APART * bound.lower
    if apart:
        found.append(
            f"The ends are far apart: the smallest epsilon lies between {rounded_down(bound.lower)} and "
            f"{rounded_up(bound.upper)}, and it is not known where."
        )
    if math.isinf(bound.lower):
        found.append(
            f"No finite epsilon holds at delta = {written(delta)}: some report is possible for one value and "
            "impossible for another (a zero among the probabilities), and more likely than delta."
        )
    if (
        (apart or steep)
        and shuffled
        and (worse := _with_fewer(mechanism, delta)) > _STEEP * bound.upper > 0.0
    ):
        found.append(
            f"Steep here: with 1 in 100 reports fewer, epsilon is {rounded_up(worse)} instead of "
            f"{rounded_up(bound.upper)}. Leave a margin."
        )
    return tuple(found)


def _with_fewer(mechanism: Mechanism, delta: float) -> float:
    """epsilon with 1 in 100 reports fewer, in cohorts of the same share; 0 where that cannot be told."""

    def fewer(part: OneRound) -> OneRound:
        if not isinstance(part, Shuffled):
            return part
        n = math.floor(_FEWER * part.n)
        population = None if part.population is None else max(n, math.floor(_FEWER * part.population))
        return replace(part, n=max(n, 1), population=population)

    try:
        return Composition(tuple((fewer(part), count) for part, count in mechanism.parts)).upper_epsilon(
            delta=delta, tolerance=0.01
        )
    except NoCertificateError:
        return 0.0


def factor(epsilon: float) -> str:
    """e^epsilon, rounded up, as people read it.

    >>> factor(0.6132), factor(3.0), factor(36.0)
    ('1.85', '20.1', 'e^36')
    """
    if epsilon > 12.0:
        return f"e^{rounded_up(epsilon, 3)}"
    return rounded_up(up(math.exp(epsilon), operations=CALL), 3 if epsilon > 0.1 else 4)


def _chance(delta: float) -> str:
    """As it is written, and as one in so many.

    >>> _chance(1e-7), _chance(0.3)
    ('1e-7 (1 in 10,000,000)', '0.3')
    """
    times = 1.0 / delta
    whole = abs(times - round(times)) <= 1e-9 * times and times < 1e15
    return f"{written(delta)} (1 in {round(times):,})" if whole else written(delta)


def _times(rounds: int) -> str:
    return "1 round" if rounds == 1 else f"{rounds:,} rounds"


def _crowd(part: Shuffled) -> str:
    """The honest reports of a round, or the honest people."""
    if part.rate is not None:
        return f"{part.honest:,} honest people, who take part with probability {written(part.rate)} each"
    if part.population is None:
        return f"{part.honest:,} honest reports in every shuffle"
    people = f"a fresh random cohort of {part.population:,} people"
    if part.honest < part.population:
        return f"{part.honest:,} honest people; {part.n:,} reports in every shuffle, {people}"
    return f"{part.n:,} honest reports in every shuffle, {people}"


def _alone(part: OneRound) -> float | None:
    """The local epsilon of one report; None where it is not known, or not pure."""
    known = (
        isinstance(part, Shuffled) and part.facts.delta0 == 0.0 and math.isfinite(part.facts.epsilon0.upper)
    )
    return part.facts.epsilon0.upper if isinstance(part, Shuffled) and known else None


def _described(part: OneRound) -> str:
    if not isinstance(part, Shuffled):
        return repr(part)
    alone = f"({rounded_up(part.facts.epsilon0.upper)}, {rounded_up(part.facts.delta0)})"
    local = alone if part.facts.delta0 else rounded_up(part.facts.epsilon0.upper)
    return f"{part.randomizer!r} among {_crowd(part)}; one report alone is {local}-differentially private"


def _yaml(value: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Block mappings and lists of scalars. A text is written as in JSON, which is YAML too."""
    for name, entry in value.items():
        if isinstance(entry, Mapping):
            yield f"{indent}{name}:"
            yield from _yaml(entry, indent + "  ")
        elif isinstance(entry, list):
            yield f"{indent}{name}:"
            yield from (f"{indent}- {json.dumps(each, ensure_ascii=False)}" for each in entry)
        else:
            yield f"{indent}{name}: {_scalar(entry)}"


def _scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "." not in text:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa}.0e{exponent}" if exponent else text  # YAML 1.1 reads 1e-07 as a word
    return text
