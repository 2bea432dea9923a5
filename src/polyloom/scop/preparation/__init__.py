"""Static control parts made simpler before their dependences are asked for."""
