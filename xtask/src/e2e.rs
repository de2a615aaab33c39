//! The bundle on an emulator of AWS: the template as it stands, the programs as they are built.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::command::{cargo, has, program, run, say};
use crate::python::{environment, target};

/// What the tests need.
const REQUIREMENTS: &str = "tests/aws/requirements.txt";
/// What is built and run.
const PROGRAMS: [&str; 6] = ["gleaner", "judge", "receiver", "rotator", "scheduler", "worker"];
/// Jobs of each run.
const JOBS: u32 = 100;
/// Fewer would leave out one of the three kinds.
const JOBS_MIN: u32 = 20;
/// Fewer would not let each fault strike.
const JOBS_FOR_FAULTS: u32 = 100;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Jobs of each run.
    jobs: u32,
    /// Whether there is a run in which calls fail as well.
    faults: bool,
}

impl Wanted {
    /// What the test command runs.
    pub(crate) const ALL: Self = Self { jobs: JOBS, faults: true };
}

/// Runs the end-to-end tests as the command line asks.
pub(crate) fn command(rest: &[String]) -> Result<()> {
    run_tests(parse(rest)?)
}

/// Builds the programs and runs the end-to-end tests.
pub(crate) fn run_tests(wanted: Wanted) -> Result<()> {
    if !has("python3") {
        bail!("python3 is needed for the emulator of AWS");
    }
    let mut build = vec!["build", "--locked"];
    for name in PROGRAMS {
        build.extend(["--package", name]);
    }
    build.extend(["--features", "gleaner/aws"]);
    cargo(&build)?;
    let programs = set_aside()?;
    let python = environment("e2e-python", REQUIREMENTS)?;
    say("the template and the programs on an emulator of AWS");
    let mut tests = program(&python);
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    for name in ["calm", "person", "secrets", "rotation"] {
        tests.arg(format!("tests/aws/test_{name}.py"));
    }
    if wanted.faults {
        tests.arg("tests/aws/test_faults.py");
    }
    tests.arg("--jobs").arg(wanted.jobs.to_string());
    tests.arg("--programs").arg(programs);
    run(tests.env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Copies what was built, so that a build meanwhile, perhaps with other features, changes nothing.
fn set_aside() -> Result<PathBuf> {
    let target = target()?;
    let folder = target.join("e2e");
    std::fs::create_dir_all(&folder)?;
    for name in PROGRAMS {
        let built = target.join("debug").join(name);
        std::fs::copy(&built, folder.join(name)).with_context(|| built.display().to_string())?;
    }
    Ok(folder)
}

fn parse(rest: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted { jobs: JOBS, faults: false };
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--faults" => wanted.faults = true,
            "--jobs" => {
                let number = words.next().context("`--jobs` wants a number")?;
                wanted.jobs = number.parse().with_context(|| format!("`--jobs {number}`"))?;
            }
            _ => bail!("`e2e-aws` knows `--jobs N` and `--faults` only"),
        }
    }
    let least = if wanted.faults { JOBS_FOR_FAULTS } else { JOBS_MIN };
    if wanted.jobs < least {
        bail!("`--jobs` wants {least} at least, so that each kind and each fault occurs");
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Wanted> {
        parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_wanted_is_read() {
        assert_eq!(parsed(&[]).unwrap(), Wanted { jobs: 100, faults: false });
        let wanted = parsed(&["--faults", "--jobs", "500"]).unwrap();
        assert_eq!(wanted, Wanted { jobs: 500, faults: true });
        for wrong in ["--jobs", "--jobs many", "--jobs 19", "--faults --jobs 99", "--fast"] {
            let words: Vec<_> = wrong.split(' ').collect();
            assert!(parsed(&words).is_err(), "{wrong}");
        }
    }
}
