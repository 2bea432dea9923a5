
3
x0Placeholder*
dtype0*
shape
:

SoftmaxSoftmaxx0*
T0
&
IdentityIdentitySoftmax*
T0"ª