"""Sets and relations as text: in JSON documents, in the paper's notation, in messages."""
