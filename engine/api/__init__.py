"""One module per API: request in, reply out. `dispatch.py` is the table of them."""
