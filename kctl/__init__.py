"""The command line: parse, call the engine, print."""
