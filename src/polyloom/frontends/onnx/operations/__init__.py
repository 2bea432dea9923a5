"""The operations of ONNX, a table in each module. Source: the operators' specification, from opset 6."""
