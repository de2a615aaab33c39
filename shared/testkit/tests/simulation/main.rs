//! Seeded simulations of the whole product: see `testkit::simulation`.
//!
//! `cargo run --release -p testkit --example simulate -- 100..1000` runs other seeds.

mod bugs;

use std::ops::Range;

use bugs::Bug;
use testkit::simulation::{Scenario, Untouched, shrink, simulate, tell};

/// Seeds that run with every test run.
const SEEDS: Range<u64> = 0..100;
/// Every third seed has the same weather.
fn all_keep_their_promises(weather: u64) {
    for seed in SEEDS.filter(|seed| seed % 3 == weather) {
        let scenario = Scenario::of(seed);
        let is_kept = simulate(&scenario, &Untouched).broken.is_none();
        assert!(is_kept, "{}", tell(&scenario, &Untouched));
    }
}

/// Design, section 1: whatever our own processes do, in whatever order.
#[test]
fn in_calm_weather_every_seed_keeps_every_promise() {
    all_keep_their_promises(0);
}

/// The same on a platform that misbehaves now and then.
#[test]
fn in_gentle_weather_every_seed_keeps_every_promise() {
    all_keep_their_promises(1);
}

/// The same on a platform that misbehaves all the time.
#[test]
fn in_harsh_weather_every_seed_keeps_every_promise() {
    all_keep_their_promises(2);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in [1, 2, 3] {
        let scenario = Scenario::of(seed);
        assert_eq!(simulate(&scenario, &Untouched), simulate(&scenario, &Untouched));
    }
}

/// A simulation that no bug fails would show nothing. Most take fewer than 20 seeds from 0 on, and two
/// that need a rare meeting fewer than 400.
#[test]
fn planted_bugs_are_found() {
    for bug in Bug::ALL {
        let is_found = |seed: u64| simulate(&Scenario::of(seed), &bug).broken.is_some();
        assert!(bug.seeds().any(is_found), "{bug:?} is not found");
    }
}

/// What a person gets to see is short, and breaks the same way.
#[test]
fn a_scenario_is_cut_down_to_what_it_takes() {
    let bug = Bug::VolatileResults;
    let mut scenarios = bug.seeds().map(Scenario::of);
    let whole = scenarios.find(|whole| simulate(whole, &bug).broken.is_some()).unwrap();
    let short = shrink(&whole, &bug);
    assert!(short.steps.len() < whole.steps.len() / 4, "{short}");
    assert!(simulate(&short, &bug).broken.is_some());
    assert_eq!(shrink(&short, &bug), short);
}
