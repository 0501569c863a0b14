"""What lets a producer write exactly once: its ids."""
