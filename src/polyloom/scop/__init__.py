"""Static control parts to host programs: dependences, schedules, md_homs."""
