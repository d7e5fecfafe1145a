//! JBD2: the journal as the kernel writes it.
