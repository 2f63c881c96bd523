"""HTTP tools without a framework: a client for small POSTs, multipart bodies, hosts."""
