//! Domains around domains: they speak the same trait and change what passes through.
