//! Encoding and parsing are each other's inverse, and parsing takes any bytes.
