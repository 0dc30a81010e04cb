mod rig;
mod stops;
