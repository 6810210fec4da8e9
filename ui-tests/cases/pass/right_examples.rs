//! The right examples of the pages about the rules, from which this file is written.
#![allow(missing_docs, unexpected_cfgs)]

mod okt001_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[trigger(Failed, on_error)]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Gone)]
        Running,

        #[child(Gone)]
        Failed,

        #[leaf]
        Gone,
    }
}

mod okt001_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[cfg_attr(feature = "backup", child(Backup))]
        #[child(Gone)]
        Running,

        #[cfg(feature = "backup")]
        #[visit]
        #[child(Running)]
        Backup,

        #[leaf]
        Gone,
    }
}

mod okt002_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Gone)]
        Running,

        #[leaf]
        Gone,
    }
}

mod okt002_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Database {
        #[entry]
        #[child(Restore)]
        #[child(Create)]
        Begin,

        #[child(Running)]
        Create,

        #[child(Running)]
        Restore,

        #[rest]
        #[child(Restore)]
        #[child(Gone)]
        Running,

        #[leaf]
        Gone,
    }
}

mod okt003_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Stopping)]
        Running,

        #[leaf]
        Stopping,
    }
}

mod okt003_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Stopping)]
        Running,

        #[child(Start)]
        #[child(Gone)]
        Stopping,

        #[leaf(idle)]
        Gone,
    }
}

mod okt004_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[trigger(Repairing, on_error(attempts = 3))]
        #[child(Gone)]
        Running,

        #[child(Running)]
        Repairing,

        #[leaf]
        Gone,
    }
}

mod okt004_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Gone)]
        Running,

        #[leaf]
        Gone,
    }
}

mod okt005_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Broken)]
        #[child(Gone)]
        Running,

        #[rest]
        #[child(Gone)]
        Broken,

        #[leaf]
        Gone,
    }
}

mod okt005_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Broken)]
        #[child(Gone)]
        Running,

        #[leaf]
        Broken,

        #[leaf]
        Gone,
    }
}

mod okt006_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Gone)]
        Running,

        #[leaf]
        Gone,
    }
}

mod okt006_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Stopped)]
        Running,

        #[rest]
        #[child(Start)]
        #[child(Gone)]
        Stopped,

        #[leaf]
        Gone,
    }
}

mod okt007_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Session {
        #[entry]
        #[child(Open)]
        Start,

        #[rest]
        #[trigger(Closed, after = "8h")]
        #[child(Renewing)]
        #[child(Closed)]
        Open,

        #[child(Open)]
        Renewing,

        #[leaf]
        Closed,
    }
}

mod okt007_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Disk {
        #[entry]
        #[rest]
        #[no_route(Gone, reason = "a used disk is wiped only when it is deleted")]
        #[child(Checking)]
        #[child(Wiping)]
        Used,

        #[child(Used)]
        Checking,

        #[no_transit]
        #[child(Gone)]
        Wiping,

        #[leaf]
        Gone,
    }
}

mod okt007_3 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[rest]
        #[trigger(Backup, on_delete)]
        #[child(Stopping)]
        Running,

        #[child(Gone)]
        Stopping,

        #[child(Stopping)]
        Backup,

        #[leaf]
        Gone,
    }
}

mod okt008_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[rest]
        #[trigger(Stopping, on_error)]
        #[child(Stopping)]
        Running,

        #[child(Gone)]
        Stopping,

        #[leaf]
        Gone,
    }
}

mod okt008_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Database {
        #[entry]
        #[trigger(Failed, after = "10m", on_error(attempts = 3))]
        #[child(Running)]
        Start,

        #[rest]
        #[trigger(Start)]
        #[child(Gone)]
        Running,

        #[child(Gone)]
        Failed,

        #[leaf]
        Gone,
    }
}

mod okt009_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Gone)]
        #[child(Checking)]
        Running,

        #[child(Running)]
        Checking,

        #[leaf]
        Gone,
    }
}

mod okt009_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[child(Checking)]
        #[child(Gone)]
        Running,

        #[child(Running)]
        Checking,

        #[leaf]
        Gone,
    }
}

mod okt010_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Gone)]
        Running,

        #[leaf]
        Gone,
    }
}

mod okt010_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[trigger(Restarting, after = "24h")]
        #[child(Gone)]
        Running,

        #[child(Running)]
        Restarting,

        #[leaf]
        Gone,
    }
}

mod okt011_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[trigger(Failed, after = "10m")]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Gone)]
        Running,

        #[child(Gone)]
        Failed,

        #[leaf]
        Gone,
    }
}

mod okt011_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[trigger(Slow, after = "5m")]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Gone)]
        Running,

        #[trigger(Failed, after = "5m")]
        #[child(Running)]
        Slow,

        #[child(Gone)]
        Failed,

        #[leaf]
        Gone,
    }
}

mod okt012_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Standby)]
        Start,

        #[rest]
        #[child(Running)]
        Standby,

        #[rest]
        #[child(Standby)]
        #[child(Gone)]
        Running,

        #[leaf]
        Gone,
    }
}

mod okt012_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Disk {
        #[entry]
        #[rest]
        #[child(Used)]
        #[child(Gone)]
        Spare,

        #[rest]
        #[no_route(Spare, reason = "a used disk is wiped first: ask for a visit to Wiping")]
        #[child(Wiping)]
        #[child(Gone)]
        Used,

        #[visit]
        #[child(Spare)]
        Wiping,

        #[leaf]
        Gone,
    }
}

mod okt013_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Database {
        #[entry]
        #[child(Standby)]
        Start,

        #[rest]
        #[child(Running)]
        Standby,

        #[rest]
        #[no_route(Standby, reason = "a running database stays one")]
        #[child(Gone)]
        Running,

        #[leaf]
        Gone,
    }
}

mod okt013_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[rest]
        #[no_route(Gone, reason = "only a deletion ends a server")]
        #[child(Stopping)]
        Running,

        #[no_transit]
        #[child(Gone)]
        Stopping,

        #[leaf]
        Gone,
    }
}

mod okt014_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Database {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[was("Up")]
        #[was("Backup")]
        #[child(Gone)]
        Running,

        #[leaf]
        #[was("Down")]
        Gone,
    }
}

mod okt015_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Gone)]
        Running,

        #[leaf]
        Gone,
    }
}

mod okt016_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Start,

        #[rest]
        #[condition(Available, reason = "AcceptingConnections", message = "clients can connect")]
        #[child(Gone)]
        Running,

        #[leaf]
        Gone,
    }
}

mod okt017_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[trigger(Failed, after = "30m", on_error(attempts = 3))]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Start)]
        #[child(Gone)]
        Running,

        #[rest(hold, idle)]
        #[child(Start)]
        #[child(Gone)]
        Failed,

        #[leaf(idle)]
        Gone,
    }
}

mod okt018_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[rest]
        #[child(Backup)]
        #[child(Gone)]
        Running,

        #[visit]
        #[child(Running)]
        Backup,

        #[leaf]
        Gone,
    }
}

mod okt018_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[rest]
        #[child(Maintenance)]
        #[child(Gone)]
        Running,

        #[rest]
        #[child(Running)]
        #[child(Gone)]
        Maintenance,

        #[leaf]
        Gone,
    }
}

mod okt019_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core), pass)]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum ProxyPass {
        #[entry]
        #[child(Apply)]
        Check,

        #[trigger(Failed, on_error)]
        #[child(End)]
        Apply,

        #[child(End)]
        Failed,

        #[leaf]
        End,
    }
}

mod okt019_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Proxy {
        #[entry]
        #[trigger(Failed, after = "5m", on_error(attempts = 3))]
        #[child(Running)]
        Start,

        #[rest]
        #[child(Start)]
        #[child(End)]
        Running,

        #[rest(hold)]
        #[child(Start)]
        #[child(End)]
        Failed,

        #[leaf]
        End,
    }
}

mod okt020_1 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[child(Running)]
        Waiting,

        #[rest]
        #[child(Gone)]
        Running,

        #[leaf]
        Gone,
    }
}

mod okt020_2 {
    use okt_macros::lifecycle_graph;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Server {
        #[entry]
        #[serde(rename = "Wait")]
        #[child(Running)]
        Waiting,

        #[rest]
        #[child(Gone)]
        Running,

        #[leaf]
        Gone,
    }
}

fn main() {}
