
;
x0Placeholder*
dtype0*
shape:
;
x2Placeholder*
dtype0*
shape:
;
x1Placeholder*
dtype0*
shape:
P
einsum/EinsumEinsumx0x1*
N*
T0*
equationbqhd,bkhd->bhqk
*
SoftmaxSoftmaxeinsum/Einsum*
T0
W
einsum_1/EinsumEinsumSoftmaxx2*
N*
T0*
equationbhqk,bkhd->bqhd
.
IdentityIdentityeinsum_1/Einsum*
T0"ª