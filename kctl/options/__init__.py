"""Options that several commands share, with their help texts."""
