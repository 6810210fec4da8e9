//! A fleet of twenty shops, three replicas of their operator, and a release that some shops cannot take.

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use okt::view::{Kind, LimitView, View, Why};
use okt::{Group, Membership, Operator, Shards, crd};
use okt_examples::fleet::{Fleet, Shop, ShopState};
use okt_testing::ApiServer;
use okt_testing::controllers::deployment_controller;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

const SHOPS: usize = 20;

/// The shops that need more memory than they have since release 2.
const HUNGRY: [&str; 2] = ["shop-04", "shop-11"];

struct Town {
    server: ApiServer,
    shops: Api<Shop>,
    replicas: Vec<JoinHandle<()>>,
}

impl Town {
    async fn new() -> Self {
        let server = ApiServer::new();
        let user = server.client();
        let definition = crd::<Shop>().expect("a CRD");
        let made = Api::all(user.clone())
            .create(&PostParams::default(), &definition)
            .await;
        made.expect("the CRD is accepted");
        let controller = deployment_controller().fails(|server| {
            let pod = &server.data["spec"]["template"]["spec"]["containers"][0];
            let is_hungry = HUNGRY.contains(&&*server.name_any());
            is_hungry && pod["image"] == "shop:2" && pod["resources"]["limits"]["memory"] == "256Mi"
        });
        tokio::spawn(controller.run(server.client()));
        let town = Self {
            shops: Api::default_namespaced(user),
            server,
            replicas: Vec::new(),
        };
        for number in 0..SHOPS {
            let shop = json!({
                "apiVersion": "demo.okt.dev/v1", "kind": "Shop",
                "metadata": { "name": format!("shop-{number:02}") }, "spec": { "memory": "256Mi" },
            });
            let shop = serde_json::from_value(shop).expect("a shop");
            let made = town.shops.create(&PostParams::default(), &shop).await;
            made.expect("it is accepted");
        }
        town
    }

    /// Replaces the operator by three replicas of a release.
    async fn release(&mut self, release: &'static str) {
        for replica in self.replicas.drain(..) {
            replica.abort();
            let _ = replica.await;
        }
        for number in 1..=3 {
            let client = self.server.client();
            let group = Group::new("shops", "default")
                .replica(format!("{release}-{number}"))
                .shards(Shards::Auto)
                .virtual_time();
            self.replicas.push(tokio::spawn(async move {
                let membership = Membership::join(client.clone(), group);
                let fleet = Fleet {
                    release: release.to_owned(),
                    places: 2,
                };
                let operator = Operator::new(client, fleet).virtual_time();
                let ended = operator.replicas(&membership).run(pending()).await;
                ended.expect("the operator runs");
            }));
        }
        sleep(Duration::from_mins(2)).await;
    }

    /// Returns the names of the shops in a state.
    async fn names_in(&self, state: ShopState) -> BTreeSet<String> {
        let shops = self
            .shops
            .list(&ListParams::default())
            .await
            .expect("shops");
        let has_state = |shop: &Shop| {
            let status = shop.status.as_ref().and_then(|it| it.lifecycle.as_ref());
            status.and_then(|it| it.state.known()) == Some(state)
        };
        let shops = shops.items.into_iter().filter(has_state);
        shops.map(|shop| shop.name_any()).collect()
    }

    /// Returns how many shops have the image of a release.
    async fn with_image(&self, image: &str) -> usize {
        let servers: Api<Deployment> = Api::default_namespaced(self.server.client());
        let servers = servers.list(&ListParams::default()).await.expect("servers");
        let servers = servers.items.iter().map(|server| json!(server.spec));
        let images = servers.map(|it| it["template"]["spec"]["containers"][0]["image"].clone());
        images.filter(|it| it == image).count()
    }

    async fn edit(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let parameters = PatchParams::default();
        let edited = self.shops.patch(name, &parameters, &patch).await;
        edited.expect("it is accepted");
    }

    /// Returns what `kubectl okt why` says of a shop.
    async fn why(&self, name: &str) -> String {
        let client: Client = self.server.client();
        let kinds = Kind::all(&client).await.expect("kinds");
        let kind = kinds.first().expect("a kind");
        let objects = Api::default_namespaced_with(client.clone(), &kind.resource);
        let object = objects.get(name).await.expect("a shop");
        let why = Why::of(&client, &View::of(kind, object), Timestamp::now()).await;
        why.causes.iter().map(|cause| cause.what.clone()).collect()
    }

    async fn set_max(&self, max: Option<u32>) {
        let client = self.server.client();
        let limits = LimitView::all(&client).await.expect("limits");
        limits[0].set_max(&client, max).await.expect("it is set");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_release_stops_by_itself_is_looked_at_and_goes_on_by_hand() {
    let mut town = Town::new().await;
    town.release("1").await;
    assert_eq!(town.names_in(ShopState::Running).await.len(), SHOPS);
    assert_eq!(town.with_image("shop:1").await, SHOPS);

    // Two of them cannot take the next release: each keeps its place, and the second one stops the roll-out.
    town.release("2").await;
    sleep(Duration::from_mins(30)).await;
    let failed = town.names_in(ShopState::Failed).await;
    assert_eq!(failed, HUNGRY.map(str::to_owned).into());
    let done = town.with_image("shop:2").await;
    assert!((2..SHOPS).contains(&done), "{done} have taken it");
    let waits = town.names_in(ShopState::Running).await;
    sleep(Duration::from_mins(15)).await;
    assert_eq!(town.with_image("shop:2").await, done, "nobody goes on");
    let mut says = Vec::new();
    for shop in &waits {
        says.push(town.why(shop).await);
    }
    let waiting = says
        .iter()
        .filter(|it| it.contains("waits for a place in the limit rollout"));
    assert_eq!(waiting.count(), SHOPS - done, "{says:#?}");
    let named = says
        .iter()
        .filter(|it| it.contains("default/shop-04") && it.contains("default/shop-11"));
    assert_eq!(named.count(), SHOPS - done, "{says:#?}");

    // A person lets one more in beside them, mends them, and takes the number back.
    town.set_max(Some(3)).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(town.names_in(ShopState::Upgrading).await.len(), 1);
    for shop in HUNGRY {
        town.edit(shop, json!({ "memory": "512Mi" })).await;
    }
    sleep(Duration::from_mins(1)).await;
    assert!(town.names_in(ShopState::Failed).await.is_empty());
    town.set_max(None).await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!(town.names_in(ShopState::Running).await.len(), SHOPS);
    assert_eq!(town.with_image("shop:2").await, SHOPS);
}
