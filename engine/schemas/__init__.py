"""Values that only their schema can read: where schemas come from, and what they make of bytes."""
