//! Cutting a scenario that breaks a promise down to what it takes.

use super::{Scenario, Step, Tamper, simulate};

/// Most simulations that a cut may take.
const RUNS_MAX: u32 = 400;

/// The shortest scenario found that still breaks a promise; the same one if none is broken.
pub fn shrink(scenario: &Scenario, tamper: &dyn Tamper) -> Scenario {
    let mut runs = 0;
    let mut is_broken = |steps: &[Step]| {
        runs += 1;
        let shorter = Scenario { seed: scenario.seed, steps: steps.to_vec() };
        runs <= RUNS_MAX && simulate(&shorter, tamper).broken.is_some()
    };
    let mut steps = scenario.steps.clone();
    if !is_broken(&steps) {
        return scenario.clone();
    }
    // Whole stretches first, then single steps, then what befalls them.
    let mut stretch = steps.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        while at < steps.len() {
            let end = (at + stretch).min(steps.len());
            let mut shorter = steps.clone();
            shorter.drain(at..end);
            if is_broken(&shorter) {
                steps = shorter;
            } else {
                at = end;
            }
        }
        if stretch == 1 {
            break;
        }
        stretch /= 2;
    }
    for at in 0..steps.len() {
        let mut tried = 0;
        while let Some(less) = calmer(&steps, at).into_iter().nth(tried) {
            if is_broken(&less) {
                steps = less;
            } else {
                tried += 1;
            }
        }
    }
    Scenario { seed: scenario.seed, steps }
}

/// The same steps, with one process or one ordeal less in one of them.
fn calmer(steps: &[Step], at: usize) -> Vec<Vec<Step>> {
    let mut calmer = Vec::new();
    let Some(step) = steps.get(at) else { return calmer };
    for (process, (_, ordeals)) in step.processes.iter().enumerate() {
        for ordeal in 0..ordeals.len() {
            let mut less = steps.to_vec();
            if let Some((_, ordeals)) =
                less.get_mut(at).and_then(|step| step.processes.get_mut(process))
            {
                ordeals.remove(ordeal);
            }
            calmer.push(less);
        }
    }
    calmer
}
