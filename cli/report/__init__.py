"""`joiner report`: one page with the fleet, its cost, decisions and what is blocked."""
