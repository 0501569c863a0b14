"""Groups of outsiders' clients while their members and their coordinator come and go."""
