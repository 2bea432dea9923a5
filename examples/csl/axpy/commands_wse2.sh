#!/bin/sh
set -e
cslc layout.csl --arch=wse2 --fabric-dims=10,4 --fabric-offsets=4,1 --params=width:3,height:2,n:64 --memcpy --channels=1 -o out
cs_python run.py --name out
