//! Converts the objects of a kind with several versions, as its operator does.

use http::{Request, Response};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::client::Body;
use kube::core::conversion::ConversionReview;
use okt_runtime::LifecycleObject;
use okt_wire::versions::KindVersions;
use tower::{BoxError, service_fn};

use crate::ApiServer;

/// Answers for the Service that a definition names as its conversion webhook, if it has one.
pub(super) fn convert<K: LifecycleObject>(
    server: &ApiServer,
    definition: &CustomResourceDefinition,
) {
    let conversion = definition.spec.conversion.as_ref();
    let webhook = conversion.and_then(|it| it.webhook.as_ref());
    let client = webhook.and_then(|it| it.client_config.as_ref());
    let Some(service) = client.and_then(|it| it.service.as_ref()) else {
        return;
    };
    let answer = service_fn(|request: Request<Body>| async {
        let body = request.into_body().collect_bytes().await?;
        let review: ConversionReview = serde_json::from_slice(&body)?;
        let answer = KindVersions::of::<K>().review(review);
        Ok::<_, BoxError>(Response::new(serde_json::to_string(&answer)?))
    });
    server.set_service(&service.namespace, &service.name, answer);
}
