"""Who may do what, and how much of it: rules without I/O."""
