"""shuffledp: differential privacy in the shuffle model, certified.

>>> import shuffledp as sdp
>>> daily = sdp.Shuffled(sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), n=1_000_000)
>>> float((30 * daily).epsilon(delta=1e-8)) < 0.24
True

Names are loaded on first use: importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shuffledp.accounting.calibration import Calibration, calibrate
    from shuffledp.accounting.mechanism import Composition, KnownLoss, Mechanism, Shuffled
    from shuffledp.bound import Bound
    from shuffledp.collecting import protocol_from_dict
    from shuffledp.collecting.histogram import HistogramProtocol
    from shuffledp.collecting.ledger import Ledger
    from shuffledp.collecting.number import MeanProtocol, SumProtocol
    from shuffledp.collecting.statement import PrivacyStatement
    from shuffledp.errors import (
        BudgetExceededError,
        DamagedReportsError,
        DomainError,
        LogCorruptError,
        MixedReportsError,
        NoCertificateError,
        OutsideRangeError,
        OverspentWarning,
        ReportFileError,
        ShuffledpError,
        ShuffledpWarning,
        TooFewReportsError,
        TornLineWarning,
        UnknownVersionError,
        WeakerPrivacyWarning,
    )
    from shuffledp.facts import AmplificationLaw
    from shuffledp.literature.compare import Comparison, compare
    from shuffledp.randomizers.binary import BinaryRandomizedResponse
    from shuffledp.randomizers.frequency import FrequencyRandomizer
    from shuffledp.randomizers.gaussian import DiscreteGaussian
    from shuffledp.randomizers.hadamard import HadamardResponse
    from shuffledp.randomizers.hashing import OptimisedLocalHashing
    from shuffledp.randomizers.kary import KaryRandomizedResponse
    from shuffledp.randomizers.l1 import L1Randomizer
    from shuffledp.randomizers.laplace import DiscreteLaplace
    from shuffledp.randomizers.linf import LInfinityRandomizer
    from shuffledp.randomizers.local import LocalRandomizer
    from shuffledp.randomizers.matrix import FiniteRandomizer
    from shuffledp.randomizers.privunit import PrivUnit
    from shuffledp.randomizers.subset import SubsetSelection
    from shuffledp.randomizers.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding
    from shuffledp.randomizers.vectors import VectorRandomizer
    from shuffledp.shuffling.embedded import EmbeddedEngine
    from shuffledp.shuffling.engine import Engine, collect
    from shuffledp.shuffling.files import open_reports
    from shuffledp.shuffling.permutation import shuffle
    from shuffledp.shuffling.roles import analyze_file, randomize_file, shuffle_files, write_reports
    from shuffledp.shuffling.spark import SparkEngine

__version__ = "0.1.0"

_HOMES = {
    "AmplificationLaw": "facts",
    "BinaryRandomizedResponse": "randomizers.binary",
    "Bound": "bound",
    "BudgetExceededError": "errors",
    "Calibration": "accounting.calibration",
    "Comparison": "literature.compare",
    "Composition": "accounting.mechanism",
    "DamagedReportsError": "errors",
    "DiscreteGaussian": "randomizers.gaussian",
    "DiscreteLaplace": "randomizers.laplace",
    "DomainError": "errors",
    "EmbeddedEngine": "shuffling.embedded",
    "Engine": "shuffling.engine",
    "FiniteRandomizer": "randomizers.matrix",
    "FrequencyRandomizer": "randomizers.frequency",
    "HadamardResponse": "randomizers.hadamard",
    "HistogramProtocol": "collecting.histogram",
    "KaryRandomizedResponse": "randomizers.kary",
    "KnownLoss": "accounting.mechanism",
    "L1Randomizer": "randomizers.l1",
    "LInfinityRandomizer": "randomizers.linf",
    "Ledger": "collecting.ledger",
    "LocalRandomizer": "randomizers.local",
    "LogCorruptError": "errors",
    "MeanProtocol": "collecting.number",
    "Mechanism": "accounting.mechanism",
    "MixedReportsError": "errors",
    "NoCertificateError": "errors",
    "OptimisedLocalHashing": "randomizers.hashing",
    "OptimisedUnaryEncoding": "randomizers.unary",
    "OutsideRangeError": "errors",
    "OverspentWarning": "errors",
    "PrivUnit": "randomizers.privunit",
    "PrivacyStatement": "collecting.statement",
    "ReportFileError": "errors",
    "Shuffled": "accounting.mechanism",
    "ShuffledpError": "errors",
    "ShuffledpWarning": "errors",
    "SparkEngine": "shuffling.spark",
    "SubsetSelection": "randomizers.subset",
    "SumProtocol": "collecting.number",
    "SymmetricUnaryEncoding": "randomizers.unary",
    "TooFewReportsError": "errors",
    "TornLineWarning": "errors",
    "UnknownVersionError": "errors",
    "VectorRandomizer": "randomizers.vectors",
    "WeakerPrivacyWarning": "errors",
    "analyze_file": "shuffling.roles",
    "calibrate": "accounting.calibration",
    "collect": "shuffling.engine",
    "compare": "literature.compare",
    "open_reports": "shuffling.files",
    "protocol_from_dict": "collecting",
    "randomize_file": "shuffling.roles",
    "shuffle": "shuffling.permutation",
    "shuffle_files": "shuffling.roles",
    "write_reports": "shuffling.roles",
}

__all__ = [
    "AmplificationLaw",
    "BinaryRandomizedResponse",
    "Bound",
    "BudgetExceededError",
    "Calibration",
    "Comparison",
    "Composition",
    "DamagedReportsError",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DomainError",
    "EmbeddedEngine",
    "Engine",
    "FiniteRandomizer",
    "FrequencyRandomizer",
    "HadamardResponse",
    "HistogramProtocol",
    "KaryRandomizedResponse",
    "KnownLoss",
    "L1Randomizer",
    "LInfinityRandomizer",
    "Ledger",
    "LocalRandomizer",
    "LogCorruptError",
    "MeanProtocol",
    "Mechanism",
    "MixedReportsError",
    "NoCertificateError",
    "OptimisedLocalHashing",
    "OptimisedUnaryEncoding",
    "OutsideRangeError",
    "OverspentWarning",
    "PrivUnit",
    "PrivacyStatement",
    "ReportFileError",
    "Shuffled",
    "ShuffledpError",
    "ShuffledpWarning",
    "SparkEngine",
    "SubsetSelection",
    "SumProtocol",
    "SymmetricUnaryEncoding",
    "TooFewReportsError",
    "TornLineWarning",
    "UnknownVersionError",
    "VectorRandomizer",
    "WeakerPrivacyWarning",
    "analyze_file",
    "calibrate",
    "collect",
    "compare",
    "open_reports",
    "protocol_from_dict",
    "randomize_file",
    "shuffle",
    "shuffle_files",
    "write_reports",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shuffledp' has no attribute {name!r}")
    value = getattr(import_module(f"shuffledp.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
