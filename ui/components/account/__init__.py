"""The parts of the account page that are more than a field."""
