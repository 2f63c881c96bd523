"""A business's public key for Flows, of which nobody has the private one."""

from typing import Final

PUBLIC_KEY: Final = (
    "-----BEGIN PUBLIC KEY-----\n"
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAqDB24EXvpiTPwb4aNr0l\n"
    "6tqnm6TrTFCFmj6+6o6HjBDfJLqjNbSXjO6RrJu4ApqSqCTEveP2fD42EHZ/YuJO\n"
    "0HUeMJjRgwB6LnCL8BqANAuvzVna7BlwCX77nc69nnELF4JbXL7isFFTMl6oDCVG\n"
    "0qOaMT0QOu265sJ3/ioOnm9v7V8oib+J8n54ddGcAQxis+2XCgbQFlwOXe0KimWW\n"
    "mS1c3EQ7sybTGuYFp8RHddSEAWYdJXCnvT2mdsQUsUAwp8oFtguM2Jnio5HYDViJ\n"
    "+jQuML3aE/tEp6lul8HJ9fQ+EDpeVtWwWCLaAEYAKo+m/dLHOKOP+vc7tkeZDlJI\n"
    "4wIDAQAB\n"
    "-----END PUBLIC KEY-----"
)
