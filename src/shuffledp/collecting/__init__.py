"""Protocols: from a question to estimates with error bars and a privacy statement."""
