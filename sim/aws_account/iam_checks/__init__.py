"""IAM authorization of each API request, with the policies that are deployed now."""
