"""Steps of procedures, looked at: their variables."""
