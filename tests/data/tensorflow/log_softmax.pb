
3
x0Placeholder*
dtype0*
shape
:
%

LogSoftmax
LogSoftmaxx0*
T0
)
IdentityIdentity
LogSoftmax*
T0"ª