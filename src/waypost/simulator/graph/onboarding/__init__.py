"""Graph API calls for business portfolios and in-app signups."""
