"""The journal for commands: its location, its entries, and text for actions."""
