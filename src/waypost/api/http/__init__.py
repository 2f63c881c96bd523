"""Reading requests and writing responses: bodies, multipart forms, idempotent requests, proxies."""
