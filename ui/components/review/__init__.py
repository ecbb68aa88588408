"""The parts of the review page: what is asked for, what is shown of an exchange, and the component that shows it."""
