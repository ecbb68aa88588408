"""The ways in: from a password, a provider's word or a link, over the second step, to a session."""
