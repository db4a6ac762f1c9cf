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
    from shuffledp.accounting.bounds.closed_forms import OutsideRangeError
    from shuffledp.accounting.calibration import Calibration, calibrate
    from shuffledp.accounting.mechanism import Composition, KnownLoss, Mechanism, Shuffled
    from shuffledp.bound import Bound
    from shuffledp.comparison.compare import compare
    from shuffledp.comparison.table import Comparison
    from shuffledp.numerics.frequencies import NoCertificateError
    from shuffledp.protocols.chained_log import LogCorruptError, TornLineWarning
    from shuffledp.protocols.domain import DomainError
    from shuffledp.protocols.histogram import HistogramProtocol
    from shuffledp.protocols.ledger import BudgetExceededError, Ledger, OverspentWarning
    from shuffledp.protocols.numbers import MeanProtocol, SumProtocol
    from shuffledp.protocols.registry import protocol_from_dict
    from shuffledp.protocols.statement import PrivacyStatement, WeakerPrivacyWarning
    from shuffledp.randomizers.binary import BinaryRandomizedResponse
    from shuffledp.randomizers.finite import FiniteRandomizer
    from shuffledp.randomizers.frequency import FrequencyRandomizer
    from shuffledp.randomizers.gaussian import DiscreteGaussian
    from shuffledp.randomizers.hadamard import HadamardResponse
    from shuffledp.randomizers.hashing import OptimisedLocalHashing
    from shuffledp.randomizers.kary import KaryRandomizedResponse
    from shuffledp.randomizers.l1 import L1Randomizer
    from shuffledp.randomizers.laplace import DiscreteLaplace
    from shuffledp.randomizers.law import AmplificationLaw
    from shuffledp.randomizers.linf import LInfinityRandomizer
    from shuffledp.randomizers.local import LocalRandomizer
    from shuffledp.randomizers.privunit import PrivUnit
    from shuffledp.randomizers.subset_selection import SubsetSelection
    from shuffledp.randomizers.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding
    from shuffledp.randomizers.vectors import VectorRandomizer
    from shuffledp.shuffling.embedded import EmbeddedEngine
    from shuffledp.shuffling.engine import Engine, collect
    from shuffledp.shuffling.files import open_reports
    from shuffledp.shuffling.header import ReportFileError
    from shuffledp.shuffling.permutation import TooFewReportsError, shuffle
    from shuffledp.shuffling.roles import analyze_file, randomize_file, shuffle_files, write_reports
    from shuffledp.shuffling.spark import SparkEngine

__version__ = "0.1.0"

_HOMES = {
    "AmplificationLaw": "randomizers.law",
    "BinaryRandomizedResponse": "randomizers.binary",
    "Bound": "bound",
    "BudgetExceededError": "protocols.ledger",
    "Calibration": "accounting.calibration",
    "Comparison": "comparison.table",
    "Composition": "accounting.mechanism",
    "DiscreteGaussian": "randomizers.gaussian",
    "DiscreteLaplace": "randomizers.laplace",
    "DomainError": "protocols.domain",
    "EmbeddedEngine": "shuffling.embedded",
    "Engine": "shuffling.engine",
    "FiniteRandomizer": "randomizers.finite",
    "FrequencyRandomizer": "randomizers.frequency",
    "HadamardResponse": "randomizers.hadamard",
    "HistogramProtocol": "protocols.histogram",
    "KaryRandomizedResponse": "randomizers.kary",
    "KnownLoss": "accounting.mechanism",
    "L1Randomizer": "randomizers.l1",
    "LInfinityRandomizer": "randomizers.linf",
    "Ledger": "protocols.ledger",
    "LocalRandomizer": "randomizers.local",
    "LogCorruptError": "protocols.chained_log",
    "MeanProtocol": "protocols.numbers",
    "Mechanism": "accounting.mechanism",
    "NoCertificateError": "numerics.frequencies",
    "OptimisedLocalHashing": "randomizers.hashing",
    "OptimisedUnaryEncoding": "randomizers.unary",
    "OutsideRangeError": "accounting.bounds.closed_forms",
    "OverspentWarning": "protocols.ledger",
    "PrivUnit": "randomizers.privunit",
    "PrivacyStatement": "protocols.statement",
    "ReportFileError": "shuffling.header",
    "Shuffled": "accounting.mechanism",
    "SparkEngine": "shuffling.spark",
    "SubsetSelection": "randomizers.subset_selection",
    "SumProtocol": "protocols.numbers",
    "SymmetricUnaryEncoding": "randomizers.unary",
    "TooFewReportsError": "shuffling.permutation",
    "TornLineWarning": "protocols.chained_log",
    "VectorRandomizer": "randomizers.vectors",
    "WeakerPrivacyWarning": "protocols.statement",
    "analyze_file": "shuffling.roles",
    "calibrate": "accounting.calibration",
    "collect": "shuffling.engine",
    "compare": "comparison.compare",
    "open_reports": "shuffling.files",
    "protocol_from_dict": "protocols.registry",
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
    "NoCertificateError",
    "OptimisedLocalHashing",
    "OptimisedUnaryEncoding",
    "OutsideRangeError",
    "OverspentWarning",
    "PrivUnit",
    "PrivacyStatement",
    "ReportFileError",
    "Shuffled",
    "SparkEngine",
    "SubsetSelection",
    "SumProtocol",
    "SymmetricUnaryEncoding",
    "TooFewReportsError",
    "TornLineWarning",
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
