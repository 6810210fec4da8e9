//! A cluster in the test process with the controller, as a user sees it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use okt::lifecycle::Memory;
use okt_testing::rehearsal::Rules;
use okt_testing::{ApiServer, Injected};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use crate::own_loop::{Ctx, Notice, NoticeSpec, NoticeState, run};

/// The annotation with the id of the action that wrote a text.
const ACTION: &str = "demo.okt.dev/action";

pub(crate) struct Place {
    pub(crate) server: ApiServer,
    pub(crate) notices: Api<Notice>,
    pub(crate) maps: Api<ConfigMap>,
    controller: Arc<Mutex<Option<AbortHandle>>>,
}

/// Starts a controller.
fn start(server: &ApiServer) -> AbortHandle {
    let client = server.client_named("controller");
    let memory = Memory::new().virtual_time();
    tokio::spawn(run(Ctx { client, memory })).abort_handle()
}

impl Place {
    pub(crate) async fn new() -> Self {
        let place = Self::without_controller().await;
        let controller = start(&place.server);
        *place.controller.lock() = Some(controller);
        place
    }

    pub(crate) async fn without_controller() -> Self {
        let server = ApiServer::new();
        let client = server.client();
        let crd = okt::crd::<Notice>().expect("a CRD");
        let crds = Api::all(client.clone());
        let made = crds.create(&PostParams::default(), &crd).await;
        made.expect("accepted");
        Self {
            controller: Arc::default(),
            notices: Api::default_namespaced(client.clone()),
            maps: Api::default_namespaced(client),
            server,
        }
    }

    /// Kills the controller when this fault strikes, and starts another one.
    pub(crate) fn follow(&self, fault: Injected) -> JoinHandle<()> {
        let (server, controller) = (self.server.clone(), Arc::clone(&self.controller));
        tokio::spawn(async move {
            while fault.struck() == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let mut controller = controller.lock();
            controller
                .replace(start(&server))
                .expect("one runs")
                .abort();
        })
    }

    pub(crate) async fn create(&self, text: &str) {
        let spec = NoticeSpec {
            lifecycle: okt::Desired::default(),
            text: text.to_owned(),
        };
        let notice = Notice::new("welcome", spec);
        let made = (self.notices.create(&PostParams::default(), &notice)).await;
        made.expect("accepted");
    }

    pub(crate) async fn change(&self, text: &str) {
        let patch = Patch::Merge(json!({ "spec": { "text": text } }));
        let params = PatchParams::default();
        let changed = self.notices.patch("welcome", &params, &patch);
        changed.await.expect("accepted");
    }

    pub(crate) async fn delete(&self) {
        let deleted = (self.notices.delete("welcome", &DeleteParams::default())).await;
        deleted.expect("accepted");
    }

    async fn map(&self) -> Option<ConfigMap> {
        self.maps.get_opt("welcome").await.expect("an answer")
    }

    pub(crate) async fn text(&self) -> Option<String> {
        self.map().await?.data?.get("text").cloned()
    }

    /// Returns the id of the action that wrote the text.
    pub(crate) async fn action(&self) -> String {
        let map = self.map().await.expect("a text");
        map.annotations()[ACTION].clone()
    }

    pub(crate) async fn status(&self) -> Value {
        let notice = self.notices.get("welcome").await.expect("a notice");
        serde_json::to_value(&notice.status).expect("a status")
    }

    pub(crate) async fn trail(&self) -> String {
        let trail = self.status().await["lifecycle"]["trail"].clone();
        trail.as_str().expect("a trail").to_owned()
    }

    pub(crate) async fn condition(&self, name: &str) -> String {
        let status = self.status().await;
        let all = status["conditions"].as_array().into_iter().flatten();
        let mut of = all.filter(|it| it["type"] == name).map(|it| &it["status"]);
        let of = of.next().and_then(Value::as_str);
        of.unwrap_or_default().to_owned()
    }

    async fn until(&self, what: &str, mut so: impl AsyncFnMut() -> bool) {
        let since = Instant::now();
        while !so().await {
            let notice = self.notices.get_opt("welcome").await;
            let waits = since.elapsed() < Duration::from_hours(1);
            assert!(waits, "waited in vain until {what}: {notice:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the notice is ready, for the spec that it has now.
    pub(crate) async fn until_ready(&self) {
        let ready = async || {
            let notice = self.notices.get("welcome").await.expect("a notice");
            let status = notice.status.as_ref();
            let is_seen =
                status.is_some_and(|it| it.observed_generation == notice.metadata.generation);
            is_seen && self.condition("Ready").await == "True"
        };
        self.until("it is ready", ready).await;
    }

    pub(crate) async fn until_text(&self, text: &str) {
        let has = async || self.text().await.as_deref() == Some(text);
        self.until(text, has).await;
    }

    pub(crate) async fn until_gone(&self) {
        let gone = async || {
            let notice = self.notices.get_opt("welcome").await;
            notice.expect("an answer").is_none()
        };
        self.until("it is gone", gone).await;
        assert_eq!(self.text().await, None);
    }

    /// Returns the writes of the controllers.
    pub(crate) fn writes(&self) -> Vec<String> {
        let requests = self.server.requests().into_iter();
        let writes = requests.filter(|it| it.client == "controller" && it.is_write());
        let texts = writes.map(|it| it.to_string());
        texts
            .map(|it| it.trim_end_matches(" of controller").to_owned())
            .collect()
    }

    /// Checks the rules that hold whatever happens.
    pub(crate) fn check(&self) {
        let rules = Rules::of::<NoticeState>();
        let broken = rules.broken_by(&self.server, "controller", "notices");
        assert!(broken.is_empty(), "{broken:#?}");
        // Each transition to Posting has one id, however often its work was repeated.
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for version in &self.server.versions().resource("configmaps") {
            let map = version.object();
            let id = map["metadata"]["annotations"][ACTION].as_str();
            let id = id.expect("an id").to_owned();
            let text = map["data"]["text"].to_string();
            let before = texts.insert(id, text.clone());
            assert!(before.is_none_or(|before| before == text));
        }
        let statuses = self.server.versions().resource("notices");
        for id in statuses.course("/status/lifecycle/action/id") {
            texts.remove(id.as_str().unwrap_or_default());
        }
        assert!(texts.is_empty(), "ids that no status records: {texts:?}");
    }
}
