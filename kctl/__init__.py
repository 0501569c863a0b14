"""The command line: parse arguments, call the engine, print."""
