//! A simulated car, a course with cones and a windscreen camera
