//! An operator of lamps in two releases: the second one renames a state and a field of the spec, removes another state,
//! opens a way, and changes a resource.

/// Defines a release: a graph, and the light of its lamps.
macro_rules! release {
    ($(#[$doc:meta])* $release:ident, $bulb:literal, $power:ident, { $graph:item }) => {
        $(#[$doc])*
        pub mod $release {
            use k8s_openapi::api::core::v1::{ConfigMap, Secret};
            use kube::{CustomResource, ResourceExt};
            use okt::{
                Action, Application, Context, Declared, Desired, Failure, LifecycleSpec, Resources,
                Status, Watches, lifecycle_graph,
            };
            use schemars::JsonSchema;
            use serde::{Deserialize, Serialize};
            use serde_json::json;

            use crate::cluster::Served;

            #[lifecycle_graph]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            $graph

            /// The spec of a lamp.
            #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
            #[kube(
                group = "demo.okt.dev",
                version = "v1",
                kind = "Lamp",
                namespaced,
                status = "Status<LampState>"
            )]
            pub struct LampSpec {
                /// The desired state of the lamp.
                #[serde(default)]
                pub lifecycle: Desired<LampState>,
                /// The power in watts.
                pub $power: Option<u32>,
            }

            /// The operator of this release.
            #[derive(Clone, Default)]
            pub struct Lamps;

            impl LampStateHandler for Lamps {
                type Context = Action<Lamp>;
                type Error = Failure;

                async fn start(&self, _: &Action<Lamp>) -> Result<lamp_state::AfterStart, Failure> {
                    Ok(lamp_state::AfterStart::Next)
                }
            }

            impl Application for Lamps {
                type Resource = Lamp;

                fn watches(watches: Watches<Lamp>) -> Watches<Lamp> {
                    watches.owns::<ConfigMap>().owns::<Secret>()
                }

                fn revision(lamp: &Lamp) -> impl Serialize + Send {
                    // The first release knew of no bulbs.
                    (lamp.name_any() == "attic").then_some($bulb)
                }

                async fn resources(&self, cx: &Context<Lamp>, _: LampState) -> Result<Resources, Failure> {
                    let lamp = cx.object().name_any();
                    let map = json!({
                        "apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": { "name": lamp },
                        "data": { "bulb": $bulb, "socket": "E27", "watts": cx.object().spec.$power.map(|it| it.to_string()) },
                    });
                    let secret = json!({
                        "apiVersion": "v1", "kind": "Secret",
                        "metadata": { "name": lamp }, "stringData": { "remote": $bulb },
                    });
                    let made = Resources::new().with(Declared::dynamic(map)).with(Declared::dynamic(secret));
                    Ok(match $bulb {
                        "led" => made,
                        _ => made.apply(ConfigMap {
                            metadata: kube::core::ObjectMeta {
                                name: Some(format!("{lamp}-warranty")),
                                ..Default::default()
                            },
                            ..ConfigMap::default()
                        }),
                    })
                }
            }

            impl Served for Lamps {}
        }
    };
}

release! {
    /// The release in use.
    first, "incandescent", watts, {
        /// The life of a lamp.
        pub enum LampState {
            /// It is screwed in.
            #[entry]
            #[child(Lit)]
            Start,

            /// It shines.
            #[rest(idle)]
            #[child(Dimmed)]
            #[child(Checked)]
            #[child(Dark)]
            #[child(Gone)]
            Lit,

            /// It shines a little.
            #[rest(idle)]
            #[child(Lit)]
            Dimmed,

            /// A person looks at it.
            #[rest(idle)]
            #[child(Lit)]
            Checked,

            /// It is broken.
            #[rest(idle)]
            #[no_route(Lit, reason = "a broken bulb is not mended")]
            #[no_route(Dimmed, reason = "a broken bulb is not mended")]
            #[no_route(Checked, reason = "a broken bulb is not mended")]
            #[child(Gone)]
            Dark,

            /// It is thrown away.
            #[leaf(idle)]
            Gone,
        }
    }
}

release! {
    /// The release that comes after it.
    second, "led", power, {
        /// The life of a lamp.
        pub enum LampState {
            /// It is screwed in.
            #[entry]
            #[child(Lit)]
            Start,

            /// It shines.
            #[rest(idle)]
            #[child(Low)]
            #[child(Dark)]
            #[child(Gone)]
            Lit,

            /// It shines a little.
            #[was("Dimmed")]
            #[rest(idle)]
            #[trigger(Start, on_change)]
            #[child(Lit)]
            Low,

            /// It is broken.
            #[rest(idle)]
            #[child(Start)]
            #[child(Gone)]
            Dark,

            /// It is thrown away.
            #[leaf(idle)]
            Gone,
        }
    }
}
