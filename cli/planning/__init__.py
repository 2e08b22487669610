"""Sources, documents and tables that plan, consolidate and status share."""
