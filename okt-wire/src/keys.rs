//! Every annotation, label and finalizer of OKT.

/// The annotation that pauses an object: `okt.dev/paused: "true"`.
pub const PAUSED_ANNOTATION: &str = "okt.dev/paused";

/// The annotation that abandons an object while it is being deleted: `okt.dev/abandon: <its uid>`.
pub const ABANDON_ANNOTATION: &str = "okt.dev/abandon";

/// The annotation of a CRD that holds the graph as JSON (the format of [`okt_core::Graph::json`]).
pub const GRAPH_ANNOTATION: &str = "okt.dev/graph";

/// The annotation of an object that holds what other versions of its kind have, and the present one cannot hold.
pub const KEPT_ANNOTATION: &str = "okt.dev/kept-for-versions";

/// The label by which the Service and the `NetworkPolicy` of an agent find its Pod.
pub const AGENT_LABEL: &str = "okt.dev/agent";

/// The annotation of a Pod with the hash of its agent's configuration: another one restarts the Pod.
pub const AGENT_CONFIG_ANNOTATION: &str = "okt.dev/agent-config";

/// The annotation of a CRD whose objects go back to an earlier version, with its name: replicas that act on a newer one
/// end their work, and only convert.
pub const HANDED_OVER_ANNOTATION: &str = "okt.dev/handed-over-to";

/// The annotation of the Secret of the webhooks with the time at which the next certificate is made.
pub const RENEW_CERTIFICATE_KEY: &str = "okt.dev/renew-certificate";

/// The annotation of the Secret of the webhooks with the time at which the next authority is made.
pub const RENEW_AUTHORITY_KEY: &str = "okt.dev/renew-authority";

/// The name of the finalizer.
pub const FINALIZER: &str = "okt.dev/lifecycle";

/// The label that holds the uid of the owner of an object.
pub const OWNER_LABEL: &str = "okt.dev/owner";

/// The label that holds the kind of the owner.
pub const OWNER_KIND_LABEL: &str = "okt.dev/owner-kind";

/// The label that holds the first two digits of the hash of the owner's uid: replicas that share the owners list only
/// what theirs own.
pub const OWNER_HASH_LABEL: &str = "okt.dev/owner-hash";

/// The annotation that holds the namespace and name of the owner.
pub const OWNER_NAME_ANNOTATION: &str = "okt.dev/owner-name";

/// The annotation that holds a hash of the applied declaration.
pub const APPLIED_ANNOTATION: &str = "okt.dev/applied";

/// The annotation of objects that may be pruned although their kind holds data.
pub const PRUNE_ANNOTATION: &str = "okt.dev/prune";

/// The annotation of objects that Kubernetes does not delete with their owner.
pub const UNOWNED_ANNOTATION: &str = "okt.dev/unowned";

/// The annotation that holds what happens to the dependents of an object when the operator deletes it.
pub const PROPAGATION_ANNOTATION: &str = "okt.dev/propagation";

/// The annotation that holds the condition by which an object is ready, if its declaration names one.
pub const READY_WHEN_ANNOTATION: &str = "okt.dev/ready-when";

/// The annotation that names the managers whose fields the operator takes over.
pub const TAKES_OVER_ANNOTATION: &str = "okt.dev/takes-over";

/// The annotation that holds the deletion wave of an object.
pub const WAVE_ANNOTATION: &str = "okt.dev/wave";

/// The annotation of objects that are done once: a hash of the declaration, without what OKT adds to it.
pub const CONTENT_ANNOTATION: &str = "okt.dev/content";

/// The annotation of the CRD of requests: the name of the CRD of the objects that serve them.
pub const REQUEST_OF_ANNOTATION: &str = "okt.dev/request-of";

/// The annotation of the CRD of requests: the state that serves them.
pub const REQUEST_STATE_ANNOTATION: &str = "okt.dev/request-state";

/// The annotation of the CRD of schedules: the name of the CRD of the requests that they make.
pub const SCHEDULE_OF_ANNOTATION: &str = "okt.dev/schedule-of";

/// The label of a request that has finished; its value is the outcome. It outlives the status where a backup is restored.
pub const FINISHED_LABEL: &str = "okt.dev/finished";

/// The annotation of a request that has finished: when it is deleted (RFC 3339).
pub const EXPIRES_ANNOTATION: &str = "okt.dev/expires";

/// The label of a request that a schedule made; its value is the name of the schedule.
pub const SCHEDULE_LABEL: &str = "okt.dev/schedule";

/// The label of all leases of a group; its value is the name of the group.
pub const GROUP_LABEL: &str = "okt.dev/ranges";

/// Whether a replica has read the CRDs and filled its caches.
pub const READY_KEY: &str = "okt.dev/ready";

/// The names of the CRDs of a group, separated by commas. No replica reads it: people and `why` do.
pub const KINDS_KEY: &str = "okt.dev/kinds";

/// The version of the form of a table.
pub const FORMAT_KEY: &str = "okt.dev/format";

/// How many ranges there are.
pub const RANGES_KEY: &str = "okt.dev/ranges";

/// Of what the hash is that chooses the range of an object.
pub const HASH_KEY: &str = "okt.dev/hash-by";

/// A number that grows with every write of a table.
pub const VERSION_KEY: &str = "okt.dev/version";

/// A number that grows with every write of a table that changes who holds a range: agents fence with it.
pub const EPOCH_KEY: &str = "okt.dev/epoch";

/// Who holds which range.
pub const ROWS_KEY: &str = "okt.dev/rows";

/// Whether a member is stopping.
pub const STOPPING_KEY: &str = "okt.dev/stopping";

/// How many members are to hold ranges at most.
pub const LIMIT_KEY: &str = "okt.dev/limit";

/// The forms of tables that a member knows.
pub const FORMATS_KEY: &str = "okt.dev/formats";

/// The uid of the table that a member follows.
pub const TABLE_KEY: &str = "okt.dev/table";

/// The label of leases that have the places of a limit: the group of replicas whose limit it is.
pub const PLACES_LABEL: &str = "okt.dev/places-of-group";

/// The limit and the group whose places a lease has.
pub const PLACES_OF_KEY: &str = "okt.dev/places-of";

/// The places.
pub const PLACES_KEY: &str = "okt.dev/places";

/// How many objects may have a place, if a person has set it.
pub const MAX_KEY: &str = "okt.dev/max";
