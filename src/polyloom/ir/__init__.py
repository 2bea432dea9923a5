"""The intermediate representation at which every front end stops and every back end starts."""
