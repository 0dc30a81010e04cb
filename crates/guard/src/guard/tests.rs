mod described;
mod hostile;
mod rig;
mod search;
mod steering;
mod stops;
mod twisted;
mod twisted_stops;
