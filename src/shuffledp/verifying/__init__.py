"""Proof-carrying epsilon: certificates, and a verifier that shares no numerics with the accountant."""

from shuffledp.verifying.certificate import Certificate
from shuffledp.verifying.verification import Verification, verify

__all__ = ["Certificate", "Verification", "verify"]
