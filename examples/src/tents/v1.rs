//! The present version: a site has a field and a number, lamps are names, and a packed tent is `Stowed`.

use kube::CustomResource;
use okt::{
    Action, Admission, Application, Desired, Failure, LifecycleSpec, Status, Validation,
    lifecycle_graph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{v1beta1, work};

/// The life of a tent.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TentState {
    /// It is pitched.
    #[entry]
    #[child(Standing)]
    Pitching,
    /// Guests sleep in it.
    #[rest(idle)]
    #[child(Striking)]
    Standing,
    /// It is taken down.
    #[child(Stowed)]
    Striking,
    /// It is in its bag.
    #[rest(idle)]
    #[was("Packed")]
    #[child(Pitching)]
    #[child(Gone)]
    Stowed,
    /// It is given away.
    #[leaf(idle)]
    Gone,
}

/// A tent.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Tent",
    namespaced,
    status = "Status<TentState>"
)]
#[lifecycle(previous(v1beta1::Tent), by_hand)]
pub struct TentSpec {
    /// The desired state.
    #[serde(default)]
    pub lifecycle: Desired<TentState>,
    /// For how many people it is.
    pub people: u8,
    /// Where it stands.
    pub site: Site,
    /// The number of its stoves.
    #[serde(default)]
    pub stoves: u8,
    /// The places of its lamps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lamps: Vec<String>,
    /// What guests are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// Where a tent stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Site {
    /// The field (e.g. `river`).
    pub field: String,
    /// The place on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u16>,
}

impl From<v1beta1::TentSpec> for TentSpec {
    fn from(before: v1beta1::TentSpec) -> Self {
        let lamps = before.equipment.lamps.into_iter();
        Self {
            lifecycle: before.lifecycle.in_version(),
            people: before.people,
            site: before.site.as_str().into(),
            stoves: before.equipment.stoves,
            lamps: lamps.map(|lamp| lamp.place).collect(),
            notice: before.notice,
        }
    }
}

impl From<TentSpec> for v1beta1::TentSpec {
    fn from(tent: TentSpec) -> Self {
        let lamps = tent.lamps.into_iter();
        let lamps = lamps.map(|place| v1beta1::Lamp { place, watts: None });
        Self {
            lifecycle: tent.lifecycle.in_version(),
            people: tent.people,
            site: tent.site.into(),
            equipment: v1beta1::Equipment {
                stoves: tent.stoves,
                lamps: lamps.collect(),
            },
            notice: tent.notice,
        }
    }
}

impl From<&str> for Site {
    fn from(text: &str) -> Self {
        let place = text.rsplit_once('/').and_then(|(field, place)| {
            let place = place.parse().ok()?;
            Some((field, Some(place)))
        });
        let (field, place) = place.unwrap_or((text, None));
        Self {
            field: field.to_owned(),
            place,
        }
    }
}

impl From<Site> for String {
    fn from(site: Site) -> Self {
        match site.place {
            Some(place) => format!("{}/{place}", site.field),
            None => site.field,
        }
    }
}

/// The operator of tents.
#[derive(Clone, Debug)]
pub struct Camp;

impl TentStateHandler for Camp {
    type Context = Action<Tent>;
    type Error = Failure;

    async fn pitching(&self, action: &Action<Tent>) -> Result<tent_state::AfterPitching, Failure> {
        work(action.id(), "pitched").await;
        Ok(tent_state::AfterPitching::Standing)
    }

    async fn striking(&self, action: &Action<Tent>) -> Result<tent_state::AfterStriking, Failure> {
        work(action.id(), "taken down").await;
        Ok(tent_state::AfterStriking::Stowed)
    }
}

impl Application for Camp {
    type Resource = Tent;

    fn admission(admission: Admission<Tent>) -> Admission<Tent> {
        admission.validated_by(validate).completed_by(complete)
    }
}

fn validate(old: Option<&Tent>, new: &Tent) -> Validation {
    let mut validation = Validation::default();
    if new.spec.people == 0 {
        validation.refuse("spec.people", "a tent is for somebody");
    }
    if usize::from(new.spec.stoves) > new.spec.lamps.len() + 1 {
        validation.warn("there are fewer lamps than stoves: whoever cooks at night sees nothing");
    }
    let field = |tent: &Tent| tent.spec.site.field.clone();
    if old.is_some_and(|old| field(old) != field(new)) {
        validation.refuse("spec.site.field", "a tent is not carried to another field");
    }
    validation
}

/// A large tent has a lamp at its entrance.
fn complete(tent: &mut Tent) {
    if tent.spec.people > 4 && tent.spec.lamps.is_empty() {
        tent.spec.lamps.push("entrance".to_owned());
    }
}
