"""Record batches of every format: decode, patch, build; pure."""
