//! [`KubernetesOptions`]: how a real API server is started.

use std::collections::BTreeMap;

use crate::FeatureGate;

/// The options of a real API server; [`Kubernetes::start`](super::Kubernetes::start) uses the
/// default ones.
///
/// # Example
/// ```no_run
/// use okt_apiserver::{FeatureGate, Kubernetes};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), okt_apiserver::KubernetesError> {
/// let options = Kubernetes::options().feature_gate(FeatureGate::ShardedListAndWatch, true);
/// let Some(kubernetes) = options.start_or_skip("half of the objects are listed").await? else {
///     return Ok(());
/// };
/// kubernetes.stop().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "options do nothing until they start a server"]
#[derive(Clone, Debug, Default)]
pub struct KubernetesOptions {
    pub(super) gates: BTreeMap<FeatureGate, bool>,
}

impl KubernetesOptions {
    /// Turns a feature gate on or off; by default each gate is as Kubernetes has it.
    ///
    /// A server from `KUBECONFIG` is only used if its gate is so already.
    pub fn feature_gate(mut self, gate: FeatureGate, on: bool) -> Self {
        self.gates.insert(gate, on);
        self
    }

    /// Returns the flag of kube-apiserver that sets the gates.
    pub(super) fn flag(&self) -> Option<String> {
        let gates: Vec<_> = self
            .gates
            .iter()
            .map(|(gate, on)| format!("{gate}={on}"))
            .collect();
        (!gates.is_empty()).then(|| format!("--feature-gates={}", gates.join(",")))
    }

    /// Returns the first gate that a server has in another way than these options.
    ///
    /// `metrics` is the text that the server has at `/metrics`; a gate that it does not name is off.
    pub(super) fn differing(&self, metrics: &str) -> Option<(FeatureGate, bool)> {
        let is_on = |gate: FeatureGate| {
            let start = format!("kubernetes_feature_enabled{{name=\"{gate}\",");
            let own = metrics.lines().find(|line| line.starts_with(&start));
            own.is_some_and(|line| line.ends_with(" 1"))
        };
        let mut gates = self.gates.iter().map(|(&gate, &on)| (gate, on));
        gates.find(|&(gate, on)| is_on(gate) != on)
    }
}

#[cfg(test)]
mod tests {
    use super::KubernetesOptions;
    use crate::FeatureGate;

    fn sharded(on: bool) -> KubernetesOptions {
        KubernetesOptions::default().feature_gate(FeatureGate::ShardedListAndWatch, on)
    }

    #[test]
    fn gates_are_a_flag_of_the_server() {
        assert_eq!(KubernetesOptions::default().flag(), None);
        let options = sharded(false).feature_gate(FeatureGate::ShardedListAndWatch, true);
        let flag = options.flag().unwrap();
        assert_eq!(flag, "--feature-gates=ShardedListAndWatch=true");
    }

    #[test]
    fn the_metrics_of_a_server_show_whether_a_gate_is_on() {
        let metrics = |on: &str| {
            format!(
                "# TYPE kubernetes_feature_enabled gauge\n\
                 kubernetes_feature_enabled{{name=\"ShardedList\",stage=\"ALPHA\"}} 1\n\
                 kubernetes_feature_enabled{{name=\"ShardedListAndWatch\",stage=\"ALPHA\"}} {on}\n"
            )
        };
        assert_eq!(sharded(true).differing(&metrics("1")), None);
        assert_eq!(sharded(false).differing(&metrics("0")), None);
        assert_eq!(sharded(false).differing(""), None);
        let gate = FeatureGate::ShardedListAndWatch;
        let on = Some((gate, true));
        assert_eq!(sharded(true).differing(&metrics("0")), on);
        assert_eq!(sharded(true).differing(""), on);
        assert_eq!(sharded(false).differing(&metrics("1")), Some((gate, false)));
        assert_eq!(KubernetesOptions::default().differing(&metrics("1")), None);
    }
}
