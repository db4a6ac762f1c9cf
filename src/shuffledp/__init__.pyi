"""The public names of shuffledp: the one list. ``__init__.py`` loads them from here on first use."""

from shuffledp import client as client
from shuffledp.accounting.blanket_counts import BlanketCounts as BlanketCounts
from shuffledp.accounting.calibration import Calibration as Calibration, calibrate as calibrate
from shuffledp.accounting.cohort import Cohort as Cohort
from shuffledp.accounting.groups import ShuffledGroups as ShuffledGroups
from shuffledp.accounting.mechanism import (
    Composition as Composition,
    KnownLoss as KnownLoss,
    Mechanism as Mechanism,
    Shuffled as Shuffled,
    epsilon_of_each as epsilon_of_each,
)
from shuffledp.accounting.mixed_sum import MixedSum as MixedSum
from shuffledp.accounting.mixed_vectors import MixedVectors as MixedVectors
from shuffledp.accounting.shuffled_batches import ShuffledBatches as ShuffledBatches
from shuffledp.accounting.statement import PlannedStatement as PlannedStatement
from shuffledp.auditing import Audit as Audit, audit as audit
from shuffledp.bound import Bound as Bound
from shuffledp.collecting import protocol_from_dict as protocol_from_dict
from shuffledp.collecting.histogram import HistogramProtocol as HistogramProtocol
from shuffledp.collecting.ledger import Ledger as Ledger
from shuffledp.collecting.number import MeanProtocol as MeanProtocol, SumProtocol as SumProtocol
from shuffledp.collecting.ordered import QuantileProtocol as QuantileProtocol, RangeProtocol as RangeProtocol
from shuffledp.collecting.plan import (
    check_plan as check_plan,
    load_plan as load_plan,
    short_fingerprint as short_fingerprint,
    sign_plan as sign_plan,
    signing_keys as signing_keys,
)
from shuffledp.collecting.statement import PrivacyStatement as PrivacyStatement
from shuffledp.collecting.strings import PrefixProtocol as PrefixProtocol, heavy_hitters as heavy_hitters
from shuffledp.collecting.table import TableProtocol as TableProtocol
from shuffledp.collecting.vector import VectorMeanProtocol as VectorMeanProtocol
from shuffledp.errors import (
    BudgetExceededError as BudgetExceededError,
    CoarserBoundWarning as CoarserBoundWarning,
    DamagedReportsError as DamagedReportsError,
    DomainError as DomainError,
    LogCorruptError as LogCorruptError,
    LongWorkWarning as LongWorkWarning,
    LostJournalError as LostJournalError,
    MixedReportsError as MixedReportsError,
    NoCertificateError as NoCertificateError,
    OutsideRangeError as OutsideRangeError,
    OverspentWarning as OverspentWarning,
    PlanError as PlanError,
    QuestionError as QuestionError,
    ReportFileError as ReportFileError,
    SealError as SealError,
    ShuffledpError as ShuffledpError,
    ShuffledpWarning as ShuffledpWarning,
    SubmitError as SubmitError,
    TooFewReportsError as TooFewReportsError,
    TornLineWarning as TornLineWarning,
    UnknownKeyError as UnknownKeyError,
    UnknownVersionError as UnknownVersionError,
    WeakerPrivacyWarning as WeakerPrivacyWarning,
)
from shuffledp.facts import (
    AmplificationLaw as AmplificationLaw,
    Facts as Facts,
    Matrix as Matrix,
    Randomizer as Randomizer,
    Response as Response,
)
from shuffledp.literature.compare import Comparison as Comparison, compare as compare
from shuffledp.noise import facts_of_noise as facts_of_noise
from shuffledp.randomizers.blanket_messages import BlanketMessages as BlanketMessages
from shuffledp.randomizers.frequency import (
    FrequencyOracle as FrequencyOracle,
    FrequencyRandomizer as FrequencyRandomizer,
)
from shuffledp.randomizers.gaussian import DiscreteGaussian as DiscreteGaussian
from shuffledp.randomizers.hadamard import HadamardResponse as HadamardResponse
from shuffledp.randomizers.hashed_messages import HashedMessages as HashedMessages
from shuffledp.randomizers.hashing import OptimisedLocalHashing as OptimisedLocalHashing
from shuffledp.randomizers.kary import (
    BinaryRandomizedResponse as BinaryRandomizedResponse,
    KaryRandomizedResponse as KaryRandomizedResponse,
)
from shuffledp.randomizers.laplace import DiscreteLaplace as DiscreteLaplace
from shuffledp.randomizers.leaning import GaussianUnit as GaussianUnit, RampUnit as RampUnit
from shuffledp.randomizers.levels import LeveledResponse as LeveledResponse
from shuffledp.randomizers.local import LocalRandomizer as LocalRandomizer
from shuffledp.randomizers.matrix import FiniteRandomizer as FiniteRandomizer
from shuffledp.randomizers.privunit import PrivUnit as PrivUnit
from shuffledp.randomizers.registry import (
    Parameter as Parameter,
    Registration as Registration,
    register as register,
)
from shuffledp.randomizers.signs import (
    L1Randomizer as L1Randomizer,
    LInfinityRandomizer as LInfinityRandomizer,
)
from shuffledp.randomizers.split_and_mix import SplitAndMix as SplitAndMix
from shuffledp.randomizers.split_vectors import SplitVectors as SplitVectors
from shuffledp.randomizers.subset import SubsetSelection as SubsetSelection
from shuffledp.randomizers.unary import (
    OptimisedUnaryEncoding as OptimisedUnaryEncoding,
    SymmetricUnaryEncoding as SymmetricUnaryEncoding,
)
from shuffledp.randomizers.vectors import VectorRandomizer as VectorRandomizer
from shuffledp.shuffling.engine import EmbeddedEngine as EmbeddedEngine, Engine as Engine, collect as collect
from shuffledp.shuffling.permutation import shuffle as shuffle
from shuffledp.shuffling.report_files import open_reports as open_reports
from shuffledp.shuffling.roles import (
    analyze_file as analyze_file,
    randomize_file as randomize_file,
    shuffle_files as shuffle_files,
    write_reports as write_reports,
)
from shuffledp.shuffling.spark import SparkEngine as SparkEngine
from shuffledp.verifying.certificate import Certificate as Certificate
from shuffledp.verifying.verification import Verification as Verification, verify as verify

__all__: list[str]
__version__: str
