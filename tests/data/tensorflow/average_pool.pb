
;
x0Placeholder*
dtype0*
shape:
s
	AvgPool2DAvgPoolx0*
T0*
data_formatNHWC*
ksize
*
paddingSAME*
strides

(
IdentityIdentity	AvgPool2D*
T0"ª