"""Graph API calls for groups. Source: the operator's page "Groups"."""
