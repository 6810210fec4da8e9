//! The kinds of requests that an application serves.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use okt_core::{Graph, Mark, Serves, StateId};
use okt_wire::limits::ARGS_LIMIT;
use okt_wire::object::LifecycleObject;
use okt_wire::request::{Request, RequestObject, ScheduleObject};
use okt_wire::sealed::Sealed;
use serde_json::Value;

use crate::crd::definition::CrdError;
use crate::resources::ResourceKind;

use super::crd::crds;

/// The kinds of requests that your application serves.
///
/// OKT derives its caches, the CRDs and the RBAC roles from them. Each state with `#[visit(args = ..)]` needs one.
///
/// ```
/// # use okt::{LifecycleObject, Request, RequestObject, Requests};
/// # fn example<RestoreArgs: Request>(requests: Requests<RestoreArgs::Target>) -> Requests<RestoreArgs::Target> {
/// # type Restore<A> = RequestObject<A>;
/// requests.serves::<Restore<RestoreArgs>>()
/// # }
/// ```
pub struct Requests<K> {
    #[doc(hidden)]
    pub kinds: Vec<ServedKind>,
    object: PhantomData<fn(&K)>,
}

/// A kind of requests, whatever the type of their arguments.
#[derive(Clone)]
pub struct ServedKind {
    /// The kind.
    pub kind: ResourceKind,
    /// The state that serves them.
    pub state: StateId,
    /// The kind of their schedules, if there is one.
    pub schedule: Option<ResourceKind>,
    crds: fn() -> Result<Vec<CustomResourceDefinition>, CrdError>,
    /// How long a finished one is kept.
    pub(crate) ttl: Duration,
    decode: fn(&Value) -> Result<DecodedArgs, String>,
}

/// The arguments of a request, of the type that the handler takes.
pub(crate) type DecodedArgs = Arc<dyn Any + Send + Sync>;

/// A kind of requests, as [`Requests::serves`] takes it.
pub trait RequestKind {
    /// The arguments.
    type Args: Request;
}

impl<A: Request> RequestKind for RequestObject<A> {
    type Args = A;
}

impl<K> Default for Requests<K> {
    fn default() -> Self {
        Self {
            kinds: Vec::new(),
            object: PhantomData,
        }
    }
}

impl<K: LifecycleObject> Requests<K> {
    /// Declares that objects of the application serve requests of this kind.
    #[must_use]
    pub fn serves<R: RequestKind<Args: Request<Target = K>>>(mut self) -> Self
    where
        K::State: Serves<R::Args>,
    {
        let kind = ResourceKind::of::<RequestObject<R::Args>>();
        if self.kinds.iter().all(|it| !it.kind.is_same(&kind)) {
            self.kinds.push(ServedKind {
                kind,
                state: <K::State as Serves<R::Args>>::STATE,
                schedule: R::Args::SCHEDULED.then(ResourceKind::of::<ScheduleObject<R::Args>>),
                crds: crds::<R::Args>,
                ttl: R::Args::TTL,
                decode: decode::<R::Args>,
            });
        }
        self
    }
}

impl<K> Requests<K> {
    /// Returns a state that takes arguments and that no kind serves.
    pub(crate) fn unserved(&self, graph: &'static Graph<'static>) -> Option<&'static str> {
        let mut states = graph.iter().filter(|(_, state)| state.is(Mark::Args));
        let is_served = |id: StateId| self.kinds.iter().any(|kind| kind.state == id);
        let (_, state) = states.find(|(id, _)| !is_served(*id))?;
        Some(state.name)
    }
}

impl ServedKind {
    /// Returns the CRD of the requests, and that of their schedules if there are any.
    ///
    /// # Errors
    ///
    /// [`CrdError`] if the declaration cannot work; only a change of the code helps.
    pub fn crds(&self) -> Result<Vec<CustomResourceDefinition>, CrdError> {
        (self.crds)()
    }

    /// Decodes arguments.
    ///
    /// # Errors
    ///
    /// Why they do not fit. A retry does not help.
    pub(crate) fn decode(&self, args: &Value) -> Result<DecodedArgs, String> {
        (self.decode)(args)
    }
}

fn decode<A: Request>(args: &Value) -> Result<DecodedArgs, String> {
    let sealed = Sealed::new(args.clone());
    match sealed.len() {
        bytes if bytes > ARGS_LIMIT => Err(format!(
            "the arguments take {bytes} bytes, and {ARGS_LIMIT} at most are recorded"
        )),
        _ => Ok(Arc::new(sealed.read::<A>()?)),
    }
}

impl<K> fmt::Debug for Requests<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.kinds.iter().map(|it| &it.kind);
        f.debug_list().entries(kinds).finish()
    }
}
