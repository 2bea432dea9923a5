"""Tuning: schedules timed on the device, kept in a database, and found again."""
