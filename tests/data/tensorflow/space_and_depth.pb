
;
x0Placeholder*
dtype0*
shape:
R
SpaceToDepthSpaceToDepthx0*
T0*

block_size*
data_formatNHWC
\
DepthToSpaceDepthToSpaceSpaceToDepth*
T0*

block_size*
data_formatNHWC
+
IdentityIdentityDepthToSpace*
T0"ª