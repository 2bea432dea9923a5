"""What each operation of PyTorch becomes: functions of ``Call``."""
