"""What is deleted when: rules, and the partitions of PostgreSQL."""
