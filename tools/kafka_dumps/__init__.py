"""Damaged logs through Kafka's own dump tool and ours: same stdout and exit code, or it is said."""
