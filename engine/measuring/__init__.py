"""How fast a cluster takes records, gives them, and passes them on: measured by kctl's own client.

`measurement` counts within a window that begins when connections are open and a warm-up is over;
`producing_run`, `consuming_run` and `latency_run` are what is measured.
"""
