"""Programs that show what geoopt does."""
