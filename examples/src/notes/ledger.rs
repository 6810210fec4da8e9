//! This file keeps the actions and their results in the database, where a restart finds them.

use jiff::Timestamp;
use rusqlite::OptionalExtension;

use super::error::StoreError;
use super::store::Store;
use super::wire::{Action, ActionKind, ActionState};

impl Store {
    /// What is known of the action with this id.
    pub(super) fn action(&self, id: &str) -> Result<Option<Action>, StoreError> {
        let row = self
            .connection
            .query_one(
                "SELECT kind, state FROM actions WHERE id = ?1",
                [id],
                |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
            )
            .optional()
            .map_err(self.refused("read action"))?;
        // A row that this program did not write says no less than that somebody began the action.
        Ok(row.and_then(|(kind, state)| {
            let kind = serde_json::from_value::<ActionKind>(kind.into()).ok()?;
            let state = serde_json::from_str(&state).unwrap_or(ActionState::Unknown);
            Some(Action {
                id: id.into(),
                kind,
                state,
            })
        }))
    }

    /// Writes down that an action begins; an attempt before this one is forgotten.
    pub(super) fn begin(&self, id: &str, kind: ActionKind) -> Result<(), StoreError> {
        let now = Timestamp::now().to_string();
        self.connection
            .execute(
                "INSERT OR REPLACE INTO actions (id, kind, state, started) VALUES (?1, ?2, ?3, ?4)",
                (id, kind.as_str(), json(&ActionState::Running), now),
            )
            .map(drop)
            .map_err(self.refused("begin action"))
    }

    /// Writes down how an action ended.
    pub(super) fn end(&self, id: &str, state: &ActionState) -> Result<(), StoreError> {
        let now = Timestamp::now().to_string();
        self.connection
            .execute(
                "UPDATE actions SET state = ?2, ended = ?3 WHERE id = ?1",
                (id, json(state), now),
            )
            .map(drop)
            .map_err(self.refused("end action"))
    }

    /// Writes down that the actions which were running in an earlier process are not any more.
    pub(super) fn disown_running(&self) -> Result<usize, StoreError> {
        let parameters = [json(&ActionState::Unknown), json(&ActionState::Running)];
        self.connection
            .execute("UPDATE actions SET state = ?1 WHERE state = ?2", parameters)
            .map_err(self.refused("disown actions"))
    }
}

fn json(state: &ActionState) -> String {
    serde_json::to_string(state).expect("a state has string keys only")
}
