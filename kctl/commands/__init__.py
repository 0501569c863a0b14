"""One module per noun; each is imported only when its noun is called."""
