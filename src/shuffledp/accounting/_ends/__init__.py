"""Upper and lower ends of answers."""
