mod hostile;
mod rig;
mod search;
mod stops;
