"""Log directories: the manager of a broker's logs, their checkpoints, identities and failures."""
