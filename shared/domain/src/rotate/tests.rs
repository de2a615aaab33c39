//! Rotations over ports in memory.

mod overlap;
mod place;
mod rig;
mod together;
