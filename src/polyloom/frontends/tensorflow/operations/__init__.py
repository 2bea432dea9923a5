"""Operations of TensorFlow as statements."""
