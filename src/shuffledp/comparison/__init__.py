"""Every bound that applies to a mechanism, side by side: value, theorem, soundness, time."""
