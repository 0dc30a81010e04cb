mod hostile;
mod rig;
mod search;
mod steering;
mod stops;
