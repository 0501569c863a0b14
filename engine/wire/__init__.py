"""Schema tables of every message and the codec compiled from them; pure."""
