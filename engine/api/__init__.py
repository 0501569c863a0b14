"""One module per API, with its handler: request in, response out. `dispatch.py` has their table."""
