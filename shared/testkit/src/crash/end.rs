use domain::entry::{Entry, State};
use domain::object::describe;

use super::World;

/// How the world stands when all is quiet, without what may differ: times, tokens and counts of
/// writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Each row: its job, its state, its lineage and its date.
    pub rows: Vec<String>,
    /// How the submissions ended.
    pub intents: Vec<&'static str>,
    /// Jobs that were made by submissions; each of them is paid for.
    pub paid: Vec<String>,
    /// Objects that rows name, each of which is there and is as the row says.
    pub objects: Vec<String>,
}

impl End {
    pub(super) async fn of<Q>(world: &World<Q>) -> Self {
        let mut end =
            Self { rows: Vec::new(), intents: Vec::new(), paid: Vec::new(), objects: Vec::new() };
        for entry in world.entries().await {
            assert_eq!(entry.due_at.is_some(), !entry.state.is_terminal(), "{}", entry.key);
            assert_eq!(entry.expires_at.is_some(), entry.state.is_terminal(), "{}", entry.key);
            end.objects.extend(object(world, &entry));
            end.rows.push(told(&entry));
        }
        end.rows.sort_unstable();
        end.objects.sort_unstable();
        end.intents = world.intents().await.iter().map(|intent| intent.state.name()).collect();
        end.paid = world.made();
        let whole = world.results.keys().into_iter().filter(|key| !key.contains("-part-"));
        assert_eq!(whole.collect::<Vec<_>>(), end.objects, "one object for each job");
        end
    }
}

impl End {
    /// Checks that there are as many rows as beginnings, each of which begins so.
    pub(crate) fn check(&self, rows: &[&str]) {
        let agree = self.rows.iter().zip(rows).all(|(row, begins)| row.starts_with(begins));
        assert!(agree && self.rows.len() == rows.len(), "{self:?}");
    }
}

fn told(entry: &Entry) -> String {
    let link = entry.link.as_ref().map(|link| (&link.lineage, link.attempt));
    format!("{} {} {link:?} {:?}", entry.key, standing(entry), entry.dt)
}

/// How a row stands, in one word or two.
pub(super) fn standing(entry: &Entry) -> String {
    match &entry.state {
        State::Dead { reason, .. } => format!("dead {reason}"),
        State::Superseded { by } => format!("superseded {by}"),
        state => state.name().to_string(),
    }
}

/// The key of the object that a row names, which is as the row says.
fn object<Q>(world: &World<Q>, entry: &Entry) -> Option<String> {
    let (State::Stored { result } | State::Dead { result: Some(result), .. }) = &entry.state else {
        return None;
    };
    let bytes = world.results.bytes(&result.key).expect("the object is there");
    let is = describe(&result.key, &bytes);
    assert_eq!((is.bytes, is.sha256), (result.bytes, result.sha256.clone()), "{}", result.key);
    Some(result.key.clone())
}
