"""Operations that frameworks share, each a few statements: functions from values to values.

They speak of positions and sizes, never of a framework's attributes; axes are from 0 on. What has no affine
form raises ``Refused`` with the reason.
"""
