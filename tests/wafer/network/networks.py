"""Small networks, in LAIR, as the tests of a room need them."""

DENSE = """\
lair dense(M, N): float16 W[M][N], float16 x[N] -> float16 y[M]
{
  all (i, j) in (M, N)
    y[i] += W[i][j] * x[j]
}
lair relu(N): float16 y[N] -> float16 z[N]
{
  all (i) in (N)
    z[i] = max(y[i], 0)
}
lair add(N): float16 a[N], float16 b[N] -> float16 c[N]
{
  all (i) in (N)
    c[i] = a[i] + b[i]
}
lair transpose(M, N): float16 a[M][N] -> float16 b[N][M]
{
  all (i, j) in (M, N)
    b[j][i] = a[i][j]
}
lair rows(M, N): float16 a[M][N], float16 v[M][N] -> float16 y[M]
{
  all (i, j) in (M, N)
    y[i] += a[i][j] * v[i][j]
}
lair scale(M, N): float16 a[M][N] -> float16 b[M][N]
{
  all (i, j) in (M, N)
    b[i][j] = a[i][j] * 2
}
"""

MLP = (
    DENSE
    + """\
graph mlp: float16 W1[12][8], float16 W2[6][12], float16 x[8] -> float16 y[6]
{
  s = dense(12, 8)(W1, x)
  h = relu(12)(s)
  y = dense(6, 12)(W2, h)
}
"""
)
RESIDUAL = (
    DENSE
    + """\
graph residual: float16 W1[8][8], float16 W2[8][8], float16 x[8] -> float16 y[8]
{
  s = dense(8, 8)(W1, x)
  t = dense(8, 8)(W2, s)
  y = add(8)(s, t)
}
"""
)
TRANSPOSED = (
    DENSE
    + """\
graph transposed: float16 V[6][4], float16 a[4][6] -> float16 y[6]
{
  b = scale(4, 6)(a)
  c = transpose(4, 6)(b)
  y = rows(6, 4)(c, V)
}
"""
)
MAPS = {
    "s": """\
size: { PE[2, 3] }
compute_map: { s[i, j] -> PE[j//4, i//4]; relu[i] -> PE[1, i//4] }
iport_map: { x[j = 0:7] -> [PE[j//4, -1] -> index[j mod 4]] }
oport_map: { h[i = 0:11] -> [PE[2, i//4] -> index[i mod 4]] }
""",
    "y": """\
size: { PE[2, 2] }
compute_map: { y[i, j] -> PE[i//3, j mod 2] }
iport_map: { h[j = 0:11] -> [PE[-1, j mod 2] -> index[j//2]] }
oport_map: { y[i = 0:5] -> [PE[i//3, 2] -> index[i mod 3]] }
""",
}
"""Maps of MLP's layers: the second takes ``h`` in another order than the first one gives it."""

TRAINED = (
    DENSE
    + """\
lair learn(M, N): float16 W[M][N], float16 e[M], float16 x[N] -> float16 V[M][N]
{
  all (i, j) in (M, N)
    V[i][j] = W[i][j] - e[i] * x[j]
}
graph trained: float16 W[3][2], float16 x[2], float16 e[3] -> float16 y[3], float16 V[3][2]
{
  y = dense(3, 2)(W, x)
  V = learn(3, 2)(W, e, x)
}
"""
)
"""A layer whose weights each sample changes."""
ALONE = {
    "y": """\
size: { PE[1, 1] }
compute_map: { y[i, j] -> PE[0, 0] }
iport_map: { W[i = 0:2, j = 0:1] -> [PE[0, -1] -> index[i, j]]; x[j = 0:1] -> [PE[-1, 0] -> index[j]] }
oport_map: { y[i = 0:2] -> [PE[1, 0] -> index[i]] }
""",
    "V": """\
size: { PE[1, 1] }
compute_map: { V[i, j] -> PE[0, 0] }
iport_map: { W[i = 0:2, j = 0:1] -> [PE[0, -1] -> index[i, j]]; x[j = 0:1] -> [PE[-1, 0] -> index[j]];
             e[i = 0:2] -> [PE[0, 1] -> index[i]] }
oport_map: { V[i = 0:2, j = 0:1] -> [PE[1, 0] -> index[i, j]] }
""",
    "hold_W_V_0": """\
size: { PE[1, 1] }
compute_map: { hold_W_V_0[i] -> PE[0, 0] }
iport_map: { W_V_in0[i = 0:5] -> [PE[-1, 0] -> index[i]] }
oport_map: { W_V_out0[i = 0:5] -> [PE[1, 0] -> index[i]] }
""",
}
"""Maps of its layers, one PE each."""

COPIED = (
    DENSE
    + """\
graph copied: float16 a[2][3] -> float16 c[3][2], float16 b[2][3]
{
  c = transpose(2, 3)(a)
  b = scale(2, 3)(a)
}
"""
)
"""A result that is an input in another order."""

SCALARS = """\
lair total(N): float16 x[N] -> float16 t { all (i) in (N) t += x[i] }
lair centred(N): float16 x[N], float16 t -> float16 y[N] { all (i) in (N) y[i] = x[i] - t }
graph scalars: float16 x[4] -> float16 t, float16 y[4]
{
  t = total(4)(x)
  y = centred(4)(x, t)
}
"""
"""A scalar that leaves, and that a layer reads."""

CNN_TRAINING = """\
lair conv(C, H, W, K): float32 x[H+K-1][W+K-1], float32 F[C][K][K] -> float32 s[C][H][W]
{ all (c, i, j, k, l) in (C, H, W, K, K) s[c][i][j] += F[c][k][l] * x[i+k][j+l] }
lair relu(C, H, W): float32 s[C][H][W] -> float32 a[C][H][W]
{ all (c, i, j) in (C, H, W) a[c][i][j] = max(s[c][i][j], 0) }
lair dense(M, C, H, W): float32 a[C][H][W], float32 D[M][C][H][W] -> float32 y[M]
{ all (m, c, i, j) in (M, C, H, W) y[m] += D[m][c][i][j] * a[c][i][j] }
lair loss(M): float32 y[M], float32 t[M] -> float32 e[M]
{ all (m) in (M) e[m] = y[m] - t[m] }
lair dense_g(M, C, H, W): float32 e[M], float32 a[C][H][W], float32 D[M][C][H][W] ->
  float32 E[M][C][H][W]
{ all (m, c, i, j) in (M, C, H, W) E[m][c][i][j] = D[m][c][i][j] - 0.03125 * (e[m] * a[c][i][j]) }
lair dense_d(M, C, H, W): float32 e[M], float32 D[M][C][H][W] -> float32 da[C][H][W]
{ all (c, i, j, m) in (C, H, W, M) da[c][i][j] += D[m][c][i][j] * e[m] }
lair relu_d(C, H, W): float32 s[C][H][W], float32 da[C][H][W] -> float32 ds[C][H][W]
{ all (c, i, j) in (C, H, W) ds[c][i][j] = select(s[c][i][j] > 0, da[c][i][j], 0) }
lair conv_g(C, H, W, K): float32 ds[C][H][W], float32 x[H+K-1][W+K-1] -> float32 dF[C][K][K]
{ all (c, k, l, i, j) in (C, K, K, H, W) dF[c][k][l] += ds[c][i][j] * x[i+k][j+l] }
lair learn(C, K): float32 F[C][K][K], float32 dF[C][K][K] -> float32 G[C][K][K]
{ all (c, k, l) in (C, K, K) G[c][k][l] = F[c][k][l] - 0.03125 * dF[c][k][l] }
graph cnn_training: float32 x[8][8], float32 t[4], float32 F[2][3][3], float32 D[4][2][6][6] ->
  float32 y[4], float32 G[2][3][3], float32 E[4][2][6][6]
{
  s  = conv(2, 6, 6, 3)(x, F)
  a  = relu(2, 6, 6)(s)
  y  = dense(4, 2, 6, 6)(a, D)
  e  = loss(4)(y, t)
  E  = dense_g(4, 2, 6, 6)(e, a, D)
  da = dense_d(4, 2, 6, 6)(e, D)
  ds = relu_d(2, 6, 6)(s, da)
  dF = conv_g(2, 6, 6, 3)(ds, x)
  G  = learn(2, 3)(F, dF)
}
"""
"""One step of training a convolution and a fully connected layer on the squared distance to a target."""
