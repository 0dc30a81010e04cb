mod rig;
mod search;
mod stops;
