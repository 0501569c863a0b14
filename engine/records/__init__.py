"""Record batches of every format: read, patched, built; pure."""
