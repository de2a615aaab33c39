mod exhaustive;
mod extract;
pub(crate) mod faults;
mod overtaken;
mod parents;
mod parents_trouble;
mod resubmit;
pub(crate) mod rig;
mod trouble;
