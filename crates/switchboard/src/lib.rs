//! Directory, lease and rendezvous
